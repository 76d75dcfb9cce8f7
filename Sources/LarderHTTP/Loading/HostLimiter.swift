import Synchronization

/// Holds requests back so that no host gets more than its share at once; the more urgent go first, equal ones in order.
final class HostLimiter: Sendable {
    private struct Waiter {
        let id: Int
        let priority: FetchPriority
        let continuation: CheckedContinuation<Bool, Never>
    }

    private struct State {
        var running: [String: Int] = [:]
        var total = 0
        var waiting: [String: [Waiter]] = [:]
        var nextID = 0
    }

    private let perHost: Int
    private let limit: Int
    private let state = Mutex(State())

    init(perHost: Int, total: Int) {
        self.perHost = max(1, perHost)
        limit = max(1, total)
    }

    /// A place at a host; given back when it goes, if not before.
    final class Permit: Sendable {
        private let limiter: HostLimiter
        private let host: String
        private let isReleased = Atomic(false)
        fileprivate init(_ limiter: HostLimiter, _ host: String) {
            self.limiter = limiter
            self.host = host
        }
        deinit { release() }

        /// Gives the place back; once.
        func release() {
            if !isReleased.exchange(true, ordering: .acquiringAndReleasing) { limiter.release(host) }
        }
    }

    /// How many wait for a place.
    var waitingCount: Int { state.withLock { $0.waiting.values.reduce(0) { $0 + $1.count } } }

    /// Waits for a place; nil when the task is cancelled.
    func acquire(_ host: String, _ priority: FetchPriority) async -> Permit? {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        let isGranted = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now: Bool? = state.withLock { state in
                    if Task.isCancelled { return false }
                    if state.running[host, default: 0] < perHost, state.total < limit {
                        state.running[host, default: 0] += 1
                        state.total += 1
                        return true
                    }
                    var queue = state.waiting[host, default: []]
                    let place = queue.firstIndex { $0.priority < priority } ?? queue.endIndex
                    queue.insert(Waiter(id: id, priority: priority, continuation: continuation), at: place)
                    state.waiting[host] = queue
                    return nil
                }
                if let now { continuation.resume(returning: now) }
            }
        } onCancel: {
            let waiter = state.withLock { state -> Waiter? in
                guard let place = state.waiting[host]?.firstIndex(where: { $0.id == id }) else { return nil }
                let waiter = state.waiting[host]?.remove(at: place)
                if state.waiting[host]?.isEmpty == true { state.waiting[host] = nil }
                return waiter
            }
            waiter?.continuation.resume(returning: false)
        }
        return isGranted ? Permit(self, host) : nil
    }

    private func release(_ host: String) {
        let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            let count = state.running[host, default: 1] - 1
            state.running[host] = count > 0 ? count : nil
            state.total -= 1
            // The most urgent of those whose host has a place.
            let candidates = state.waiting.compactMap { host, queue in
                queue.first.flatMap { state.running[host, default: 0] < perHost ? (host, $0) : nil }
            }
            guard
                let (chosen, waiter) = candidates.max(by: {
                    ($0.1.priority, -$0.1.id) < ($1.1.priority, -$1.1.id)
                })
            else { return nil }
            state.waiting[chosen]?.removeFirst()
            if state.waiting[chosen]?.isEmpty == true { state.waiting[chosen] = nil }
            state.running[chosen, default: 0] += 1
            state.total += 1
            return waiter.continuation
        }
        next?.resume(returning: true)
    }
}
