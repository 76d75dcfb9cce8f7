/// Time stamps in UTC.
package enum LogTime {
    /// `21/Nov/2026:14:08:10 +0000`
    static func common(_ seconds: Int64) -> String {
        let time = parts(seconds)
        return "\(two(time.day))/\(months[time.month - 1])/\(time.year):\(clock(time)) +0000"
    }

    /// `2026-11-21T14:08:10Z`
    static func iso(_ seconds: Int64) -> String {
        let time = parts(seconds)
        return "\(time.year)-\(two(time.month))-\(two(time.day))T\(clock(time))Z"
    }

    /// `Sat, 21 Nov 2026 14:08:10 GMT` (RFC 9110 section 5.6.7)
    package static func http(_ seconds: Int64) -> String {
        let time = parts(seconds)
        // The first of January 1970 was a Thursday.
        let weekday = Int((seconds.quotientFloored(by: 86_400) % 7 + 11) % 7)
        let name = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"][weekday]
        let day = "\(name), \(two(time.day)) \(months[time.month - 1]) \(time.year)"
        return "\(day) \(clock(time)) GMT"
    }

    private static func clock(_ time: Parts) -> String {
        "\(two(time.hour)):\(two(time.minute)):\(two(time.second))"
    }

    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    private static func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }

    private typealias Parts = (year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int)

    private static func parts(_ seconds: Int64) -> Parts {
        let days = Int(seconds.quotientFloored(by: 86_400))
        let rest = Int(seconds - Int64(days) * 86_400)
        // Days to a civil date: https://howardhinnant.github.io/date_algorithms.html#civil_from_days
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (
            yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1,
            rest / 3_600, rest / 60 % 60, rest % 60
        )
    }
}

extension Int64 {
    fileprivate func quotientFloored(by divisor: Int64) -> Int64 {
        self >= 0 ? self / divisor : (self - divisor + 1) / divisor
    }
}
