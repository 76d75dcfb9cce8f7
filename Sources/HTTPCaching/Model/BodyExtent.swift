/// Which bytes of the representation a stored response has.
public enum BodyExtent: Sendable, Hashable {
    /// All of them.
    case complete(length: Int64)
    /// Some of them (RFC 9111 section 3.3), and the complete length where it is known.
    case partial(ByteRanges, total: Int64?)

    /// Whether nothing is missing.
    public var isComplete: Bool { if case .complete = self { true } else { false } }

    /// The length of the whole representation, where known.
    public var total: Int64? {
        switch self {
        case .complete(let length): length
        case .partial(_, let total): total
        }
    }

    /// The bytes that are there.
    public var available: ByteRanges {
        switch self {
        case .complete(let length): ByteRanges([0..<max(0, length)])
        case .partial(let ranges, _): ranges
        }
    }
}
