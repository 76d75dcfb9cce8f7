import CLarder
import Locks

/// The first calls of each function that a program makes from C. A fork waits until they have returned, and they wait
/// for a fork.
///
/// As in the `FirstRounds` of the engine's threads, Swift makes types in them under its locks. Without a gate the
/// threads of a busy program leave a fork no moment in which all of them are outside.
package enum FirstCalls {
    /// The longest that a fork waits for calls, in milliseconds.
    private static let patience = 1000
    /// The longest that a call waits for forks: behind the calls they wait for the engine's threads.
    private static let patienceOfCalls = 3 * patience
    private static let running = Atomic<Int>(0)
    private static let forks = Atomic<Int>(0)

    /// Runs a call. One inside of another, as from a callback, or on a thread of the engine is part of that work.
    /// - Parameter function: a number for the function that was called. The first 10,000 calls of each count, of all
    ///   threads of the process.
    @inline(__always)
    package static func run<Result>(_ function: Int, _ call: () throws -> Result) rethrows -> Result {
        guard clarder_is_first_call(UInt32(truncatingIfNeeded: function)), !clarder_is_in_call(),
            clarder_first_rounds() == 0
        else { return try call() }
        begin()
        defer { end() }
        return try call()
    }

    private static func begin() {
        running.wrappingAdd(1, ordering: .sequentiallyConsistent)
        var waited = 0
        while waited < patienceOfCalls, forks.load(ordering: .sequentiallyConsistent) > 0 {
            running.wrappingSubtract(1, ordering: .releasing)
            usleep(1000)
            waited += 1
            running.wrappingAdd(1, ordering: .sequentiallyConsistent)
        }
        clarder_set_in_call(true)
    }

    private static func end() {
        clarder_set_in_call(false)
        running.wrappingSubtract(1, ordering: .releasing)
    }

    /// Before a fork: no call begins until `goOn`.
    static func wait() {
        forks.wrappingAdd(1, ordering: .sequentiallyConsistent)
        let own = clarder_is_in_call() ? 1 : 0
        var waited = 0
        while waited < patience, running.load(ordering: .sequentiallyConsistent) > own {
            usleep(1000)
            waited += 1
        }
    }

    /// After a fork, in the parent.
    static func goOn() { forks.wrappingSubtract(1, ordering: .releasing) }

    /// In a child, which has no thread but the one that called fork(2).
    static func beginAgain() {
        forks.store(0, ordering: .relaxed)
        running.store(clarder_is_in_call() ? 1 : 0, ordering: .relaxed)
    }
}
