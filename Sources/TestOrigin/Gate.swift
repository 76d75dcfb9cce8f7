import Locks

/// A point at which a script waits until a test lets it continue. It gives tests an order of events without sleeping.
///
/// ```swift
/// let gate = Gate()
/// origin.script("/slow", .ok("late").holding(at: gate))
/// // … send the request …
/// await gate.arrival()    // the origin has the request and holds
/// gate.open()
/// ```
///
/// A gate stays open once it was opened. Safe to use from any thread.
public final class Gate: Sendable {
    private struct State {
        var isOpen: Bool
        var arrivals = 0
        var nextID = 0
        var waiting: [Int: CheckedContinuation<Void, any Error>] = [:]
        var watching: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state: Mutex<State>

    /// Makes a gate. Default: closed.
    /// - Parameter isOpen: true for a gate that is open from the start. Default: false.
    public init(isOpen: Bool = false) { state = Mutex(State(isOpen: isOpen)) }

    /// Number of arrivals at the gate, including those that have passed.
    public var arrivals: Int { state.withLock { $0.arrivals } }

    /// Lets everything through, now and later.
    public func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [:] }
            return state.waiting.values
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Waits until there were `count` arrivals at the gate. Default: 1.
    /// - Parameter count: 1 or more. Default: 1.
    public func arrival(_ count: Int = 1) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if state.arrivals >= count { return true }
                state.watching.append((count, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    /// Waits until the gate is open. Throws `CancellationError` in a cancelled task.
    public func wait() async throws {
        let id = arrive()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome: Result<Void, any Error>? = state.withLock { state in
                    if state.isOpen { return .success(()) }
                    // Under the lock, so that a cancellation either is seen here or finds the continuation.
                    if Task.isCancelled { return .failure(CancellationError()) }
                    state.waiting[id] = continuation
                    return nil
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            let continuation = state.withLock { $0.waiting.removeValue(forKey: id) }
            continuation?.resume(throwing: CancellationError())
        }
    }

    private func arrive() -> Int {
        let (id, watching) = state.withLock { state in
            state.arrivals += 1
            state.nextID += 1
            let reached = state.watching.filter { $0.count <= state.arrivals }
            state.watching.removeAll { $0.count <= state.arrivals }
            return (state.nextID, reached)
        }
        for watcher in watching { watcher.continuation.resume() }
        return id
    }
}
