/// A point in time by which something has to be over.
struct Deadline: Sendable {
    private let end: ContinuousClock.Instant

    init(after time: Duration) { end = .now + time }

    var hasPassed: Bool { end <= .now }
    /// The time that is left; not negative.
    var rest: Duration { max(.zero, end - .now) }

    /// Runs `body`, and cancels it when the time is over. Returns what `body` does, or fails with `error`.
    func limit<Value: Sendable, Failure: Error>(
        _ error: Failure, _ body: @escaping @Sendable () async -> Result<Value, Failure>
    ) async -> Result<Value, Failure> {
        await withTaskGroup(of: Step<Value, Failure>.self) { group in
            group.addTask { .done(await body()) }
            group.addTask { [end] in
                do {
                    try await Task.sleep(until: end, clock: .continuous)
                    return .passed
                } catch {
                    return .cancelled
                }
            }
            defer { group.cancelAll() }
            while let step = await group.next() {
                switch step {
                case .done(let result): return result
                case .passed: return .failure(error)
                // Cancelled from outside, which `body` hears of too.
                case .cancelled: continue
                }
            }
            return .failure(error)
        }
    }
}

private enum Step<Value: Sendable, Failure: Error>: Sendable {
    case done(Result<Value, Failure>)
    case passed
    case cancelled
}
