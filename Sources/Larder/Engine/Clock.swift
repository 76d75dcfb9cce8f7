import Synchronization

/// Where a store gets the time from. Tests inject their own.
public protocol StoreClock: Sendable {
    /// The wall clock, which may jump.
    func now() -> Timestamp
    /// Nanoseconds since some moment, never going back. Orders accesses; measures what passed while the wall jumped.
    func uptime() -> UInt64
}

/// The machine's clocks: CLOCK_REALTIME and CLOCK_MONOTONIC, about 20 ns a reading.
public struct SystemClock: StoreClock {
    /// The machine's clocks.
    public init() {}

    /// clock_gettime(2), CLOCK_REALTIME.
    public func now() -> Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(microseconds: Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000)
    }

    /// clock_gettime(2), CLOCK_MONOTONIC.
    public func uptime() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}

/// The store's time: the wall clock, except that it never goes back.
///
/// When the wall clock jumps back, store time goes on from the latest moment seen, at the pace of the uptime, so that
/// an expired entry stays expired and a fresh one expires after its lifetime, not a year later. The latest moment
/// is kept in the index, so that the same holds across processes and restarts.
final class EntryClock: Sendable {
    private struct Latest {
        var moment: Int64
        var uptime: UInt64
    }

    let source: any StoreClock
    private let latest: Mutex<Latest>
    private let fastLatest: Atomic<Int64>

    init(source: any StoreClock) {
        self.source = source
        let now = source.now().microseconds
        latest = Mutex(Latest(moment: now, uptime: source.uptime()))
        fastLatest = Atomic(now)
    }

    /// Store time, for judging expiry.
    func now() -> Timestamp {
        let wall = source.now().microseconds
        if wall >= fastLatest.load(ordering: .relaxed) { return Timestamp(microseconds: wall) }
        return latest.withLock { latest in
            let passed = Int64(clamping: (source.uptime() &- latest.uptime) / 1000)
            return Timestamp(microseconds: max(wall, latest.moment + passed))
        }
    }

    /// Store time, remembered as seen: no later reading is earlier.
    @discardableResult
    func advance() -> Timestamp {
        let moment = now()
        observe(moment)
        return moment
    }

    /// Takes note of a moment that another process or an earlier run has seen.
    func observe(_ moment: Timestamp) {
        latest.withLock { latest in
            guard moment.microseconds > latest.moment else { return }
            latest = Latest(moment: moment.microseconds, uptime: source.uptime())
            fastLatest.store(moment.microseconds, ordering: .relaxed)
        }
    }
}
