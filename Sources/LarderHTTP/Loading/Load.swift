import HTTPCaching
import HTTPTypes
import Locks

/// One request on its way, and those who wait for it.
final class Load: Sendable {
    /// Gets what came, on any thread.
    typealias Waiter = @Sendable (Result<Arrival, FetchError>) -> Void

    private struct State {
        var result: Result<Arrival, FetchError>?
        var waiters: [Int: Waiter] = [:]
        var nextWaiter = 0
        /// Ends what it does.
        var end: (@Sendable () -> Void)?
        var isCancelled = false
        /// It will not be finished: who began it, or the last caller, stopped waiting.
        var isGivenUp = false
        /// The first caller will wait, and does not yet.
        var isLeaderDue: Bool
        /// The first caller has the answer, or no longer wants it: its reader must not hold up the others.
        var isResponseLetGo: Bool
    }

    private let sent = Atomic(Int64.min)

    let url: String
    /// Of the key when it was asked for: see ``Generations``.
    let generation: UInt32
    private let isDetached: Bool
    private let state: Mutex<State>

    /// - Parameter isDetached: whether it continues without callers that wait.
    init(url: String, generation: UInt32 = 0, isDetached: Bool = false) {
        self.url = url
        self.generation = generation
        self.isDetached = isDetached
        state = Mutex(State(isLeaderDue: !isDetached, isResponseLetGo: isDetached))
    }

    /// Starts; `body` calls ``arrive(_:)`` once.
    func start(priority: TaskPriority? = nil, _ body: @escaping @Sendable () async -> Void) {
        let task = Task(executorPreference: LoadExecution.executor, priority: priority) { await body() }
        begin { task.cancel() }
    }

    /// It is under way.
    /// - Parameter end: ends it when it is cancelled, and calls ``arrive(_:)`` if it has not arrived.
    func begin(_ end: @escaping @Sendable () -> Void) {
        let isCancelled = state.withLock { state in
            state.end = end
            return state.isCancelled
        }
        if isCancelled { end() }
    }

    /// Hands over what came. Only the first call counts.
    func arrive(_ result: Result<Arrival, FetchError>) {
        let waiters = state.withLock { state in
            guard state.result == nil else { return [:] as [Int: Waiter] }
            // Let go of, it goes with the caller's.
            state.result = state.isResponseLetGo ? Self.withoutBody(result) : result
            defer { state.waiters = [:] }
            return state.waiters
        }
        for waiter in waiters.values { waiter(result) }
    }

    /// Whether the origin may have seen the request already. A request that wants an answer later than itself cannot
    /// have this one's then.
    var isSent: Bool { sentTime != nil }
    /// When the origin was asked; nil before.
    var sentTime: Instant? {
        let milliseconds = sent.load(ordering: .acquiring)
        return milliseconds == .min ? nil : Instant(milliseconds: milliseconds)
    }
    func markSent(at now: Instant) { sent.store(now.milliseconds, ordering: .releasing) }

    /// Whether the head of the answer is there.
    var isAnswered: Bool { state.withLock { $0.result != nil } }

    /// How many wait for the head.
    var waiterCount: Int { state.withLock { $0.waiters.count } }

    /// Whether who began it, or the last caller, stopped waiting, so that it will not be finished.
    var isGivenUp: Bool { state.withLock { $0.isGivenUp } }

    /// Waits for the head. When all callers that wait are cancelled, so is the load.
    /// - Parameter isLeader: for the first caller.
    func arrival(isLeader: Bool = false) async -> Result<Arrival, FetchError> {
        let id = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let result: Result<Arrival, FetchError>? = state.withLock { state in
                    if isLeader { state.isLeaderDue = false }
                    if let result = state.result { return result }
                    if Task.isCancelled { return .failure(cancellation) }
                    state.waiters[id] = { continuation.resume(returning: $0) }
                    return nil
                }
                if let result { continuation.resume(returning: result) }
                if Task.isCancelled { give(up: id) }
            }
        } onCancel: {
            give(up: id)
        }
    }

    /// Waits for the head without a task.
    /// - Parameter waiter: called once, on any thread, perhaps before this returns, or while ``leave(_:)`` is called.
    /// - Returns: what it leaves by.
    func join(_ waiter: @escaping Waiter) -> Int {
        let (id, result) = state.withLock { state in
            state.nextWaiter += 1
            if state.result == nil { state.waiters[state.nextWaiter] = waiter }
            return (state.nextWaiter, state.result)
        }
        if let result { waiter(result) }
        return id
    }

    /// Waits no longer. When all callers that wait are gone, the load is cancelled.
    func leave(_ id: Int) { _ = remove(id) }

    private var cancellation: FetchError { FetchError(.cancelled, url: url, "the fetch of \(url) was cancelled") }

    private func give(up id: Int) { remove(id)?(.failure(cancellation)) }

    private func remove(_ id: Int) -> Waiter? {
        let (waiter, isLast) = state.withLock { state in
            let waiter = state.waiters.removeValue(forKey: id)
            let isLast = state.waiters.isEmpty && !state.isLeaderDue && state.result == nil && !isDetached
            state.isGivenUp = state.isGivenUp || isLast
            return (waiter, isLast)
        }
        if isLast { cancel() }
        return waiter
    }

    /// Who began it does not finish it: those who wait have to ask again.
    func giveUp() {
        state.withLock { $0.isGivenUp = true }
        arrive(.failure(cancellation))
    }

    /// Gives the load up: the connection is closed, and all who wait get ``FetchError/Code/cancelled``.
    func cancel() {
        let end = state.withLock { state in
            state.isCancelled = true
            return state.end
        }
        end?()
    }

    /// Lets go of the answer: the first caller has it, or was cancelled before it came.
    func letGoOfResponse() {
        // It goes outside the lock: the last reader of a body gives the load up.
        let old = state.withLock { state in
            state.isResponseLetGo = true
            let old = state.result
            state.result = old.map(Self.withoutBody)
            return old
        }
        withExtendedLifetime(old) {}
    }

    private static func withoutBody(_ result: Result<Arrival, FetchError>) -> Result<Arrival, FetchError> {
        result.map { arrival in
            var arrival = arrival
            arrival.response.body = .empty
            return arrival
        }
    }
}
