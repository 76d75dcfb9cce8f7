import NIOCore

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// What limits in time are measured with.
package protocol ServerTime: Sendable {
    /// Now.
    func now() -> NIODeadline
    /// Seconds since 1970, for the access log.
    func wallSeconds() -> Int64
    /// Whether connections are looked at every so often; false where a test says when (``Server/tick()``).
    var ticks: Bool { get }
}

struct SystemTime: ServerTime {
    func now() -> NIODeadline { .now() }
    func wallSeconds() -> Int64 { Int64(WallClock.now().seconds) }
    var ticks: Bool { true }
}

/// The time of day.
enum WallClock {
    /// Seconds and nanoseconds since 1970 UTC: clock_gettime(2).
    static func now() -> (seconds: Int, nanoseconds: Int) {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return (time.tv_sec, time.tv_nsec)
    }
}
