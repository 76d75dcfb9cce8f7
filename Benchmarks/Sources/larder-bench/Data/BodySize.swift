import Foundation

/// The lengths of the bodies of a run.
enum BodySize: Sendable, Hashable, CustomStringConvertible {
    /// All of one length, in bytes.
    case fixed(Int)
    /// As on the web: lognormal, median 8 KB, sigma 1.6, cut to 100 B ... 1 MiB.
    case web
    /// Evenly spread over the logarithm of the length, 100 B ... 1 MiB.
    case wide

    /// The sizes of the report.
    static let standard: [BodySize] = [
        .fixed(100), .fixed(1 << 10), .fixed(16 << 10), .fixed(64 << 10), .fixed(256 << 10), .fixed(1 << 20),
        .web,
    ]

    /// The length of body `index`, in bytes; the same for the same index.
    func length(_ index: UInt64) -> Int {
        let unit = Double(Generator.mix(index ^ 0xA5A5) >> 11) / Double(1 << 53)
        switch self {
        case .fixed(let length): return length
        case .web:
            let other = Double(Generator.mix(index ^ 0x5A5A) >> 11) / Double(1 << 53)
            // Box-Muller transform: from two uniform numbers to a normal one.
            let normal = (-2 * log(max(unit, 1e-12))).squareRoot() * cos(2 * .pi * other)
            return Int(min(max(8192 * exp(1.6 * normal), 100), 1_048_576))
        case .wide:
            return Int(100 * pow(1_048_576.0 / 100, unit))
        }
    }

    /// The greatest length, in bytes.
    var longest: Int {
        switch self {
        case .fixed(let length): length
        case .web, .wide: 1_048_576
        }
    }

    /// The mean length, in bytes, over the first 10,000 bodies.
    var mean: Int {
        if case .fixed(let length) = self { return length }
        return (0..<10_000).reduce(0) { $0 + length(UInt64($1)) } / 10_000
    }

    /// `1 KiB`, `web`.
    var description: String {
        switch self {
        case .fixed(let length):
            if length >= 1 << 20, length % (1 << 20) == 0 { return "\(length >> 20) MiB" }
            if length >= 1 << 10, length % (1 << 10) == 0 { return "\(length >> 10) KiB" }
            return "\(length) B"
        case .web: return "web"
        case .wide: return "100 B - 1 MiB"
        }
    }
}
