import ArgumentParser
import Larder

/// Sizes and limits as users write them.
package enum SizeArgument {
    /// Reads `10GB`, `1.5 GiB` or `4096`.
    package static func parse(_ text: String) throws -> ByteCount {
        if let size = ByteCount(parsing: text) { return size }
        let digits = text.prefix { $0.isASCII && $0.isNumber || $0 == "." }
        if digits.first != ".", Double(digits) != nil, ByteCount(parsing: "1" + text.dropFirst(digits.count)) != nil {
            throw ValidationError(
                "'\(text)' is too large. The maximum is 9000PB. Where no limit is allowed, use 'unlimited'.")
        }
        throw ValidationError(
            "'\(text)' is not a valid size. Use a number and a unit: 4096, 64KiB, 100MB, 1.5GiB, 10GB, 2TB.")
    }

    /// Reads a size in a range.
    package static func parse(_ text: String, in range: ClosedRange<ByteCount>) throws -> ByteCount {
        let size = try parse(text)
        guard range.contains(size) else {
            throw ValidationError(
                "'\(text)' is out of range. Use \(exact(range.lowerBound)) ... \(exact(range.upperBound)).")
        }
        return size
    }

    /// A bound without rounding: it must be accepted when the user writes it.
    private static func exact(_ size: ByteCount) -> String {
        let units = ["", "KiB", "MiB", "GiB", "TiB"]
        var (value, unit) = (size.bytes, 0)
        while value >= 1_024, value % 1_024 == 0, unit < units.count - 1 {
            value /= 1_024
            unit += 1
        }
        return "\(value)\(units[unit])"
    }

    /// Reads a size, or `unlimited`.
    package static func parseLimit(_ text: String) throws -> ByteCount {
        text.lowercased() == "unlimited" ? .unlimited : try parse(text)
    }

    /// Reads a byte budget. A budget that no store can keep is refused here, before a store is created for it.
    package static func parseBudget(_ text: String) throws -> ByteCount {
        let limit = try parseLimit(text)
        guard limit >= Budget.minimumBytes else {
            throw ValidationError(
                "a budget of \(limit) is too small, because the index needs space too. The minimum is 1MiB.")
        }
        return limit
    }

    /// Reads a size, or `none` for no floor.
    package static func parseFloor(_ text: String) throws -> ByteCount {
        ["none", "unlimited"].contains(text.lowercased()) ? .zero : try parse(text)
    }

    /// Reads a number of entries, or `unlimited`.
    package static func parseCount(_ text: String) throws -> Int {
        if text.lowercased() == "unlimited" { return .max }
        guard let count = Int(text), count > 0 else {
            throw ValidationError("'\(text)' is not a valid number of entries. Use 1 or more, or 'unlimited'.")
        }
        return count
    }
}
