import NIOCore

/// Judges how fast a client moves bytes while the gateway waits for it: content that it sends, or responses that it
/// takes.
struct RateWatch {
    /// When the client was last fast enough, or the wait began; nil while the gateway does not wait for it.
    private var mark: (time: NIODeadline, bytes: Int64)?

    /// Whether the client has moved bytes since the mark.
    func hasGained(_ bytes: Int64) -> Bool { mark.map { bytes > $0.bytes } ?? true }

    /// Judges the client.
    /// - Parameters:
    ///   - isWaiting: whether the gateway waits for the client now.
    ///   - bytes: how many bytes the client has moved in all.
    /// - Returns: true if `bytes` grew by less than ``GatewayLimits/minimumRate`` demands, over a
    ///   ``GatewayLimits/stallTimeout`` during which the gateway waited.
    mutating func isTooSlow(_ isWaiting: Bool, _ bytes: Int64, _ now: NIODeadline, _ limits: GatewayLimits) -> Bool {
        guard isWaiting else {
            mark = nil
            return false
        }
        guard let last = mark else {
            mark = (now, bytes)
            return false
        }
        let elapsed = now - last.time
        guard elapsed >= TimeAmount(limits.stallTimeout) else { return false }
        let least = Double(limits.minimumRate) * Double(elapsed.nanoseconds) / 1e9
        if Double(bytes - last.bytes) < max(1, least) { return true }
        mark = (now, bytes)
        return false
    }
}

/// Judges how fast a client takes what a connection sends, by what the client's system acknowledges.
///
/// The system of this machine takes some MB of a response at once, and no more for a long time, so its progress says
/// little. The client's system acknowledges in steps, as a good part of its buffer has to be free before it asks for
/// more (RFC 9293 section 3.8.6.2.2), so a client may lag by one step. Every byte that it moves puts off the time at
/// which more is due, but never further than one step takes at the minimum rate.
struct AcknowledgementWatch {
    /// The largest steps in which systems acknowledge, measured over loopback with Linux, in bytes.
    private static let steps = 96 << 10

    /// When more is due, by the bytes that the client had taken then; nil while the gateway does not wait for it.
    private var due: (time: NIODeadline, bytes: Int64)?

    /// Whether the gateway waits for the client.
    var isWaiting: Bool { due != nil }

    /// The gateway does not wait for the client now.
    mutating func reset() { due = nil }

    /// Judges the client while the gateway waits for it.
    /// - Parameter bytes: how many bytes the client's system has acknowledged in all.
    /// - Returns: true if it is further behind the minimum rate than ``GatewayLimits/stallTimeout`` allows.
    mutating func isTooSlow(acknowledged bytes: Int64, _ now: NIODeadline, _ limits: GatewayLimits) -> Bool {
        let rate = Double(max(1, limits.minimumRate))
        let lead = Double(Self.steps) / rate
        guard let last = due else {
            due = (now + .rounding(lead), bytes)
            return false
        }
        let gained = min(lead, Double(max(0, bytes - last.bytes)) / rate)
        let time = min(last.time + .rounding(gained), now + .rounding(lead))
        due = (time, bytes)
        return now - time > TimeAmount(limits.stallTimeout)
    }
}

extension TimeAmount {
    static func rounding(_ seconds: Double) -> TimeAmount { .nanoseconds(Int64(seconds * 1e9)) }
}
