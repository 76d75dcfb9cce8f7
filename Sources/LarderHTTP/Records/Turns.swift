import Larder
import Synchronization

/// One turn at a time for each key, in the order in which they were asked for.
final class Turns: Sendable {
    /// Those who wait, by the key of which another has the turn.
    private let waiting = Mutex<[Key: [CheckedContinuation<Void, Never>]]>([:])

    /// Waits for the turn. Pair it with `leave(_:)`. Cancellation does not end the wait.
    func take(_ key: Key) async {
        await withCheckedContinuation { continuation in
            let isFree = waiting.withLock { waiting in
                guard waiting[key] != nil else {
                    waiting[key] = []
                    return true
                }
                waiting[key]?.append(continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    /// Hands the turn to the next.
    func leave(_ key: Key) {
        let next = waiting.withLock { waiting -> CheckedContinuation<Void, Never>? in
            guard let queue = waiting[key], let first = queue.first else {
                waiting[key] = nil
                return nil
            }
            waiting[key] = Array(queue.dropFirst())
            return first
        }
        next?.resume()
    }
}
