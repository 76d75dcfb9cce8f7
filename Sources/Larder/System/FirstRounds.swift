import CLarder
import Locks

/// The first rounds of the engine's threads. A fork waits until they are over.
///
/// In its first rounds a thread uses types and globals for the first time. Swift makes each of them then, under a lock
/// of its runtime. A child of fork(2) that needs such a lock waits forever if a thread of its parent held it.
enum FirstRounds {
    /// How many, from one wait for work to the next.
    private static let count: Int32 = 64
    /// The longest that a fork waits, in milliseconds.
    private static let patience = 1000
    /// Threads in one of their first rounds.
    private static let running = Atomic<Int>(0)

    /// Before a thread starts.
    static func expectThread() { running.wrappingAdd(1, ordering: .acquiring) }

    /// The thread did not start.
    static func missThread() { running.wrappingSubtract(1, ordering: .releasing) }

    /// The thread has started.
    static func beginThread() { clarder_set_first_rounds(count) }

    /// The thread ends.
    static func endThread() {
        if clarder_first_rounds() > 0 { running.wrappingSubtract(1, ordering: .releasing) }
        clarder_set_first_rounds(0)
    }

    /// Runs what waits for work: it ends a round, and begins the next one.
    @inline(__always)
    static func between(_ wait: () -> Void) {
        let left = clarder_first_rounds()
        guard left > 0 else { return wait() }
        running.wrappingSubtract(1, ordering: .releasing)
        wait()
        clarder_set_first_rounds(left - 1)
        if left > 1 { running.wrappingAdd(1, ordering: .acquiring) }
    }

    /// Before a fork.
    static func wait() {
        let own = clarder_first_rounds() > 0 ? 1 : 0
        var waited = 0
        while waited < patience, running.load(ordering: .acquiring) > own {
            usleep(1000)
            waited += 1
        }
    }

    /// In a child, which has no thread but the one that called fork(2).
    static func beginAgain() {
        running.store(0, ordering: .relaxed)
        clarder_set_first_rounds(0)
    }
}
