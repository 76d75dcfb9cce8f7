import Locks

/// The values that this process computes now: one computation for each key, however many wait for it.
final class Computations: Sendable {
    /// Whose value: stores of different application versions have values of their own.
    struct Place: Hashable, Sendable {
        let key: Key
        let version: UInt16?
    }

    private let underWay = EngineMutex<[Place: Computation]>([:])
    /// Until when no value is refreshed that could not be lately, in nanoseconds of uptime.
    private let pauses = EngineMutex<[Place: UInt64]>([:])

    /// Nanoseconds from a refresh that failed to the next one.
    private static let pause: UInt64 = 5_000_000_000

    /// Computes the value at `place` in the background, unless that is under way, or failed just now.
    /// - Parameters:
    ///   - uptime: now, in nanoseconds.
    ///   - failed: told of the failure, which has no caller.
    func refresh(
        _ place: Place, uptime: @escaping @Sendable () -> UInt64, failed: @escaping @Sendable (any Error) -> Void,
        _ run: @escaping @Sendable (Computation) async throws -> Entry?
    ) {
        let now = uptime()
        if pauses.withLock({ ($0[place] ?? 0) > now }) { return }
        _ = enter(place, isBackground: true) { [self] computation in
            do {
                let entry = try await run(computation)
                pauses.withLock { $0[place] = nil }
                return entry
            } catch {
                if !(error is CancellationError) {
                    pause(place, at: uptime())
                    failed(error)
                }
                throw error
            }
        }
    }

    private func pause(_ place: Place, at now: UInt64) {
        pauses.withLock { pauses in
            if pauses.count >= 1000 { pauses = pauses.filter { $0.value > now } }
            pauses[place] = now &+ Self.pause
        }
    }

    /// The computation at `place`, started now if there is none.
    /// - Parameter isBackground: no caller waits for it. It continues all the same, until one has waited and left.
    func enter(
        _ place: Place, isBackground: Bool, _ run: @escaping @Sendable (Computation) async throws -> Entry?
    ) -> Computation {
        let (computation, isNew) = underWay.withLock { table in
            // One that is over, or that its last caller has left, is no longer to be joined.
            if let known = table[place], known.admit(isBackground: isBackground) { return (known, false) }
            let fresh = Computation(of: place.key, isBackground: isBackground)
            table[place] = fresh
            return (fresh, true)
        }
        guard isNew else { return computation }
        computation.start { [self] in
            let result: Result<Entry?, any Error>
            do {
                result = .success(try await run(computation))
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
        /// It has its value and stores it.
        var isStoring = false
        var task: Task<Void, Never>?
        var result: Result<Entry?, any Error>?
    }

    /// The computation that a task works for: its own task, those that it makes, and what they wait for.
    @TaskLocal static var current: Computation?

    private let key: Key
    private let state: EngineMutex<State>

    init(of key: Key, isBackground: Bool) {
        self.key = key
        state = EngineMutex(State(callers: isBackground ? 0 : 1, isBackground: isBackground))
    }

    func start(_ body: @escaping @Sendable () async -> Void) {
        // No child of the caller's task: it outlives that while others wait.
        let task = Self.$current.withValue(self) { Task { await body() } }
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
            if !isBackground {
                state.callers += 1
                // From now on it ends with its last caller, as any other.
                state.isBackground = false
            }
            return true
        }
    }

    /// True if the value is to be stored, false if the last caller has left. Once it is stored it is not cancelled any
    /// more, so that another computation of the key begins after it is over, and has the last word.
    func beginStoring() -> Bool {
        state.withLock { state in
            if !state.isCancelled { state.isStoring = true }
            return state.isStoring
        }
    }

    /// Waits for the value. Once for each caller that was admitted.
    /// - Throws: `invalidArgument` if the computation waits for the caller, which would never end.
    func join() async throws -> Entry? {
        guard let waiting = Self.current else { return try await wait() }
        guard ComputationWaits.begin(waiting, self) else {
            let task = state.withLock { Self.leave(&$0) }
            task?.cancel()
            throw LarderError(
                .invalidArgument, "the computation of \(waiting.key) asks for \(key), whose computation waits for it",
                key: key)
        }
        defer { ComputationWaits.end(waiting, self) }
        return try await wait()
    }

    private func wait() async throws -> Entry? {
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

    /// A caller leaves. The last one takes the computation with it, unless that stores its value already.
    /// - Returns: the task to cancel, outside the lock.
    private static func leave(_ state: inout State) -> Task<Void, Never>? {
        state.callers -= 1
        guard state.callers == 0, !state.isBackground, !state.isStoring else { return nil }
        state.isCancelled = true
        return state.task
    }

    private func leave(_ number: UInt64) {
        let (continuation, task) = state.withLock {
            state -> (CheckedContinuation<Entry?, any Error>?, Task<Void, Never>?) in
            guard let continuation = state.waiters.removeValue(forKey: number) else { return (nil, nil) }
            return (continuation, Self.leave(&state))
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

/// Which computations of this process wait for which, of whatever store. Those that wait for each other in a circle
/// would do so without end, and with them every caller that comes later.
enum ComputationWaits: ProcessGlobal {
    private final class Waits: Sendable {
        let all = EngineMutex<[ObjectIdentifier: [Computation]]>([:])
    }

    // SAFETY: written only in a child of fork(2), by its only thread.
    nonisolated(unsafe) private static var waits = Waits()

    static func prepare() { _ = waits }

    static func rehearse() {
        var other = Waits()
        replace(&other, with: Waits()).release()
    }

    static func beginAgain() { replace(&waits, with: Waits()) }

    /// Notes that one computation waits for another; false, and nothing is noted, if that one waits for it already.
    static func begin(_ waiting: Computation, _ awaited: Computation) -> Bool {
        waits.all.withLock { waits in
            var known: Set<ObjectIdentifier> = []
            var next = [awaited]
            while let computation = next.popLast() {
                if computation === waiting { return false }
                guard known.insert(ObjectIdentifier(computation)).inserted else { continue }
                next += waits[ObjectIdentifier(computation)] ?? []
            }
            waits[ObjectIdentifier(waiting), default: []].append(awaited)
            return true
        }
    }

    /// The waiting is over.
    static func end(_ waiting: Computation, _ awaited: Computation) {
        waits.all.withLock { waits in
            let id = ObjectIdentifier(waiting)
            guard var rest = waits[id], let place = rest.firstIndex(where: { $0 === awaited }) else { return }
            rest.remove(at: place)
            waits[id] = rest.isEmpty ? nil : rest
        }
    }
}
