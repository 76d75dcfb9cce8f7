/// The bytes of the representation that a stored response has.
public enum BodyExtent: Sendable, Hashable {
    /// All bytes.
    case complete(length: Int64)
    /// Some bytes (RFC 9111 section 3.3), and the complete length if it is known.
    case partial(ByteRanges, total: Int64?)

    /// True if no byte is missing.
    public var isComplete: Bool { if case .complete = self { true } else { false } }

    /// The length of the whole representation, if it is known.
    public var total: Int64? {
        switch self {
        case .complete(let length): length
        case .partial(_, let total): total
        }
    }

    /// The stored bytes.
    public var available: ByteRanges {
        switch self {
        case .complete(let length): ByteRanges([0..<max(0, length)])
        case .partial(let ranges, _): ranges
        }
    }
}
