import NIOCore

/// What limits in time are measured with.
package protocol GatewayTime: Sendable {
    /// Now.
    func now() -> NIODeadline
    /// Seconds since 1970, for the access log.
    func wallSeconds() -> Int64
    /// Whether connections are looked at every so often; false where a test says when (`Gateway.tick()`).
    var ticks: Bool { get }
}

struct SystemTime: GatewayTime {
    func now() -> NIODeadline { .now() }
    func wallSeconds() -> Int64 { Int64(WallClock.now().seconds) }
    var ticks: Bool { true }
}
