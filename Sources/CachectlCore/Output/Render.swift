import Larder

/// Numbers and sizes for people to read.
package enum Render {
    /// `9.7 GB`, or `unlimited`.
    package static func size(_ bytes: ByteCount) -> String { bytes == .unlimited ? "unlimited" : bytes.description }

    /// `9.7 GB (9,663,676,416 bytes)`.
    package static func exactSize(_ bytes: ByteCount) -> String {
        bytes == .unlimited ? "unlimited" : "\(bytes) (\(count(bytes.bytes)) bytes)"
    }

    /// `1,234,567`.
    package static func count(_ number: some BinaryInteger) -> String {
        let digits = String(number.magnitude)
        var result = number < 0 ? "-" : ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index) % 3 == 0 { result.append(",") }
            result.append(digit)
        }
        return result
    }

    /// `1 entry`, `1,234 entries`.
    package static func count(_ number: Int, _ one: String, _ many: String) -> String {
        "\(count(number)) \(number == 1 ? one : many)"
    }

    /// Only the largest unit that fits: `3d`, `12h`, `45s`; `0s` for negative durations.
    package static func age(_ duration: Duration) -> String {
        let seconds = max(0, duration.components.seconds)
        switch seconds {
        case ..<60: return "\(seconds)s"
        case ..<3600: return "\(seconds / 60)m"
        case ..<86_400: return "\(seconds / 3600)h"
        case ..<(365 * 86_400): return "\(seconds / 86_400)d"
        default: return "\(seconds / (365 * 86_400))y"
        }
    }

    /// `812 ms`, `2.4 s`, `1 min 05 s`.
    package static func elapsed(_ duration: Duration) -> String {
        let seconds = duration.inSeconds
        if seconds < 1 { return "\(Int(seconds * 1000)) ms" }
        if seconds < 60 { return "\(decimal(seconds, digits: 1)) s" }
        let whole = Int(min(seconds, 1e15))
        return "\(whole / 60) min \(whole % 60 < 10 ? "0" : "")\(whole % 60) s"
    }

    /// `37.5 %`; `-` if the whole is 0.
    package static func percent(_ part: some BinaryInteger, of whole: some BinaryInteger) -> String {
        whole == 0 ? "-" : decimal(Double(part) * 100 / Double(whole), digits: 1) + " %"
    }

    /// A number with `digits` digits after the point.
    package static func decimal(_ value: Double, digits: Int) -> String {
        guard value.isFinite, abs(value) < 1e15 else { return "-" }
        let factor = (0..<digits).reduce(1.0) { product, _ in product * 10 }
        let scaled = Int64((abs(value) * factor).rounded())
        let sign = value < 0 && scaled > 0 ? "-" : ""
        guard digits > 0 else { return "\(sign)\(scaled)" }
        let fraction = String(scaled % Int64(factor))
        return "\(sign)\(scaled / Int64(factor))." + String(repeating: "0", count: digits - fraction.count) + fraction
    }
}

extension Duration {
    /// The duration in seconds.
    package var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}

extension Timestamp {
    /// The time of the system's clock.
    package static var now: Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(microseconds: Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000)
    }
}
