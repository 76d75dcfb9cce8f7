import ArgumentParser
import Larder

/// Durations as people write them: a number and a unit, or several of them, the largest first.
///
/// Units: `s`, `m` or `min`, `h`, `d`, `w`, and `y` (365 days). Numbers may have a fraction: `1.5h`, `1d12h`.
enum DurationArgument {
    /// Reads a duration; throws what `cachectl` says to a user who wrote something else.
    static func parse(_ text: String) throws -> Duration {
        guard let duration = duration(text) else {
            throw ValidationError(
                "'\(text)' is no duration. Write numbers with units: 30s, 15m, 12h, 7d, 2w, 1y, 1d12h.")
        }
        return duration
    }

    /// A duration, or `never`.
    static func parseLifetime(_ text: String) throws -> Lifetime {
        text.lowercased() == "never" ? .never : .duration(try parse(text))
    }

    /// Nil for anything that is no duration, and for more than 290,000 years, which no timestamp holds.
    static func duration(_ text: String) -> Duration? {
        var rest = Substring(text.lowercased()).filter { $0 != " " }[...]
        var seconds = 0.0
        var previous = Double.infinity
        guard !rest.isEmpty else { return nil }
        while !rest.isEmpty {
            let digits = rest.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
            guard let first = digits.first, let last = digits.last, first != ".", last != ".",
                let value = Double(digits), value.isFinite
            else { return nil }
            rest = rest.dropFirst(digits.count)
            let name = rest.prefix { $0.isASCII && $0.isLetter }
            rest = rest.dropFirst(name.count)
            guard let unit = units[String(name)], unit < previous else { return nil }
            previous = unit
            seconds += value * unit
        }
        guard seconds < 9e12 else { return nil }
        let whole = Int64(seconds)
        return .seconds(whole) + .microseconds(Int64((seconds - Double(whole)) * 1e6))
    }

    private static let units: [String: Double] = [
        "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400, "y": 365 * 86_400,
    ]
}
