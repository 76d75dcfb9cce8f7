import NIOCore

/// Runs tasks on an event loop.
///
/// What a task does for a connection is then on the thread of the connection, and wakes no other. Nothing that such a
/// task calls may wait for a disk; the store has threads of its own for that. The event loop must never end: see
/// ``LoopGroups``.
final class LoopExecutor: TaskExecutor {
    private let eventLoop: any EventLoop

    init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        eventLoop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
