import Foundation

/// Figures in a form for human readers.
enum Render {
    /// `1,234,567`.
    static func count(_ value: Int) -> String {
        var result = ""
        for (position, digit) in "\(abs(value))".reversed().enumerated() {
            if position > 0, position % 3 == 0 { result.insert(",", at: result.startIndex) }
            result.insert(digit, at: result.startIndex)
        }
        return value < 0 ? "-" + result : result
    }

    /// A rate without insignificant digits: `1,230,000`, `45.6`.
    static func rate(_ value: Double) -> String {
        guard value >= 100 else { return decimal(value, 1) }
        let unit = pow(10, floor(log10(value)) - 2)
        return count(Int((value / unit).rounded() * unit))
    }

    /// With this many digits after the point.
    static func decimal(_ value: Double, _ digits: Int) -> String { String(format: "%.\(digits)f", value) }

    /// Nanoseconds: `850 ns`, `1.2 us`, `3.4 ms`.
    static func time(_ nanoseconds: UInt64) -> String {
        switch nanoseconds {
        case ..<1000: "\(nanoseconds) ns"
        case ..<1_000_000: decimal(Double(nanoseconds) / 1e3, 1) + " us"
        case ..<1_000_000_000: decimal(Double(nanoseconds) / 1e6, 1) + " ms"
        default: decimal(Double(nanoseconds) / 1e9, 2) + " s"
        }
    }
}

/// JSON with keys in order, so that two files can be compared.
enum JSONOutput {
    static func text(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }
}
