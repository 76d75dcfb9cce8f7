import Larder
import Locks

/// One turn at a time for each key, in the order of the calls.
package final class Turns: Sendable {
    /// Those who wait, by the key of which another has the turn.
    private let waiting = Mutex<[Key: [CheckedContinuation<Bool, Never>]]>([:])

    package init() {}

    /// Waits for the turn. Cancellation does not end the wait.
    ///
    /// - Returns: true with the turn: pair it with `leave(_:)` or `dismiss(_:)`. False if the waiting callers were
    ///   dismissed.
    package func take(_ key: Key) async -> Bool {
        await withCheckedContinuation { continuation in
            let isFree = waiting.withLock { waiting in
                guard waiting[key] != nil else {
                    waiting[key] = []
                    return true
                }
                waiting[key]?.append(continuation)
                return false
            }
            if isFree { continuation.resume(returning: true) }
        }
    }

    /// Passes the turn to the next caller.
    package func leave(_ key: Key) {
        let next = waiting.withLock { waiting -> CheckedContinuation<Bool, Never>? in
            guard let queue = waiting[key], let first = queue.first else {
                waiting[key] = nil
                return nil
            }
            waiting[key] = Array(queue.dropFirst())
            return first
        }
        next?.resume(returning: true)
    }

    /// Ends the turn, and the wait of all others without one.
    func dismiss(_ key: Key) {
        let queue = waiting.withLock { $0.removeValue(forKey: key) } ?? []
        for continuation in queue { continuation.resume(returning: false) }
    }

    /// How many wait for the turn.
    func waiterCount(_ key: Key) -> Int { waiting.withLock { $0[key]?.count ?? 0 } }
}
