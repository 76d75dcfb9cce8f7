import NIOCore

/// The limits in time of an HTTP/2 connection: sees how far the client has come, and says what is late. Its streams
/// have limits of their own: ``HTTP2Stream/tick(_:)``.
struct HTTP2Deadlines {
    /// What a look at the connection found.
    struct Situation {
        /// Whether a stream is open.
        var hasStreams: Bool
        /// Whether the kernel has taken everything that was sent.
        var isAllTaken: Bool
        /// Whether something is there for the client that it does not take, for another reason than a stream's own
        /// window.
        var isBlocked: Bool
        /// Content that the kernel has taken, in bytes.
        var taken: Int64
        /// Of this, what the client's system has not acknowledged.
        var unacknowledged: Int
    }

    enum Verdict {
        case inTime
        /// The client takes what is sent too slowly.
        case isTooSlow
        /// Nothing has happened for as long as an idle connection is kept.
        case isIdle
    }

    /// When the connection was last busy.
    private var since: NIODeadline
    /// How fast the client takes what is sent.
    private var outbound = AcknowledgementWatch()
    private var client = ClientProgress()

    init(_ now: NIODeadline) { since = now }

    /// A stream has ended, or the connection begins to close.
    mutating func restart(_ now: NIODeadline) { since = now }

    /// Bytes that the client has taken since the look before last.
    func progress(taken: Int64) -> Int64 { client.bytes(moved: taken) }

    /// Judges the connection.
    mutating func check(_ situation: Situation, _ now: NIODeadline, _ limits: GatewayLimits) -> Verdict {
        client.look(moved: situation.taken)
        let isIdle = !situation.hasStreams && situation.isAllTaken && now - since > TimeAmount(limits.idleTimeout)
        // What only the system still holds counts on a connection that is idle otherwise.
        guard situation.isBlocked || (isIdle && situation.unacknowledged > 0) else {
            outbound.reset()
            return isIdle ? .isIdle : .inTime
        }
        let acknowledged = situation.taken - Int64(situation.unacknowledged)
        return outbound.isTooSlow(acknowledged: acknowledged, now, limits) ? .isTooSlow : .inTime
    }
}
