import Locks

/// Holds requests back so that no host gets more than its share at once; the more urgent go first, equal ones in order.
///
/// A host is an endpoint of the transport. Three rules keep room for others when hosts do not answer or clients are
/// slow: a host's share gets smaller as places get scarce; requests whose content is still arriving get half of a
/// host's places at most; and waiting has an end, in number and in time.
final class HostLimiter: Sendable {
    /// Why a request got no place.
    enum Refusal: Error {
        case cancelled
        case timedOut
        /// With the requests that are under way at the host, and those that wait.
        case overloaded(running: Int, waiting: Int)
    }

    fileprivate typealias Grant = Result<Void, Refusal>

    /// Requests that wait for the same kind of place.
    fileprivate struct Lane: Hashable {
        let host: String
        let isUpload: Bool
    }

    fileprivate struct Waiter {
        let id: Int
        let priority: FetchPriority
        let continuation: CheckedContinuation<Grant, Never>
    }

    fileprivate struct Use {
        var count = 0
        var uploads = 0
    }

    fileprivate struct State {
        let perHost: Int
        let waitingPerHost: Int
        let limit: Int
        var running: [String: Use] = [:]
        var total = 0
        var waiting: [Lane: [Waiter]] = [:]
        var nextID = 0
    }

    private let state: Mutex<State>

    init(perHost: Int, waitingPerHost: Int, total: Int) {
        state = Mutex(State(perHost: max(1, perHost), waitingPerHost: max(0, waitingPerHost), limit: max(1, total)))
    }

    /// A place at a host; given back when its last reference is dropped, if not before.
    final class Permit: Sendable {
        private let limiter: HostLimiter
        private let lane: Lane
        private let isReleased = Atomic(false)
        fileprivate init(_ limiter: HostLimiter, _ lane: Lane) {
            self.limiter = limiter
            self.lane = lane
        }
        deinit { release() }

        /// Gives the place back; once.
        func release() {
            if !isReleased.exchange(true, ordering: .acquiringAndReleasing) { limiter.release(lane) }
        }
    }

    /// How many wait for a place.
    var waitingCount: Int { state.withLock { $0.waiting.values.reduce(0) { $0 + $1.count } } }

    /// Waits for a place.
    /// - Parameters:
    ///   - isUpload: whether the request's content is still arriving.
    ///   - time: how long to wait at most.
    func acquire(
        _ host: String, _ priority: FetchPriority, isUpload: Bool = false, within time: Duration
    ) async throws(Refusal) -> Permit {
        let lane = Lane(host: host, isUpload: isUpload)
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        var timer: Task<Void, Never>?
        let grant = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now = state.withLock {
                    $0.enter(lane, Waiter(id: id, priority: priority, continuation: continuation))
                }
                if let now { return continuation.resume(returning: now) }
                timer = Task {
                    do { try await Task.sleep(for: time) } catch { return }
                    self.giveUp(id, lane, .timedOut)
                }
            }
        } onCancel: {
            giveUp(id, lane, .cancelled)
        }
        timer?.cancel()
        try grant.get()
        return Permit(self, lane)
    }

    /// A place, if there is one without waiting.
    func acquireAtOnce(_ host: String) -> Permit? {
        let lane = Lane(host: host, isUpload: false)
        let isTaken = state.withLock { state in
            guard state.waiting[lane] == nil, state.hasRoom(lane) else { return false }
            state.take(lane)
            return true
        }
        return isTaken ? Permit(self, lane) : nil
    }

    private func giveUp(_ id: Int, _ lane: Lane, _ refusal: Refusal) {
        let waiter = state.withLock { $0.leave(id, lane) }
        waiter?.continuation.resume(returning: .failure(refusal))
    }

    private func release(_ lane: Lane) {
        let next = state.withLock { $0.release(lane) }
        for waiter in next { waiter.continuation.resume(returning: .success(())) }
    }
}

extension HostLimiter.State {
    /// What a request gets at once; nil when it waits.
    mutating func enter(_ lane: HostLimiter.Lane, _ waiter: HostLimiter.Waiter) -> HostLimiter.Grant? {
        // Cancelled before: then the handler has run already, and found nothing.
        if Task.isCancelled { return .failure(.cancelled) }
        if hasRoom(lane) {
            take(lane)
            return .success(())
        }
        let count = [true, false].reduce(0) { sum, isUpload in
            sum + (waiting[HostLimiter.Lane(host: lane.host, isUpload: isUpload)]?.count ?? 0)
        }
        guard count < waitingPerHost else {
            return .failure(.overloaded(running: running[lane.host]?.count ?? 0, waiting: count))
        }
        var queue = waiting[lane, default: []]
        let place = queue.firstIndex { $0.priority < waiter.priority } ?? queue.endIndex
        queue.insert(waiter, at: place)
        waiting[lane] = queue
        return nil
    }

    mutating func leave(_ id: Int, _ lane: HostLimiter.Lane) -> HostLimiter.Waiter? {
        guard let place = waiting[lane]?.firstIndex(where: { $0.id == id }) else { return nil }
        let waiter = waiting[lane]?.remove(at: place)
        if waiting[lane]?.isEmpty == true { waiting[lane] = nil }
        return waiter
    }

    /// Gives a place back.
    /// - Returns: those who have a place now.
    mutating func release(_ lane: HostLimiter.Lane) -> [HostLimiter.Waiter] {
        var use = running[lane.host, default: HostLimiter.Use()]
        use.count -= 1
        if lane.isUpload { use.uploads -= 1 }
        running[lane.host] = use.count > 0 ? use : nil
        total -= 1
        var granted: [HostLimiter.Waiter] = []
        // One place more can make room at several hosts.
        while total < limit, let (lane, waiter) = next() {
            _ = leave(waiter.id, lane)
            take(lane)
            granted.append(waiter)
        }
        return granted
    }

    /// The most urgent of those whose host has room; of equal ones, that of the host with the fewest requests under
    /// way.
    private func next() -> (HostLimiter.Lane, HostLimiter.Waiter)? {
        let candidates = waiting.compactMap { lane, queue in
            queue.first.flatMap { hasRoom(lane) ? (lane, $0) : nil }
        }
        func rank(_ candidate: (lane: HostLimiter.Lane, waiter: HostLimiter.Waiter)) -> (FetchPriority, Int, Int) {
            (candidate.waiter.priority, -(running[candidate.lane.host]?.count ?? 0), -candidate.waiter.id)
        }
        return candidates.max { rank($0) < rank($1) }
    }

    fileprivate mutating func take(_ lane: HostLimiter.Lane) {
        running[lane.host, default: HostLimiter.Use()].count += 1
        if lane.isUpload { running[lane.host, default: HostLimiter.Use()].uploads += 1 }
        total += 1
    }

    fileprivate func hasRoom(_ lane: HostLimiter.Lane) -> Bool {
        let use = running[lane.host] ?? HostLimiter.Use()
        guard total < limit, use.count < min(perHost, share) else { return false }
        return !lane.isUpload || use.uploads < max(1, perHost / 2)
    }

    /// What one host may have, at the number of places that are free: the square of that number, divided by the number
    /// of all. When k hosts took all they could, one after the other, about one place in k is left for the next; of a
    /// fixed part of what is free, ten of them would take everything.
    private var share: Int {
        guard limit >= Self.sharedFrom else { return limit }
        let free = Double(limit - total)
        return max(1, Int(free * free / Double(limit)))
    }

    /// With fewer places there is nothing to share out: such limits are for a program's own requests.
    private static let sharedFrom = 64
}
