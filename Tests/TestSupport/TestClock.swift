import Larder
import Locks

/// A clock that stands still until a test moves it.
public final class TestClock: StoreClock {
    private struct Time {
        var wall: Timestamp
        var uptime: UInt64
    }

    private let time: Mutex<Time>

    /// A clock at 2026-01-01 00:00 UTC, the machine up for an hour.
    public init(wall: Timestamp = Timestamp(microseconds: 1_767_225_600_000_000), uptime: UInt64 = 3_600_000_000_000) {
        time = Mutex(Time(wall: wall, uptime: uptime))
    }

    /// The wall clock as it was set.
    public func now() -> Timestamp { time.withLock { $0.wall } }

    /// The uptime as it was set, in nanoseconds.
    public func uptime() -> UInt64 { time.withLock { $0.uptime } }

    /// Time passes: both clocks move.
    public func advance(by duration: Duration) {
        time.withLock { time in
            time.wall = time.wall + duration
            time.uptime += UInt64(duration / .nanoseconds(1))
        }
    }

    /// Sets the wall clock, as a user would: no time passes.
    public func jump(by duration: Duration) {
        time.withLock { $0.wall = $0.wall + duration }
    }
}
