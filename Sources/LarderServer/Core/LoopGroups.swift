import Locks
import NIOPosix

/// Groups of event loops that servers use one after the other. Their threads never end.
///
/// A load outlives the client that asked for it, and with it the server: the store is to have the response, or others
/// wait for it. Its task and its connection to the origin are on an event loop, and a job that is given to an event
/// loop that has ended is lost, with the task that waits for it. So a group is not shut down; the next server takes it.
final class LoopGroups: Sendable {
    static let shared = LoopGroups()

    /// By the number of their threads.
    private let idle = Mutex([Int: [MultiThreadedEventLoopGroup]]())

    /// A group that no server uses.
    func take(threads count: Int) -> MultiThreadedEventLoopGroup {
        idle.withLock { $0[count]?.popLast() } ?? MultiThreadedEventLoopGroup(numberOfThreads: count)
    }

    /// Takes back a group whose server has no connections any more.
    func giveBack(_ group: MultiThreadedEventLoopGroup, threads count: Int) {
        idle.withLock { $0[count, default: []].append(group) }
    }
}
