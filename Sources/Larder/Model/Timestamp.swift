#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// A moment: microseconds since 1970-01-01 00:00 UTC.
public struct Timestamp: Hashable, Sendable, Comparable {
    /// Microseconds since 1970-01-01 00:00 UTC; negative before.
    public let microseconds: Int64

    /// A moment by its microseconds since 1970-01-01 00:00 UTC.
    /// - Parameter microseconds: negative before 1970.
    public init(microseconds: Int64) { self.microseconds = microseconds }

    /// A moment by its seconds since 1970-01-01 00:00 UTC. Values beyond 290,000 years are cut; infinity is
    /// a moment that never comes. NaN is the earliest moment, as minus infinity is: nothing was stored before it.
    /// - Parameter seconds: negative before 1970.
    public init(seconds: Double) {
        guard seconds.isFinite else {
            microseconds = seconds == .infinity ? .max : .min
            return
        }
        microseconds = Int64(max(-9.1e18, min(9.1e18, seconds * 1e6)))
    }

    /// Seconds since 1970-01-01 00:00 UTC.
    public var seconds: Double { Double(microseconds) / 1e6 }

    /// A moment that never comes.
    package static let distantFuture = Timestamp(microseconds: .max)

    /// The moment `duration` later, cut where 64 bits end.
    public static func + (moment: Timestamp, duration: Duration) -> Timestamp {
        let (sum, overflow) = moment.microseconds.addingReportingOverflow(duration.microseconds)
        return overflow
            ? (duration > .zero ? .distantFuture : Timestamp(microseconds: .min)) : Timestamp(microseconds: sum)
    }

    /// The moment `duration` earlier.
    public static func - (moment: Timestamp, duration: Duration) -> Timestamp { moment + (.zero - duration) }

    /// The time from `right` to `left`.
    public static func - (left: Timestamp, right: Timestamp) -> Duration {
        let (difference, overflow) = left.microseconds.subtractingReportingOverflow(right.microseconds)
        return .microseconds(overflow ? .max : difference)
    }

    /// Earlier moments come first.
    public static func < (left: Timestamp, right: Timestamp) -> Bool { left.microseconds < right.microseconds }
}

extension Timestamp: CustomStringConvertible {
    /// ISO 8601 in UTC, to the second: `2026-11-21T00:39:00Z`; `never` for the last moment there is.
    public var description: String {
        if self == .distantFuture { return "never" }
        var seconds = time_t(microseconds.dividedFloor(by: 1_000_000))
        var parts = tm()
        guard gmtime_r(&seconds, &parts) != nil else { return "\(seconds) s since 1970" }
        func padded(_ value: Int32, _ width: Int) -> String {
            let digits = String(value)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        return padded(parts.tm_year + 1900, 4) + "-" + padded(parts.tm_mon + 1, 2) + "-" + padded(parts.tm_mday, 2)
            + "T" + padded(parts.tm_hour, 2) + ":" + padded(parts.tm_min, 2) + ":" + padded(parts.tm_sec, 2) + "Z"
    }
}

extension Duration {
    /// Whole microseconds, cut to what 64 bits hold.
    var microseconds: Int64 {
        let (seconds, attoseconds) = components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        if overflow { return seconds > 0 ? .max : .min }
        let (sum, carry) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000_000)
        return carry ? (seconds > 0 ? .max : .min) : sum
    }
}

extension Int64 {
    fileprivate func dividedFloor(by divisor: Int64) -> Int64 {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
