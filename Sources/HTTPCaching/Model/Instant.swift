/// A point in time, as whole milliseconds since 1970-01-01T00:00:00Z without leap seconds.
///
/// The rules read no clock: every function that depends on time takes the time as an `Instant`.
/// Any value is legal; arithmetic saturates and never traps.
public struct Instant: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// Milliseconds since the Unix epoch; negative before it.
    public var milliseconds: Int64

    /// Makes an instant from milliseconds since the Unix epoch.
    ///
    /// - Parameter milliseconds: negative before 1970.
    public init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// Makes an instant from seconds since the Unix epoch; saturates beyond ±292 million years.
    ///
    /// - Parameter seconds: negative before 1970.
    public init(seconds: Int64) {
        let (value, overflow) = seconds.multipliedReportingOverflow(by: 1_000)
        milliseconds = overflow ? (seconds < 0 ? .min : .max) : value
    }

    /// Whole seconds since the Unix epoch, rounded down.
    public var seconds: Int64 {
        let quotient = milliseconds / 1_000
        return milliseconds % 1_000 < 0 ? quotient - 1 : quotient
    }

    /// Milliseconds from `earlier` to this instant, saturating.
    ///
    /// - Parameter earlier: the instant to count from.
    /// - Returns: the difference; negative when `earlier` is later.
    public func milliseconds(since earlier: Instant) -> Int64 {
        let (value, overflow) = milliseconds.subtractingReportingOverflow(earlier.milliseconds)
        return overflow ? (milliseconds < 0 ? .min : .max) : value
    }

    /// This instant moved by a number of milliseconds, saturating.
    ///
    /// - Parameter delta: milliseconds; negative ones move it back.
    /// - Returns: the instant that much later.
    public func advanced(byMilliseconds delta: Int64) -> Instant {
        Instant(milliseconds: milliseconds.addingSaturating(delta))
    }

    /// Earlier before later.
    public static func < (left: Instant, right: Instant) -> Bool { left.milliseconds < right.milliseconds }

    /// The number with its unit.
    public var description: String { "\(milliseconds) ms" }
}

extension Int64 {
    func addingSaturating(_ other: Int64) -> Int64 {
        let (value, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : value
    }

    func subtractingSaturating(_ other: Int64) -> Int64 {
        let (value, overflow) = subtractingReportingOverflow(other)
        return overflow ? (other < 0 ? .max : .min) : value
    }

    /// Seconds as milliseconds, saturating.
    var secondsAsMilliseconds: Int64 {
        let (value, overflow) = multipliedReportingOverflow(by: 1_000)
        return overflow ? (self < 0 ? .min : .max) : value
    }
}
