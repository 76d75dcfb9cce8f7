/// A number of bytes, 0 or more.
public struct ByteCount: Hashable, Sendable, Comparable {
    /// The number.
    public let bytes: Int64

    /// A number of bytes; negative values become 0, and those that 64 bits cannot hold `unlimited`.
    /// - Parameter bytes: 0 or more.
    @inlinable  // The caller's module knows the type of the number: generic code would look it up on each call.
    public init(_ bytes: some BinaryInteger) { self.bytes = max(0, Int64(clamping: bytes)) }

    /// No bytes.
    public static let zero = ByteCount(0 as Int64)
    /// The largest count there is.
    public static let unlimited = ByteCount(Int64.max)
    /// Multiples of 1,024 bytes.
    /// - Parameter count: the number of units; less than 0 is 0, and more than fits is `unlimited`.
    public static func kibibytes(_ count: Int64) -> ByteCount { scaled(count, by: 1 << 10) }
    /// Multiples of 1,048,576 bytes.
    /// - Parameter count: the number of units; less than 0 is 0, and more than fits is `unlimited`.
    public static func mebibytes(_ count: Int64) -> ByteCount { scaled(count, by: 1 << 20) }
    /// Multiples of 1,073,741,824 bytes.
    /// - Parameter count: the number of units; less than 0 is 0, and more than fits is `unlimited`.
    public static func gibibytes(_ count: Int64) -> ByteCount { scaled(count, by: 1 << 30) }
    /// Multiples of 1,000,000 bytes.
    /// - Parameter count: the number of units; less than 0 is 0, and more than fits is `unlimited`.
    public static func megabytes(_ count: Int64) -> ByteCount { scaled(count, by: 1_000_000) }
    /// Multiples of 1,000,000,000 bytes.
    /// - Parameter count: the number of units; less than 0 is 0, and more than fits is `unlimited`.
    public static func gigabytes(_ count: Int64) -> ByteCount { scaled(count, by: 1_000_000_000) }

    private static func scaled(_ count: Int64, by unit: Int64) -> ByteCount {
        let (product, overflow) = count.multipliedReportingOverflow(by: unit)
        return overflow ? .unlimited : ByteCount(product)
    }

    /// Orders by size.
    public static func < (left: ByteCount, right: ByteCount) -> Bool { left.bytes < right.bytes }
}

extension ByteCount: ExpressibleByIntegerLiteral {
    /// A literal number of bytes.
    /// - Parameter value: bytes, 0 or more.
    public init(integerLiteral value: Int64) { self.init(value) }
}

extension ByteCount: CustomStringConvertible {
    /// As people write it: `0 B`, `1.5 KB`, `10 GB`, in powers of 1,000 as `df -H` and disk makers count.
    public var description: String {
        let units = ["B", "KB", "MB", "GB", "TB", "PB", "EB"]
        var value = Double(bytes)
        var unit = 0
        while value >= 999.95, unit < units.count - 1 {
            value /= 1000
            unit += 1
        }
        guard unit > 0 else { return "\(bytes) B" }
        let tenths = Int64((value * 10).rounded())
        return tenths % 10 == 0 ? "\(tenths / 10) \(units[unit])" : "\(tenths / 10).\(tenths % 10) \(units[unit])"
    }

    /// As above and to the byte, for errors: `900 KB (900000 bytes)`, `5 B`.
    var exactly: String { bytes < 1000 || self == .unlimited ? description : "\(description) (\(bytes) bytes)" }
}

extension ByteCount {
    /// Reads a size as people write it: `512`, `64k`, `10GB`, `1.5 GiB`, `100MB`; nil for anything else.
    ///
    /// `KB`, `MB`, `GB`, `TB`, `PB` are powers of 1,000; `K`, `M`, `G`, `T`, `P` alone and `KiB` ... `PiB` are powers
    /// of 1,024 (as in `dd`, `du` and `sort`). Case does not matter. Fractions are rounded down.
    /// - Parameter text: a number, and a unit or none; spaces before the number and between both are ignored.
    public init?(parsing text: String) {
        let trimmed = text.drop { $0 == " " }
        let digits = trimmed.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        guard let value = Double(digits), value.isFinite, value >= 0, digits.first != ".", digits.last != "." else {
            return nil
        }
        let unit = trimmed.dropFirst(digits.count).drop { $0 == " " }.lowercased()
        guard let factor = Self.factor(of: unit) else { return nil }
        let bytes = value * factor
        guard bytes < 9.2e18 else { return nil }
        // Whole numbers are scaled exactly; doubles lose digits past 2^53.
        if let whole = Int64(digits) {
            let (product, overflow) = whole.multipliedReportingOverflow(by: Int64(factor))
            guard !overflow else { return nil }
            self.init(product)
        } else {
            self.init(Int64(bytes))
        }
    }

    private static func factor(of unit: String) -> Double? {
        if unit.isEmpty || unit == "b" { return 1 }
        let letters = Array("kmgtp")
        guard let power = letters.firstIndex(of: unit[unit.startIndex]) else { return nil }
        let base: Double
        switch unit.dropFirst() {
        case "", "ib", "i": base = 1024
        case "b": base = 1000
        default: return nil
        }
        return (0...power).reduce(1.0) { product, _ in product * base }
    }
}
