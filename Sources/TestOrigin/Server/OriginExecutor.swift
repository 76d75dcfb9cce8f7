import NIOCore
import NIOPosix

/// Runs the tasks of a connection on its event loop.
///
/// Tests often hold the threads of Swift's pool: each waits there for a process that it has started. An origin whose
/// tasks ran in that pool would let the process wait until its timeout.
final class OriginExecutor: TaskExecutor {
    /// The loops of all origins of the process, and of nothing else: clients have their own.
    static let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)

    private let loop: any EventLoop

    init(_ loop: any EventLoop) { self.loop = loop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
