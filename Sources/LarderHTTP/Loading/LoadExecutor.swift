/// Runs loads in place of the threads of all tasks: those of a server's requests, on the event loop of the client.
package protocol LoadExecutor: TaskExecutor {
    /// A load begins: until it has ended, the executor has to stay.
    func loadBegan()
    func loadEnded()
}

/// Where loads run.
package enum LoadExecution {
    /// That of the task that asks, and of what it starts. Nil for the threads of all tasks.
    @TaskLocal package static var executor: (any LoadExecutor)?
}
