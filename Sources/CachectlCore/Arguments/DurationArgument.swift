import ArgumentParser
import Larder

/// Durations as users write them: a number of seconds, or numbers with units, largest unit first.
///
/// Units: `ms`, `s`, `m` or `min`, `h`, `d`, `w`, and `y` (365 days). Numbers may have a fraction: `1.5h`, `1d12h`.
package enum DurationArgument {
    /// Reads a duration. A number without a unit means seconds.
    /// - Throws: `ValidationError` for anything else.
    package static func parse(_ text: String) throws -> Duration {
        let isNumber = text.utf8.allSatisfy { (48...57).contains($0) || $0 == UInt8(ascii: ".") }
        guard let duration = duration(isNumber ? text + "s" : text) else { throw refusal(text) }
        return duration
    }

    /// Reads a duration with a unit: a command that removes entries must not read `7` as seconds where days were meant.
    package static func parseWithUnit(_ text: String) throws -> Duration {
        guard let duration = duration(text) else { throw refusal(text) }
        return duration
    }

    /// A duration of 1 ms to 1,000,000 s.
    package static func parseTimeout(_ text: String) throws -> Duration {
        let duration = try parse(text)
        guard duration >= .milliseconds(1), duration <= .seconds(1_000_000) else {
            throw ValidationError("'\(text)' is out of range. Use 1ms ... 1000000s.")
        }
        return duration
    }

    /// A duration, or `never`.
    package static func parseLifetime(_ text: String) throws -> Lifetime {
        text.lowercased() == "never" ? .never : .duration(try parse(text))
    }

    private static func refusal(_ text: String) -> ValidationError {
        ValidationError(
            "'\(text)' is not a valid duration. Use numbers with units: 500ms, 30s, 15m, 12h, 7d, 2w, 1y, 1d12h.")
    }

    /// Nil for anything that is not a duration, and for more than 285,000 years, which a timestamp cannot hold.
    package static func duration(_ text: String) -> Duration? {
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
        return .seconds(whole) + .microseconds(Int64(((seconds - Double(whole)) * 1e6).rounded()))
    }

    private static let units: [String: Double] = [
        "ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400, "y": 365 * 86_400,
    ]
}
