import Locks

/// What of the engine's own work fails at the moment.
final class Health: Sendable {
    private struct Standing: Sendable {
        var failure: StandingFailure
        /// The code and the error underneath. The message may name a key, and differ each time.
        var cause: String
    }

    private let standing = EngineMutex<[StandingFailure.Work: Standing]>([:])
    /// Looked at with every commit, before the lock.
    private let count = Atomic<Int>(0)

    /// Everything that fails now, in the order of `StandingFailure.Work`.
    var failures: [StandingFailure] {
        if count.load(ordering: .acquiring) == 0 { return [] }
        return standing.withLock { standing in StandingFailure.Work.allCases.compactMap { standing[$0]?.failure } }
    }

    /// Notes a failure; true if this work did not fail before, or for another cause.
    func note(_ error: LarderError, of work: StandingFailure.Work, at moment: Timestamp) -> Bool {
        let cause = "\(error.code) \(error.cause.map { "\($0)" } ?? "")"
        return standing.withLock { standing in
            defer { count.store(standing.count, ordering: .releasing) }
            guard var known = standing[work] else {
                let failure = StandingFailure(
                    work: work, code: error.code, message: error.message, since: moment, count: 1)
                standing[work] = Standing(failure: failure, cause: cause)
                return true
            }
            defer { standing[work] = known }
            known.failure.code = error.code
            known.failure.message = error.message
            known.failure.count += 1
            defer { known.cause = cause }
            return known.cause != cause
        }
    }

    /// The work was done; returns the failure that this ends, if there was one.
    func clear(_ work: StandingFailure.Work) -> StandingFailure? {
        if count.load(ordering: .acquiring) == 0 { return nil }
        return standing.withLock { standing in
            defer { count.store(standing.count, ordering: .releasing) }
            return standing.removeValue(forKey: work)?.failure
        }
    }
}

/// When work that failed is tried again: after 100 ms, then after twice the time, up to 10 s.
struct Backoff {
    static let first: UInt64 = 100_000_000
    static let longest: UInt64 = 10_000_000_000

    private var delay: UInt64 = 0
    private var due: UInt64 = 0

    /// Nanoseconds until the next try; 0: now.
    func remaining(at uptime: UInt64) -> UInt64 { due > uptime ? due - uptime : 0 }

    mutating func failed(at uptime: UInt64) {
        delay = delay == 0 ? Self.first : min(delay * 2, Self.longest)
        due = uptime &+ delay
    }

    mutating func reset() { self = Backoff() }
}

/// When work that is done in slices continues.
struct Pace {
    /// Between looks when there was nothing left to do.
    static let interval: UInt64 = 1_000_000_000

    private var due: UInt64 = 0
    private var backoff = Backoff()

    /// Nanoseconds until the next slice; 0: now.
    func remaining(at uptime: UInt64) -> UInt64 { due > uptime ? due - uptime : 0 }

    /// - Parameters:
    ///   - took: nanoseconds that the slice took.
    ///   - isMore: true if the next one should follow, after three times as long.
    mutating func done(at uptime: UInt64, took: UInt64, isMore: Bool) {
        backoff.reset()
        due = uptime &+ (isMore ? min(took &* 3, Self.interval) : Self.interval)
    }

    mutating func failed(at uptime: UInt64) {
        backoff.failed(at: uptime)
        due = uptime &+ max(backoff.remaining(at: uptime), Self.interval)
    }
}
