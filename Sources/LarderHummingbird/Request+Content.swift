import HTTPTypes
import Hummingbird
import LarderHTTP
import NIOCore

extension Request {
    /// Whether the client sends content (RFC 9110 section 8.6, RFC 9112 section 6).
    var hasContent: Bool {
        if headers.contains(.transferEncoding) { return true }
        if let length = headers[.contentLength] { return length != "0" }
        // HTTP/2 has no field for content of unknown length: only GET and HEAD are known to have none.
        return ![.get, .head].contains(method)
    }

    var isQuery: Bool { method.rawValue == "QUERY" }

    /// The content for the cache to read: that of a QUERY is part of its key.
    var contentForCache: LarderHTTP.RequestBody {
        guard isQuery else { return LarderHTTP.RequestBody(length: nil) { nil } }
        let reader = ContentReader(body)
        return LarderHTTP.RequestBody(length: nil) { try await reader.next() }
    }

    /// Holds the iterator of a content for the one reader it has.
    private final class ContentReader: @unchecked Sendable {
        // SAFETY: the pull closure of a RequestBody is never called from two tasks at once.
        private let content: Hummingbird.RequestBody
        private var iterator: Hummingbird.RequestBody.AsyncIterator?

        init(_ content: Hummingbird.RequestBody) { self.content = content }

        func next() async throws -> [UInt8]? {
            var current = iterator ?? content.makeAsyncIterator()
            defer { iterator = current }
            while let piece = try await current.next() {
                if piece.readableBytes > 0 { return Array(piece.readableBytesView) }
            }
            return nil
        }
    }
}
