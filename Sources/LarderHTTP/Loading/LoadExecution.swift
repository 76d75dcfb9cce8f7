/// Where loads run.
package enum LoadExecution {
    /// That of the task that asks, and of what it starts: those of a server's requests run on the event loop of the
    /// client. Nil for the threads of all tasks. It has to run what it is given for as long as the process lives.
    @TaskLocal package static var executor: (any TaskExecutor)?
}
