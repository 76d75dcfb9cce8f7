import NIOCore

/// How fast a client is that is waited for.
struct HTTP2RateWatch {
    /// When it was last fast enough, or waiting for it began; nil while it is not waited for.
    private var mark: (time: NIODeadline, bytes: Int64)?

    /// Whether the client has come on since the mark.
    func hasGained(_ bytes: Int64) -> Bool { mark.map { bytes > $0.bytes } ?? true }

    /// Whether `bytes` grew by less than ``GatewayLimits/minimumRate`` asks for, during a ``GatewayLimits/stallTimeout`` in
    /// which the client was waited for.
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
