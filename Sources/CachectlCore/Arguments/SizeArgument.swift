import ArgumentParser
import Larder

/// Sizes and limits as people write them.
package enum SizeArgument {
    /// `10GB`, `1.5 GiB`, `4096`.
    package static func parse(_ text: String) throws -> ByteCount {
        if let size = ByteCount(parsing: text) { return size }
        let digits = text.prefix { $0.isASCII && $0.isNumber || $0 == "." }
        if Double(digits) != nil, ByteCount(parsing: "1" + text.dropFirst(digits.count)) != nil {
            throw ValidationError(
                "'\(text)' is too large. The most is 9000PB; 'unlimited' is written so where it is allowed.")
        }
        throw ValidationError(
            "'\(text)' is not a size. Write a number and a unit: 4096, 64KiB, 100MB, 1.5GiB, 10GB, 2TB.")
    }

    /// A size of at least and at most so much.
    package static func parse(_ text: String, in range: ClosedRange<ByteCount>) throws -> ByteCount {
        let size = try parse(text)
        guard range.contains(size) else {
            throw ValidationError("'\(text)' is out of range. Give \(range.lowerBound) ... \(range.upperBound).")
        }
        return size
    }

    /// A size, or `unlimited`.
    package static func parseLimit(_ text: String) throws -> ByteCount {
        text.lowercased() == "unlimited" ? .unlimited : try parse(text)
    }

    /// A byte budget: a limit that the store can keep. Refused here, before a store is made for it.
    package static func parseBudget(_ text: String) throws -> ByteCount {
        let limit = try parseLimit(text)
        guard limit >= Budget.minimumBytes else {
            throw ValidationError("a budget of \(limit) is too small: the index alone needs room. The least is 1MiB.")
        }
        return limit
    }

    /// A size, or `none` for no floor.
    package static func parseFloor(_ text: String) throws -> ByteCount {
        ["none", "unlimited"].contains(text.lowercased()) ? .zero : try parse(text)
    }

    /// A number of entries, or `unlimited`.
    package static func parseCount(_ text: String) throws -> Int {
        if text.lowercased() == "unlimited" { return .max }
        guard let count = Int(text), count > 0 else {
            throw ValidationError("'\(text)' is not a number of entries. Write 1 or more, or 'unlimited'.")
        }
        return count
    }
}
