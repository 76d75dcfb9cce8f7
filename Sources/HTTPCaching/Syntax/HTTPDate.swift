/// `HTTP-date` (RFC 9110 section 5.6.7), read strictly in all three formats.
///
/// - IMF-fixdate: `Sun, 06 Nov 1994 08:49:37 GMT`
/// - rfc850-date: `Sunday, 06-Nov-94 08:49:37 GMT`
/// - asctime-date: `Sun Nov  6 08:49:37 1994`
///
/// Names match without regard to case, as RFC 9111 section 4.2 asks of caches; a zone other than GMT is invalid (same
/// section). The day of the week has to be a valid name, but need not be the right day. A second of 60 counts as the
/// next minute's first.
public enum HTTPDate {
    /// Parses a date.
    /// - Parameters:
    ///   - bytes: the field value; anything is allowed.
    ///   - now: the current time, which places the two-digit years of rfc850-date: more than 50 years ahead means the
    ///     past century.
    /// - Returns: nil if the value is not exactly one HTTP-date.
    public static func parse(_ bytes: [UInt8], now: Instant) -> Instant? {
        guard bytes.count >= 24, bytes.count <= 33 else { return nil }
        if bytes[3] == UInt8(ascii: ",") { return imfFixdate(bytes) }
        if bytes[3] == 0x20 { return asctime(bytes) }
        return rfc850(bytes, now: now)
    }

    /// The date as IMF-fixdate, the only format that may be generated; years outside 0...9999 are clamped.
    ///
    /// - Parameter instant: milliseconds are cut off.
    /// - Returns: such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 section 5.6.7).
    public static func format(_ instant: Instant) -> String {
        let seconds = min(max(instant.seconds, -62_167_219_200), 253_402_300_799)
        let days = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
        let time = seconds - days * 86_400
        let (year, month, day) = civil(fromDays: days)
        let weekday = Int(((days % 7) + 11) % 7)
        func two(_ value: Int64) -> String { value < 10 ? "0\(value)" : "\(value)" }
        let yearText = String(repeating: "0", count: max(0, 4 - String(year).count)) + String(year)
        return "\(weekdayNames[weekday]), \(two(day)) \(monthNames[Int(month) - 1]) \(yearText) "
            + "\(two(time / 3_600)):\(two(time / 60 % 60)):\(two(time % 60)) GMT"
    }

    private static let weekdayNames = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let longWeekdays = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"].map
    { Array($0.utf8) }
    private static let shortWeekdays = weekdayNames.compactMap { letters(Array($0.utf8), 0) }
    private static let monthNames = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
    private static let shortMonths = monthNames.compactMap { letters(Array($0.utf8), 0) }
    private static let gmt = letters(Array("GMT".utf8), 0)

    private static func imfFixdate(_ bytes: [UInt8]) -> Instant? {
        guard bytes.count == 29, isWeekday(bytes), matches(bytes, at: 4, " "), matches(bytes, at: 7, " "),
            matches(bytes, at: 11, " "), matches(bytes, at: 16, " "), isGMT(bytes, at: 25),
            let day = digits(bytes, 5, 2), let month = month(bytes, 8), let year = digits(bytes, 12, 4),
            let time = time(bytes, 17)
        else { return nil }
        return instant(year, month, day, time)
    }

    private static func rfc850(_ bytes: [UInt8], now: Instant) -> Instant? {
        guard let comma = bytes.firstIndex(of: UInt8(ascii: ",")), bytes.count == comma + 24,
            longWeekdays.contains(FieldBytes.lowercased(bytes[..<comma])),
            matches(bytes, at: comma + 1, " "), matches(bytes, at: comma + 4, "-"), matches(bytes, at: comma + 8, "-"),
            matches(bytes, at: comma + 11, " "), isGMT(bytes, at: comma + 20),
            let day = digits(bytes, comma + 2, 2), let month = month(bytes, comma + 5),
            let short = digits(bytes, comma + 9, 2),
            let time = time(bytes, comma + 12)
        else { return nil }
        let current = civil(fromDays: now.seconds >= 0 ? min(now.seconds, 253_402_300_799) / 86_400 : 0).year
        // The same century, then the most recent past year with these digits if that is more than 50 years ahead.
        var year = current - current % 100 + short
        guard let first = instant(year, month, day, time) ?? instant(year - 100, month, day, time) else { return nil }
        if first.milliseconds(since: now) > 50 * 31_556_952_000 { year -= 100 }
        return instant(year, month, day, time)
    }

    private static func asctime(_ bytes: [UInt8]) -> Instant? {
        guard bytes.count == 24, isWeekday(bytes), matches(bytes, at: 7, " "), matches(bytes, at: 10, " "),
            matches(bytes, at: 19, " "), let month = month(bytes, 4), let year = digits(bytes, 20, 4),
            let time = time(bytes, 11),
            let day = bytes[8] == 0x20 ? digits(bytes, 9, 1) : digits(bytes, 8, 2)
        else { return nil }
        return instant(year, month, day, time)
    }

    private static func isWeekday(_ bytes: [UInt8]) -> Bool {
        letters(bytes, 0).map { shortWeekdays.contains($0) } ?? false
    }

    private static func isGMT(_ bytes: [UInt8], at index: Int) -> Bool {
        bytes.count == index + 4 && matches(bytes, at: index, " ") && letters(bytes, index + 1) == gmt
    }

    /// Three letters, in lower case, as one number.
    private static func letters(_ bytes: [UInt8], _ start: Int) -> UInt32? {
        guard start + 3 <= bytes.count else { return nil }
        return bytes[start..<start + 3].reduce(0) { $0 << 8 | UInt32(FieldBytes.lowercased($1)) }
    }

    private static func matches(_ bytes: [UInt8], at index: Int, _ character: Unicode.Scalar) -> Bool {
        index < bytes.count && bytes[index] == UInt8(ascii: character)
    }

    private static func digits(_ bytes: [UInt8], _ start: Int, _ count: Int) -> Int64? {
        guard start + count <= bytes.count else { return nil }
        return FieldBytes.number(bytes[start..<start + count], ceiling: 9_999)
    }

    private static func month(_ bytes: [UInt8], _ start: Int) -> Int64? {
        guard let letters = letters(bytes, start) else { return nil }
        return shortMonths.firstIndex(of: letters).map { Int64($0) + 1 }
    }

    /// Seconds of the day from `hh:mm:ss`.
    private static func time(_ bytes: [UInt8], _ start: Int) -> Int64? {
        guard matches(bytes, at: start + 2, ":"), matches(bytes, at: start + 5, ":"),
            let hour = digits(bytes, start, 2), hour < 24,
            let minute = digits(bytes, start + 3, 2), minute < 60, let second = digits(bytes, start + 6, 2),
            second <= 60
        else { return nil }
        return hour * 3_600 + minute * 60 + second
    }

    private static func instant(_ year: Int64, _ month: Int64, _ day: Int64, _ time: Int64) -> Instant? {
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let lengths: [Int64] = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard day >= 1, day <= lengths[Int(month) - 1] else { return nil }
        return Instant(seconds: days(year, month, day) * 86_400 + time)
    }

    /// Days from 1970-01-01 in the proleptic Gregorian calendar, counted in 400-year eras that start in March.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func civil(fromDays days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let part = (5 * dayOfYear + 2) / 153
        let month = part < 10 ? part + 3 : part - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * part + 2) / 5 + 1)
    }
}
