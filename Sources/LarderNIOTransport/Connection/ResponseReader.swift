import HTTPTypes
import HTTPWire
import NIOCore

/// Finds responses in the bytes of an HTTP/1.1 connection: holds what has arrived and was not read yet.
struct ResponseReader {
    enum Head {
        /// An interim (1xx) response.
        case interim(HTTPResponse)
        /// The final head, and the length of the content where it is known.
        case final(HeadForm, length: Int64?)
    }

    private let limits: HeadLimits
    private var scanner: HeadScanner
    private var input = ByteBuffer()
    /// There from the final head on.
    private var decoder: BodyDecoder?
    /// Whether the final head lets the connection be used again.
    private(set) var persists = false

    init(_ limits: HeadLimits) {
        self.limits = limits
        scanner = HeadScanner(limits: limits, isRequest: false)
    }

    /// Whether everything that arrived has been read.
    var isEmpty: Bool { input.readableBytes == 0 }

    /// The room for what has arrived, in bytes.
    var capacity: Int { input.storageCapacity }

    /// Whether the final head of the response has been read.
    var hasHead: Bool { decoder != nil }

    /// Whether the end of the connection is the end of the content (RFC 9112 section 6.3).
    var isCompleteAtEnd: Bool { decoder?.isCompleteAtEOF ?? false }

    /// The response to another request comes next.
    mutating func begin() {
        scanner.reset()
        decoder = nil
        persists = false
    }

    /// Adds bytes that have arrived.
    mutating func receive(_ buffer: inout ByteBuffer) {
        if input.readableBytes == 0 { return input = buffer }
        // Else it would grow by all that comes in pieces which end within a head.
        input.discardReadBytes()
        input.writeBuffer(&buffer)
    }

    /// Gives the room for bytes back: nothing big is kept for an idle connection.
    mutating func release() { input = ByteBuffer() }

    /// Reads one head, if all of it is there.
    /// - Parameter method: of the request that it answers.
    mutating func nextHead(answering method: HTTPRequest.Method) throws(WireError) -> Head? {
        var scanner = scanner
        let limits = limits
        let found = input.withUnsafeReadableBytes { raw in
            Result { () throws(WireError) -> (ResponseHead, Int)? in
                guard let range = try scanner.scan(raw) else { return nil }
                let bytes = UnsafeRawBufferPointer(rebasing: raw[range])
                return (try ResponseHead.parse(bytes, answering: method, limits: limits), range.upperBound)
            }
        }
        self.scanner = scanner
        guard let (head, count) = try found.get() else { return nil }
        input.moveReaderIndex(forwardBy: count)
        self.scanner.reset()
        if (100..<200).contains(head.lines.status.code) { return .interim(head.response) }
        decoder = BodyDecoder(head.framing)
        persists = head.persists
        let length: Int64? =
            switch head.framing {
            case .none: 0
            case .length(let length): length
            case .chunked, .untilClose, .tunnel: nil
            }
        return .final(.lines(head.lines), length: length)
    }

    /// Reads the content that is there.
    /// - Parameter body: called with each part of it.
    /// - Returns: whether that was the end of the response.
    mutating func readContent(_ body: (Slice<UnsafeRawBufferPointer>) -> Void) throws(WireError) -> Bool {
        guard var decoder else { return false }
        var position = 0
        let result = input.withUnsafeReadableBytes { raw in
            Result { () throws(WireError) -> Bool in
                while true {
                    switch try decoder.next(raw, at: &position) {
                    case .payload(let range): body(raw[range])
                    case .needsMore: return false
                    case .end: return true
                    }
                }
            }
        }
        self.decoder = decoder
        input.moveReaderIndex(forwardBy: position)
        // The room is not kept while nothing is read.
        if input.readableBytes == 0 { input = ByteBuffer() }
        return try result.get()
    }
}
