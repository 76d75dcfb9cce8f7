import HTTPCaching
import HTTPTestSupport
import HTTPTypes
import Larder
import TestSupport

@testable import LarderHTTP

/// An origin with one representation, of which every byte tells its position.
enum RangeOrigin {
    /// The bytes of a range of the representation with this tag.
    static func bytes(_ range: Range<Int64>, _ tag: String = "\"a\"") -> [UInt8] {
        let seed = UInt64(tag.utf8.reduce(0) { $0 &* 31 &+ Int($1) } & 0xFF)
        return [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
            for (index, position) in range.enumerated() {
                let word = (UInt64(bitPattern: position) &+ seed) &* 0x9E37_79B9_7F4A_7C15
                buffer.initializeElement(at: index, to: UInt8(truncatingIfNeeded: word >> 56))
            }
            count = range.count
        }
    }

    /// The range of a request of which one is asked for.
    static func range(of request: TransportRequest, length: Int64) -> Range<Int64>? {
        guard let value = request.head.headerFields[.range],
            case .bytes(let field) = RangeField.parse(Array(value.utf8))
        else { return nil }
        return field.resolved(length: length).first
    }

    /// The head of a 206.
    static func head(
        _ range: Range<Int64>, of length: Int64, tag: String = "\"a\"", lifetime: Int = 60
    ) -> HTTPResponse {
        HTTPResponse(
            status: .partialContent,
            headerFields: [
                .cacheControl: "max-age=\(lifetime)", .eTag: tag,
                .contentRange: ContentRange(range: range, completeLength: length).fieldValue,
            ])
    }
}

extension Fixture {
    /// The origin understands single ranges and `If-Range`.
    /// - Parameter declaresLength: false leaves the end of a message to show its length.
    func serveRanges(of length: Int64, tag: String = "\"a\"", lifetime: Int = 60, declaresLength: Bool = true) {
        transport.handler = { request throws(TransportError) in
            let fields = request.head.headerFields
            let head: HTTPFields = [.cacheControl: "max-age=\(lifetime)", .eTag: tag]
            if fields[.ifNoneMatch] == tag { return .answer(304, head) }
            guard let range = RangeOrigin.range(of: request, length: length),
                fields[.ifRange] == nil || fields[.ifRange] == tag
            else {
                return .answer(HTTPResponse(status: .ok, headerFields: head), RangeOrigin.bytes(0..<length, tag))
            }
            return TransportResponse(
                head: RangeOrigin.head(range, of: length, tag: tag, lifetime: lifetime),
                body: Pieces([RangeOrigin.bytes(range, tag)]).body(length: declaresLength ? Int64(range.count) : nil))
        }
    }

    /// Fetches a range, or the whole, and reads it.
    func getRange(
        _ range: Range<Int64>? = nil, from other: HTTPCache? = nil, _ options: FetchOptions = FetchOptions()
    ) async throws -> (FetchResponse, [UInt8]) {
        var request = try HTTPCache.request(for: Self.url)
        if let range { request.headerFields[.range] = "bytes=\(range.lowerBound)-\(range.upperBound - 1)" }
        let response = try await (other ?? cache).fetch(request, body: nil, options)
        return (response, try await response.body.bytes(limit: 1 << 30))
    }

    /// The parts that the response lists.
    var parts: [StoredPart] { get throws { try cache.changes.responses.parts(at: Key(Self.url)) } }

    /// Bytes that were copied to make the response whole.
    var copiedBytes: Int64 { cache.changes.responses.copiedBytes.load(ordering: .relaxed) }

    /// Another cache on the same store, with the same origin, as in another process.
    func otherCache() -> HTTPCache {
        HTTPCache(store: store, transport: transport, configuration: cache.configuration)
    }
}

/// A body of which the second half comes when a test lets it.
final class HalvedBody: Sendable {
    private let latch = Latch()
    private let pieces: Pieces
    private let next = Counter()

    init(_ bytes: [UInt8], isComplete: Bool = true) {
        let middle = bytes.count / 2
        pieces = Pieces(
            [Array(bytes[..<middle])] + (isComplete ? [Array(bytes[middle...])] : []), isComplete: isComplete)
    }

    /// Lets the second half come.
    func open() { latch.open() }

    /// The body, for one reader.
    func body(length: Int) -> TransportBody {
        TransportBody(length: Int64(length)) { [self] () throws(TransportError) in
            next.increment()
            if next.value == 2 { await latch.wait() }
            return try pieces.next()
        }
    }
}
