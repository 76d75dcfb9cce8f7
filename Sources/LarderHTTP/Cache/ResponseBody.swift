import Larder

/// The content of an answer: pieces of one byte or more.
///
/// A stored body can be read any number of times. One that is still arriving is read once, by one reader at a time,
/// which may be slow: bytes that the store has accepted wait there, not in memory.
public struct ResponseBody: AsyncSequence, Sendable {
    /// A piece.
    public typealias Element = [UInt8]

    /// The place of the bytes.
    package enum Source: Sendable {
        /// Available: in memory and in stored bodies, in this order.
        case segments([Segment])
        /// Arriving: each call gives the next piece, nil at the end.
        case live(@Sendable () async throws -> [UInt8]?)
    }

    /// A run of available bytes.
    package enum Segment: Sendable {
        case bytes([UInt8])
        case stored(StoredBytes, Range<Int64>)

        /// True if reading it takes long without a file that could be sent: not for an event loop.
        package var isDecodedLater: Bool {
            switch self {
            case .bytes: false
            case .stored(.complete(let body), _): body.isDecodedLater
            case .stored(.inProgress(let body), _): body.isEncrypted
            }
        }

        package var count: Int64 {
            switch self {
            case .bytes(let bytes): Int64(bytes.count)
            case .stored(_, let range): Int64(range.count)
            }
        }
    }

    package let source: Source
    /// The exact number of bytes; nil while the origin has not given it.
    public let length: Int64?
    /// What has memory for as long as the body arrives: the load, or the exchange with the origin.
    package let holder: (any AnyObject & Sendable)?

    package init(_ segments: [Segment]) {
        source = .segments(segments)
        length = segments.reduce(0) { $0 + $1.count }
        holder = nil
    }

    package init(
        length: Int64?, holder: (any AnyObject & Sendable)? = nil,
        live pull: @escaping @Sendable () async throws -> [UInt8]?
    ) {
        source = .live(pull)
        self.length = length
        self.holder = holder
    }

    /// As it is stored, where that is compressed and all of it is the answer.
    package var compressedForm: Body? {
        guard case .segments(let segments) = source, segments.count == 1,
            case .stored(.complete(let body), let range) = segments[0], range == 0..<body.length.bytes
        else { return nil }
        return body.compressedForm
    }

    /// True if some of it is stored compressed.
    package var isMadeOfCompressed: Bool {
        guard case .segments(let segments) = source else { return false }
        return segments.contains { segment in
            if case .stored(.complete(let body), _) = segment { body.compressedForm != nil } else { false }
        }
    }

    /// A body of no bytes.
    public static let empty = ResponseBody([])

    /// Starts at the first byte, or where the last reader of an arriving body stopped.
    ///
    /// - Returns: an iterator; one task at a time uses it.
    public func makeAsyncIterator() -> Iterator { Iterator(source: source) }

    /// The position of the reader.
    public struct Iterator: AsyncIteratorProtocol, Sendable {
        let source: Source
        var segment = 0
        var offset: Int64 = 0

        init(source: Source) { self.source = source }

        /// The next piece.
        ///
        /// - Returns: at most 256 KiB of a stored body; nil at the end.
        /// - Throws: ``FetchError`` if the origin broke off, `LarderError` if the store cannot be read.
        public mutating func next() async throws -> [UInt8]? {
            let segments: [Segment]
            switch source {
            case .live(let pull): return try await pull()
            case .segments(let list): segments = list
            }
            while segment < segments.count {
                try Task.checkCancellation()
                switch segments[segment] {
                case .bytes(let bytes):
                    segment += 1
                    if !bytes.isEmpty { return bytes }
                case .stored(let body, let range):
                    let start = range.lowerBound + offset
                    guard start < range.upperBound else {
                        segment += 1
                        offset = 0
                        continue
                    }
                    let end = Swift.min(start + 256 * 1024, range.upperBound)
                    offset += end - start
                    return try await body.bytes(in: start..<end)
                }
            }
            return nil
        }
    }

    /// All bytes.
    ///
    /// - Parameter limit: the most that is read, in bytes. Default: 64 MiB.
    /// - Returns: the whole body or, of an arriving one, the part that no other reader has taken.
    /// - Throws: ``FetchError/Code/tooLarge`` beyond the limit, ``FetchError`` if the origin broke off, `LarderError`
    ///   if the store cannot be read.
    public func bytes(limit: Int = 64 << 20) async throws -> [UInt8] {
        var result: [UInt8] = []
        if let length, length <= limit { result.reserveCapacity(Int(length)) }
        for try await piece in self {
            guard result.count + piece.count <= limit else {
                throw FetchError(.tooLarge, url: "", "the body has more than \(limit) bytes, the limit given")
            }
            result += piece
        }
        return result
    }
}
