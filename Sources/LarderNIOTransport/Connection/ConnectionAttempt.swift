import LarderHTTP
import Locks
import NIOCore

/// One connection that is being opened; ends once. Safe to use from any thread.
final class ConnectionAttempt: Sendable {
    typealias Outcome = Result<ConnectionOpening.Outcome, TransportError>

    private struct State {
        var receive: (@Sendable (Outcome) -> Void)?
        var channel: (any Channel)?
        var outcome: Outcome?
    }

    private let state = Mutex(State())

    /// - Parameter receive: gets the outcome.
    /// - Returns: false when it was ended before; `receive` has been called then.
    func begin(_ receive: @escaping @Sendable (Outcome) -> Void) -> Bool {
        let outcome = state.withLock { state in
            if state.outcome == nil { state.receive = receive }
            return state.outcome
        }
        if let outcome { receive(outcome) }
        return outcome == nil
    }

    /// The channel to close if it is not wanted any more.
    func note(_ channel: any Channel) {
        let isOver = state.withLock { state in
            state.channel = channel
            return state.outcome != nil
        }
        if isOver { channel.close(promise: nil) }
    }

    /// - Returns: false when it was over before, and the outcome is not wanted.
    @discardableResult
    func end(_ outcome: Outcome) -> Bool {
        let (receive, channel, isFirst) = state.withLock { state in
            guard state.outcome == nil else {
                return (nil, nil, false) as ((@Sendable (Outcome) -> Void)?, (any Channel)?, Bool)
            }
            state.outcome = outcome
            defer { state.receive = nil }
            return (state.receive, state.channel, true)
        }
        if case .failure = outcome { channel?.close(promise: nil) }
        receive?(outcome)
        return isFirst
    }
}
