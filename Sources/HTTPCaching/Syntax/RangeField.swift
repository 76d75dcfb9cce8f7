/// A `Range` value (RFC 9110 section 14.2) in the unit `bytes`.
public struct RangeField: Sendable, Hashable {
    /// One range specification (section 14.1.1).
    public enum Specification: Sendable, Hashable {
        /// `first-last` with both ends included; `last` is nil if it is left out.
        case from(Int64, last: Int64?)
        /// `-length`: the last bytes.
        case suffix(Int64)
    }

    /// The result of parsing a `Range` value.
    public enum Parsed: Sendable, Hashable {
        /// Bytes, with a valid list.
        case bytes(RangeField)
        /// Another unit.
        case otherUnit
        /// Not valid: to be ignored.
        case invalid
    }

    /// The specifications in the order of the field; at least one.
    public var specifications: [Specification]

    /// Parses a value. Numbers beyond 2^56 count as 2^56, which is past the end of everything.
    ///
    /// - Parameter bytes: the value of `Range` (RFC 9110 section 14.2).
    /// - Returns: the ranges, or the reason that the field counts as absent.
    public static func parse(_ bytes: [UInt8]) -> Parsed {
        guard let equals = bytes.firstIndex(of: FieldBytes.equals), FieldBytes.isToken(bytes[..<equals]) else {
            return .invalid
        }
        guard FieldBytes.lowercased(bytes[..<equals]) == Array("bytes".utf8) else { return .otherUnit }
        var specifications: [Specification] = []
        for member in FieldBytes.members(Array(bytes[(equals + 1)...])) {
            guard let dash = member.firstIndex(of: UInt8(ascii: "-")) else { return .invalid }
            let left = member[..<dash]
            let right = member[(dash + 1)...]
            if left.isEmpty {
                guard let length = number(right) else { return .invalid }
                specifications.append(.suffix(length))
            } else {
                guard let first = number(left) else { return .invalid }
                if right.isEmpty {
                    specifications.append(.from(first, last: nil))
                } else {
                    guard let last = number(right), last >= first else { return .invalid }
                    specifications.append(.from(first, last: last))
                }
            }
        }
        return specifications.isEmpty ? .invalid : .bytes(RangeField(specifications: specifications))
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int64? { FieldBytes.number(bytes, ceiling: 1 << 56) }

    /// True if a representation of `length` bytes is empty and its last bytes are asked for. That is satisfiable
    /// (section 14.1.2), but no `Content-Range` can name it: the answer is the whole, with 200.
    ///
    /// - Parameter length: the length of the representation, in bytes.
    /// - Returns: false for every other representation.
    public func asksForNothing(of length: Int64) -> Bool {
        length == 0
            && specifications.contains { specification in
                if case .suffix(let count) = specification { count > 0 } else { false }
            }
    }

    /// The satisfiable ranges of a representation of `length` bytes, in the order of the field (section 14.1.2).
    ///
    /// - Parameter length: the length of the representation, in bytes.
    /// - Returns: positions; empty if none is satisfiable, which is answered with 416.
    public func resolved(length: Int64) -> [Range<Int64>] {
        specifications.compactMap { specification in
            switch specification {
            case .from(let first, let last):
                guard first < length else { return nil }
                return first..<(last.map { min($0 + 1, length) } ?? length)
            case .suffix(let count):
                guard count > 0, length > 0 else { return nil }
                return max(0, length - count)..<length
            }
        }
    }

    /// The range of a single specification that says first and last position itself; nil for others. What can be
    /// answered without knowing the complete length.
    var explicitRange: Range<Int64>? {
        guard specifications.count == 1, case .from(let first, let last?) = specifications[0] else { return nil }
        return first..<(last + 1)
    }
}
