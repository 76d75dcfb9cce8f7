import Larder
import Locks

/// The policy for remembering an origin that failed (``HTTPCacheConfiguration/originFailureMemory``).
///
/// While an origin is remembered, requests that a stale response may answer get that immediately, without asking. When
/// the time is over, one of them asks again and the others still do not. A failure is a connection that could not be
/// made or that ended before an answer, or a time limit that passed; an answer of any status ends the memory. If a
/// request fails while the origin answers others, the failure concerns that request only.
///
/// A request that no stale response may answer is sent anyway, as otherwise its failure would be certain. It ends with
/// the remembered failure only if ``attemptsBeforeFailingFast`` attempts in a row found no connection, and another
/// request is asking at this moment. An origin that accepts connections and does not answer is still asked: otherwise a
/// client that knows one slow path could keep all others from it.
public struct OriginFailureMemory: Sendable, Hashable {
    /// The time after the first failure. Default: 1 s. It doubles with each further one.
    public var first: Duration
    /// The longest time. Default: 30 s.
    public var longest: Duration
    /// Failures to connect in a row, after which requests without a stale response do not all wait for another attempt.
    /// Default: 3.
    public var attemptsBeforeFailingFast: Int

    /// Makes a setting. Each parameter sets the property of its name, and has the default that the property states.
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
        /// Attempts in a row that found no connection.
        var attempts: Int
        /// How long is waited, and until when.
        var pause: Duration
        var until: Timestamp
        /// Until when the others leave it to one to find out whether the origin is back. One that hangs, or sends a
        /// long content, does not hold them up forever.
        var probedUntil: Timestamp?

        func isProbed(at now: Timestamp) -> Bool { probedUntil.map { now < $0 } ?? false }
    }

    private struct State {
        var failures: [String: Failure] = [:]
        /// The number of each origin's last answer, and that of the last answer of all.
        var answers: [String: Int] = [:]
        var lastAnswer = 0
    }

    /// The most origins that are remembered: beyond it those go whose time is over, then any.
    private static let limit = 4_096
    private let memory: OriginFailureMemory?
    private let state = Mutex(State())

    init(_ memory: OriginFailureMemory?) { self.memory = memory }

    enum Admission {
        /// Ask; and tell how it went.
        case ask
        /// Ask: this is the one that finds out whether the origin is back.
        case probe
        /// Do not.
        case refuse(FetchError)
    }

    /// The number of the last answer: what a request that is sent now knows of. For ``failed(_:_:since:isProbe:now:)``.
    var lastAnswer: Int { state.withLock { $0.lastAnswer } }

    /// Whether a request may be sent.
    /// - Parameter hasFallback: whether a stored response may take the place of the answer. Called only if the origin
    ///   failed.
    func admit(_ origin: String, now: Timestamp, hasFallback: () -> Bool) -> Admission {
        guard memory != nil, state.withLock({ $0.failures[origin] != nil }) else { return .ask }
        let hasFallback = hasFallback()
        return state.withLock { state in
            guard let failure = state.failures[origin], let memory else { return .ask }
            if hasFallback {
                if now < failure.until || failure.isProbed(at: now) { return .refuse(failure.error) }
            } else {
                guard failure.attempts >= memory.attemptsBeforeFailingFast else { return .ask }
                if failure.isProbed(at: now) { return .refuse(failure.error) }
            }
            state.failures[origin]?.probedUntil = now + failure.pause
            return .probe
        }
    }

    /// Whether an origin failed lately.
    func isRemembered(_ origin: String) -> Bool { memory != nil && state.withLock { $0.failures[origin] != nil } }

    /// The origin answered.
    func succeeded(_ origin: String) {
        guard memory != nil else { return }
        state.withLock { state in
            if !state.failures.isEmpty { state.failures[origin] = nil }
            // An origin whose number is lost may get a failure counted that is not one: then others get a stale
            // response for a second.
            if state.answers.count >= Self.limit, state.answers[origin] == nil { state.answers.removeAll() }
            state.lastAnswer += 1
            state.answers[origin] = state.lastAnswer
        }
    }

    /// The request ended without an answer: through the origin's fault, or not.
    /// - Parameter answer: ``lastAnswer`` when it was sent.
    func failed(_ origin: String, _ error: FetchError, since answer: Int, isProbe: Bool, now: Timestamp) {
        guard let memory else { return }
        state.withLock { state in
            if isProbe { state.failures[origin]?.probedUntil = nil }
            let isUnreachable: Bool
            switch error.transport?.code {
            case .cannotConnect: isUnreachable = true
            case .timedOut: isUnreachable = error.transport?.mayHaveBeenSeen == false
            case .closed: isUnreachable = false
            default: return
            }
            // Others had answers meanwhile: it was this request that the origin did not answer.
            if let last = state.answers[origin], last > answer { return }
            guard var failure = state.failures[origin] else {
                Self.makeRoom(&state.failures, now)
                state.failures[origin] = Failure(
                    error: error, attempts: isUnreachable ? 1 : 0, pause: memory.first, until: now + memory.first)
                return
            }
            failure.attempts = isUnreachable ? failure.attempts + 1 : 0
            failure.error = error
            // Many that fail together are one failure.
            if now >= failure.until {
                failure.pause = min(failure.pause * 2, memory.longest)
                failure.until = now + failure.pause
            }
            state.failures[origin] = failure
        }
    }

    private static func makeRoom(_ failures: inout [String: Failure], _ now: Timestamp) {
        guard failures.count >= limit else { return }
        failures = failures.filter { $0.value.until > now }
        if failures.count >= limit { failures.removeAll() }
    }
}
