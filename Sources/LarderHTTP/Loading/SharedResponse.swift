import HTTPCaching

/// What a load hands over to those who wait for it.
extension Load {
    /// What the head of the answer brought.
    struct Arrival: Sendable {
        /// For the first caller.
        var response: FetchResponse
        /// For the others; nil when each has to ask for itself.
        var shared: Shared?
    }

    /// A response that others may have while its body arrives.
    struct Shared: Sendable {
        let new: NewResponse
        /// Of a 206.
        let contentRange: String?
        let content: SharedContent
        let originStatus: Int
    }

    /// The content of a response that others may have.
    enum SharedContent: Sendable {
        case arriving(Spool)
        case whole([UInt8])

        /// The exact length, where it is known.
        var length: Int64? {
            switch self {
            case .arriving(let spool): spool.length
            case .whole(let bytes): Int64(bytes.count)
            }
        }

        /// The bytes of a range, or all; nil where they are not there any more.
        func body(_ range: Range<Int64>? = nil) -> ResponseBody? {
            switch self {
            case .arriving(let spool):
                guard let reader = spool.makeReader(range) else { return nil }
                let length = range.map { Int64($0.count) } ?? length
                return ResponseBody(length: length, holder: spool) { try await reader.next() }
            case .whole(let bytes):
                let part = range.map { Array(bytes[Int($0.lowerBound)..<Int($0.upperBound)]) } ?? bytes
                return part.isEmpty ? .empty : ResponseBody([.bytes(part)])
            }
        }
    }
}
