/// Puts and removals that could not be committed, by cause.
struct CommitFailures: Sendable {
    /// Keys kept for a cause; the others are counted.
    static let keyLimit = 10_000

    private struct Cause: Hashable {
        let code: LarderError.Code
        let message: String
    }

    private var positions: [Cause: Int] = [:]
    /// One for each cause, in the order in which they came.
    private(set) var errors: [LarderError] = []

    /// Adds a change that failed.
    mutating func add(_ change: PendingChange) {
        guard var failure = change.failure else { return }
        failure.keys = [change.key]
        failure.keyCount = 1
        add(failure)
    }

    mutating func add(_ other: CommitFailures) {
        for error in other.errors { add(error) }
    }

    private mutating func add(_ failure: LarderError) {
        let cause = Cause(code: failure.code, message: failure.message)
        guard let position = positions[cause] else {
            positions[cause] = errors.count
            return errors.append(failure)
        }
        errors[position].keyCount += failure.keyCount
        let room = Self.keyLimit - errors[position].keys.count
        errors[position].keys += failure.keys.prefix(room)
    }

    /// One error for all of them: that of the first cause, with the keys of every cause. Nil if nothing failed.
    var error: LarderError? {
        guard var error = errors.first else { return nil }
        if errors.count > 1 {
            error.failures = errors
            error.keyCount = errors.reduce(0) { $0 + $1.keyCount }
            error.keys = Array(errors.lazy.flatMap(\.keys).prefix(Self.keyLimit))
        }
        return error
    }
}
