import Synchronization

/// The values that this process computes now: one computation for each key, however many wait for it.
final class Computations: Sendable {
    /// Whose value: stores of different application versions have values of their own.
    struct Place: Hashable, Sendable {
        let key: Key
        let version: UInt16?
    }

    private let underWay = Mutex<[Place: Computation]>([:])

    /// The computation at `place`, started now if there is none.
    /// - Parameter isBackground: it continues although no caller waits for it.
    func enter(
        _ place: Place, isBackground: Bool, _ run: @escaping @Sendable () async throws -> Entry?
    ) -> Computation {
        let (computation, isNew) = underWay.withLock { table in
            // One that is over, or that its last caller has left, is no longer to be joined.
            if let known = table[place], known.admit(isBackground: isBackground) { return (known, false) }
            let fresh = Computation(isBackground: isBackground)
            table[place] = fresh
            return (fresh, true)
        }
        guard isNew else { return computation }
        computation.start { [self] in
            let result: Result<Entry?, any Error>
            do {
                result = .success(try await run())
            } catch {
                result = .failure(error)
            }
            underWay.withLock { if $0[place] === computation { $0[place] = nil } }
            computation.finish(result)
        }
        return computation
    }

    /// True while the value of a key is computed or stored.
    func isUnderWay(_ key: Key) -> Bool { underWay.withLock { $0.keys.contains { $0.key == key } } }

    /// How many callers wait for the value of a key.
    func callers(of key: Key) -> Int {
        underWay.withLock { $0.reduce(0) { $1.key.key == key ? $0 + $1.value.waiting : $0 } }
    }
}

/// A value that is being computed, and who waits for it.
final class Computation: Sendable {
    private struct State {
        var waiters: [UInt64: CheckedContinuation<Entry?, any Error>] = [:]
        var next: UInt64 = 0
        /// Callers that have entered and do not wait yet count as well.
        var callers: Int
        var isBackground: Bool
        var isCancelled = false
        var task: Task<Void, Never>?
        var result: Result<Entry?, any Error>?
    }

    private let state: Mutex<State>

    init(isBackground: Bool) {
        state = Mutex(State(callers: isBackground ? 0 : 1, isBackground: isBackground))
    }

    func start(_ body: @escaping @Sendable () async -> Void) {
        // No child of the caller's task: it outlives that while others wait.
        let task = Task { await body() }
        let isCancelled = state.withLock { state in
            state.task = task
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    var waiting: Int { state.withLock { $0.waiters.count } }

    /// Counts one more caller; false if it is too late for that.
    func admit(isBackground: Bool) -> Bool {
        state.withLock { state in
            if state.isCancelled || state.result != nil { return false }
            if !isBackground { state.callers += 1 }
            return true
        }
    }

    /// Waits for the value. Once for each caller that was admitted.
    func join() async throws -> Entry? {
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let early: Result<Entry?, any Error>? = state.withLock { state in
                    if let result = state.result { return result }
                    state.waiters[number] = continuation
                    return nil
                }
                if let early { return continuation.resume(with: early) }
                // Cancelled before it waited: the handler has found nothing to resume.
                if Task.isCancelled { leave(number) }
            }
        } onCancel: {
            leave(number)
        }
    }

    /// A caller goes. The last one takes the computation with it.
    private func leave(_ number: UInt64) {
        let (continuation, task) = state.withLock {
            state -> (CheckedContinuation<Entry?, any Error>?, Task<Void, Never>?) in
            guard let continuation = state.waiters.removeValue(forKey: number) else { return (nil, nil) }
            state.callers -= 1
            guard state.callers == 0, !state.isBackground else { return (continuation, nil) }
            state.isCancelled = true
            return (continuation, state.task)
        }
        // Not under the lock: a task's own lock may be held by the thread that cancels it.
        task?.cancel()
        continuation?.resume(throwing: CancellationError())
    }

    func finish(_ result: Result<Entry?, any Error>) {
        let waiters = state.withLock { state in
            state.result = result
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume(with: result) }
    }
}
