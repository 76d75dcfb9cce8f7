/// A `Content-Range` value (RFC 9110 section 14.4) in the unit `bytes`.
public struct ContentRange: Sendable, Hashable {
    /// The positions of the content; nil for `bytes */length`, as in a 416 response.
    public var range: Range<Int64>?
    /// The length of the whole representation; nil if it is `*`.
    public var completeLength: Int64?

    /// Makes a value.
    ///
    /// - Parameters:
    ///   - range: the positions; nil for `*`, of a 416.
    ///   - completeLength: the length of the representation in bytes; nil if it is not known.
    public init(range: Range<Int64>?, completeLength: Int64?) {
        self.range = range
        self.completeLength = completeLength
    }

    /// Parses a value: nil for another unit, for a last position before the first, and for a complete length that
    /// does not reach past the last position, or is not below 2^56.
    ///
    /// - Parameter bytes: the value of `Content-Range` (RFC 9110 section 14.4).
    public init?(_ bytes: [UInt8]) {
        guard bytes.count > 6, FieldBytes.lowercased(bytes[..<6]) == Array("bytes ".utf8),
            let slash = bytes.firstIndex(of: UInt8(ascii: "/"))
        else { return nil }
        let ceiling: Int64 = 1 << 56
        let total = bytes[(slash + 1)...]
        if total.elementsEqual([UInt8(ascii: "*")]) {
            completeLength = nil
        } else {
            // A greater one would come back from the store as the ceiling.
            guard let length = FieldBytes.number(total, ceiling: ceiling), length < ceiling else { return nil }
            completeLength = length
        }
        let positions = bytes[6..<max(6, slash)]
        if positions.elementsEqual([UInt8(ascii: "*")]) {
            guard completeLength != nil else { return nil }
            range = nil
            return
        }
        guard let dash = positions.firstIndex(of: UInt8(ascii: "-")),
            let first = FieldBytes.number(positions[..<dash], ceiling: ceiling),
            let last = FieldBytes.number(positions[(dash + 1)...], ceiling: ceiling), last >= first
        else { return nil }
        if let completeLength, completeLength <= last { return nil }
        range = first..<(last + 1)
    }

    /// The field value.
    public var fieldValue: String {
        let total = completeLength.map(String.init) ?? "*"
        return range.map { "bytes \($0.lowerBound)-\($0.upperBound - 1)/\(total)" } ?? "bytes */\(total)"
    }
}
