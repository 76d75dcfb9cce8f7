import Larder
import Synchronization

/// How long an origin that failed is remembered (``HTTPCacheConfiguration/originFailureMemory``).
///
/// While it is, requests that a stale response may answer get that at once, without asking; when the time is over, one of
/// them asks again and the others still do not. A failure is a connection that could not be made or ended before an answer,
/// and a time limit that passed; an answer of any status ends the memory.
///
/// A request that no stale response may answer is sent all the same, for its failure would be certain otherwise. Only when
/// ``attemptsBeforeFailingFast`` attempts in a row have failed, and another request is asking at this moment, it ends
/// with the failure that is remembered.
public struct OriginFailureMemory: Sendable, Hashable {
    /// After the first failure. Default: 1 s. It doubles with each that follows.
    public var first: Duration
    /// At most. Default: 30 s.
    public var longest: Duration
    /// Failures in a row after which requests without a stale response do not all wait for another. Default: 3.
    public var attemptsBeforeFailingFast: Int

    /// Makes a setting; each value has a default.
    public init(
        first: Duration = .seconds(1), longest: Duration = .seconds(30), attemptsBeforeFailingFast: Int = 3
    ) {
        self.first = first
        self.longest = longest
        self.attemptsBeforeFailingFast = attemptsBeforeFailingFast
    }
}

/// The origins that failed lately.
final class OriginFailures: Sendable {
    private struct Failure {
        var error: FetchError
        /// Attempts in a row that failed.
        var attempts: Int
        /// How long is waited, and until when.
        var pause: Duration
        var until: Timestamp
        /// Until when the others leave it to one to find out whether the origin is back. One that hangs, or sends a long
        /// content, does not keep them for ever.
        var probedUntil: Timestamp?

        func isProbed(at now: Timestamp) -> Bool { probedUntil.map { now < $0 } ?? false }
    }

    /// The most origins that are remembered: beyond it those go whose time is over, then any.
    private static let limit = 4_096
    private let memory: OriginFailureMemory?
    private let failures = Mutex<[String: Failure]>([:])

    init(_ memory: OriginFailureMemory?) { self.memory = memory }

    enum Admission {
        /// Ask; and tell how it went.
        case ask
        /// Ask: this is the one that finds out whether the origin is back.
        case probe
        /// Do not.
        case refuse(FetchError)
    }

    /// Whether a request may be sent.
    /// - Parameter hasFallback: whether a stored response may take the place of the answer. Called only if the origin failed.
    func admit(_ origin: String, now: Timestamp, hasFallback: () -> Bool) -> Admission {
        guard memory != nil, failures.withLock({ $0[origin] != nil }) else { return .ask }
        let hasFallback = hasFallback()
        return failures.withLock { failures in
            guard let failure = failures[origin], let memory else { return .ask }
            if hasFallback {
                if now < failure.until || failure.isProbed(at: now) { return .refuse(failure.error) }
            } else {
                guard failure.attempts >= memory.attemptsBeforeFailingFast else { return .ask }
                if failure.isProbed(at: now) { return .refuse(failure.error) }
            }
            failures[origin]?.probedUntil = now + failure.pause
            return .probe
        }
    }

    /// The origin answered.
    func succeeded(_ origin: String) {
        failures.withLock { failures in
            if !failures.isEmpty { failures[origin] = nil }
        }
    }

    /// The request ended without an answer: through the origin's fault, or not.
    func failed(_ origin: String, _ error: FetchError, isProbe: Bool, now: Timestamp) {
        guard let memory else { return }
        failures.withLock { failures in
            if isProbe { failures[origin]?.probedUntil = nil }
            switch error.transport?.kind {
            case .cannotConnect, .timedOut, .closed: break
            default: return
            }
            guard var failure = failures[origin] else {
                Self.makeRoom(&failures, now)
                failures[origin] = Failure(
                    error: error, attempts: 1, pause: memory.first, until: now + memory.first)
                return
            }
            failure.attempts += 1
            failure.error = error
            // Many that fail together are one failure.
            if now >= failure.until {
                failure.pause = min(failure.pause * 2, memory.longest)
                failure.until = now + failure.pause
            }
            failures[origin] = failure
        }
    }

    private static func makeRoom(_ failures: inout [String: Failure], _ now: Timestamp) {
        guard failures.count >= limit else { return }
        failures = failures.filter { $0.value.until > now }
        if failures.count >= limit { failures.removeAll() }
    }
}
