import NIOCore

/// What a connection is doing.
enum HTTP1Phase {
    /// It waits for the head of a request, or has a part of one.
    case head
    /// It reads or answers a request.
    case exchange
    /// Everything is written, and the client has time to read it before the connection closes.
    case lingering
    /// It passes bytes in both directions.
    case tunnel
    /// It has ended.
    case over
}

/// The limits in time of a connection: sees how far the client has come, and says what is late.
struct HTTP1Deadlines {
    /// What a look at the connection found.
    struct Situation {
        var phase: HTTP1Phase
        /// When the first byte of an incomplete head came.
        var headBegan: NIODeadline?
        /// Start of the request whose answer the client is taking.
        var answeredRequestBegan: NIODeadline?
        /// Start of the request whose content is incomplete.
        var contentBegan: NIODeadline?
        /// Whether the gateway waits for that content.
        var isContentWanted = false
        /// Bytes received from the client, and handed on for it.
        var received: Int64
        var queued: Int64
        /// Of these, bytes that the channel still holds.
        var pending: Int
    }

    enum Verdict {
        case inTime
        /// The head of a request took too long.
        case headIsLate
        /// The content of a request took too long, or comes too slowly.
        case contentIsLate
        /// The client takes an answer too slowly.
        case isTooSlow
        /// Nothing has happened for as long as the phase allows.
        case isIdle
    }

    /// How long a client has to read the end of the last answer, after what it sent last.
    private static let lingering = TimeAmount.seconds(2)
    /// How long it may send after that answer.
    private static let longestLingering = TimeAmount.seconds(30)

    /// When the phase began.
    private var since: NIODeadline
    private var outbound = AcknowledgementWatch()
    private var inbound = RateWatch()
    /// When a tunnel last moved bytes, or a client last sent some after the last answer, and how many they were by
    /// then.
    private var moved: (time: NIODeadline, bytes: Int64)?

    init(_ now: NIODeadline) { since = now }

    /// A phase begins, or a connection between two requests has answered one.
    mutating func restart(_ now: NIODeadline) { since = now }

    /// Judges the connection.
    /// - Parameter unacknowledged: tells how many bytes the system holds; costs a system call.
    mutating func check(
        _ situation: Situation, _ now: NIODeadline, _ limits: GatewayLimits, unacknowledged: () -> Int
    ) -> Verdict {
        switch situation.phase {
        case .head:
            if let headBegan = situation.headBegan {
                return now - headBegan > TimeAmount(limits.headTimeout) ? .headIsLate : .inTime
            }
            let isIdle = now - since > TimeAmount(limits.idleTimeout)
            if isTooSlow(situation, countsSystem: isIdle, now, limits, unacknowledged) { return .isTooSlow }
            return isIdle && !outbound.isWaiting ? .isIdle : .inTime
        case .exchange:
            if isTooSlow(situation, now, limits, unacknowledged) { return .isTooSlow }
            return isContentLate(situation, now, limits) ? .contentIsLate : .inTime
        case .lingering:
            if isTooSlow(situation, now, limits, unacknowledged) { return .isTooSlow }
            if outbound.isWaiting { return .inTime }
            let idle = min(idleTime(situation.received, now), now - since)
            return idle > Self.lingering || now - since > Self.longestLingering ? .isIdle : .inTime
        case .tunnel:
            let idle = idleTime(situation.queued &+ situation.received, now)
            return idle > TimeAmount(limits.tunnelIdleTimeout) ? .isIdle : .inTime
        case .over:
            return .inTime
        }
    }

    /// How long the number of bytes has been the same.
    private mutating func idleTime(_ bytes: Int64, _ now: NIODeadline) -> TimeAmount {
        if let moved, moved.bytes == bytes { return now - moved.time }
        moved = (now, bytes)
        return .zero
    }

    /// Whether the client takes its answers too slowly, or has had all the time there is for one.
    /// - Parameter countsSystem: whether bytes count that only the system still holds.
    private mutating func isTooSlow(
        _ situation: Situation, countsSystem: Bool = false, _ now: NIODeadline, _ limits: GatewayLimits,
        _ unacknowledged: () -> Int
    ) -> Bool {
        guard situation.pending > 0 || countsSystem else {
            outbound.reset()
            return false
        }
        let unacknowledged = unacknowledged()
        guard situation.pending > 0 || unacknowledged > 0 else {
            outbound.reset()
            return false
        }
        let wasWaiting = outbound.isWaiting
        let acknowledged = situation.queued - Int64(situation.pending) - Int64(unacknowledged)
        let isTooSlow = outbound.isTooSlow(acknowledged: acknowledged, now, limits)
        if wasWaiting, let limit = limits.responseTimeout, let start = situation.answeredRequestBegan,
            now - start > TimeAmount(limit)
        {
            return true
        }
        return isTooSlow
    }

    /// Whether content that the gateway waits for comes too slowly, or has had all the time there is.
    private mutating func isContentLate(
        _ situation: Situation, _ now: NIODeadline, _ limits: GatewayLimits
    ) -> Bool {
        if let start = situation.contentBegan, now - start > TimeAmount(limits.contentTimeout) { return true }
        let isWaiting = situation.contentBegan != nil && situation.isContentWanted
        return inbound.isTooSlow(isWaiting, situation.received, now, limits)
    }
}

extension HTTP1Deadlines.Situation {
    /// What a look at a connection finds.
    /// - Parameters:
    ///   - current: the request that is being read or answered.
    ///   - pending: bytes that the channel still holds.
    init(
        _ phase: HTTP1Phase, _ input: HTTP1Input, _ output: HTTP1Output, _ current: CurrentRequest?, pending: Int
    ) {
        let content = current?.isIncomplete == true ? current?.content : nil
        self.init(
            phase: phase, headBegan: input.headBegan,
            answeredRequestBegan: (output.firstUnsent ?? current?.record)?.start,
            contentBegan: content == nil ? nil : current?.record.start,
            isContentWanted: content.map { !$0.owesContinue && $0.takesMore } ?? false,
            received: input.received, queued: output.queuedBytes, pending: pending)
    }
}
