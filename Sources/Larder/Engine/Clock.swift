import Locks

/// The source of time of a store. Tests inject their own.
public protocol StoreClock: Sendable {
    /// The wall clock, which may jump.
    func now() -> Timestamp
    /// Nanoseconds since some moment, never going back. Orders accesses, and measures the time that passed while the
    /// wall clock jumped. Only the readings of `SystemClock` are compared with those of other processes.
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

    /// clock_gettime(2), CLOCK_MONOTONIC; CLOCK_MONOTONIC_RAW on Darwin, where CLOCK_MONOTONIC counts microseconds.
    public func uptime() -> UInt64 {
        #if canImport(Darwin)
            return clock_gettime_nsec_np(CLOCK_MONOTONIC_RAW)
        #else
            var time = timespec()
            clock_gettime(CLOCK_MONOTONIC, &time)
            return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
        #endif
    }
}

/// The store's time: the wall clock, except that it never goes back and never falls behind the uptime.
///
/// When the wall clock jumps back, store time continues from the latest moment seen, at the pace of the uptime, so that
/// an expired entry stays expired and a fresh one expires after its lifetime, not a year later. The latest moment is
/// kept in the index, so that the same holds across processes and restarts. So is how far it is from the uptime, which
/// all processes have in common until the machine starts again: time passes also while none has the store open.
final class EntryClock: Sendable {
    let source: any StoreClock
    /// The latest moment seen less the uptime then, in microseconds: store time is never less than uptime plus this.
    private let latest: Atomic<Int64>
    private let hasNews = Atomic<Bool>(false)
    /// The run of the machine that the uptime counts in; 0 if it is not known, or the clock is the application's own.
    private let boot: UInt64

    init(_ configuration: Configuration) {
        source = configuration.clock
        let isOfSystem = configuration.clock is SystemClock
        boot = configuration.bootIdentity ?? (isOfSystem ? BootIdentity.current : 0)
        latest = Atomic(source.now().microseconds.saturatingSubtract(Self.uptime(source)))
    }

    private static func uptime(_ source: any StoreClock) -> Int64 { Int64(clamping: source.uptime() / 1000) }

    /// What store time is at least, less the uptime, in microseconds.
    private var offset: Int64 { latest.load(ordering: .relaxed) }

    /// Store time, for judging expiry.
    func now() -> Timestamp {
        let least = Self.uptime(source).saturatingAdd(offset)
        return Timestamp(microseconds: max(source.now().microseconds, least))
    }

    /// Store time, remembered as seen: no later reading is earlier.
    @discardableResult
    func advance() -> Timestamp {
        let moment = now()
        observe(moment)
        return moment
    }

    /// Takes note of a moment that was seen.
    func observe(_ moment: Timestamp) {
        latest.max(moment.microseconds.saturatingSubtract(Self.uptime(source)), ordering: .relaxed)
    }

    /// Takes note of what another process or an earlier one has seen.
    func observe(_ state: StoreState) {
        observe(Timestamp(microseconds: state.clock))
        if boot != 0, state.boot == boot { latest.max(state.clockOffset, ordering: .relaxed) }
    }

    /// Notes for other processes how far store time is from the uptime.
    func record(in state: inout StoreState) {
        if boot != 0, state.boot == boot { state.clockOffset = offset }
    }

    /// An entry was found expired now: no clock that is set back may show it again, after reopening neither.
    func noteExpiry() {
        advance()
        hasNews.store(true, ordering: .relaxed)
    }

    /// True if an expiry was seen that the index may not know the time of.
    var mustBeRecorded: Bool { hasNews.load(ordering: .relaxed) }
}

extension Int64 {
    fileprivate func saturatingAdd(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other > 0 ? .max : .min) : sum
    }

    fileprivate func saturatingSubtract(_ other: Int64) -> Int64 {
        let (difference, overflow) = subtractingReportingOverflow(other)
        return overflow ? (other > 0 ? .min : .max) : difference
    }
}
