import HTTPTypes
import Hummingbird
import LarderHTTP
import NIOCore

/// Turns what the cache answers into a response of the server.
enum HandledResponse {
    /// The longest stored content that is sent in one piece with its head, in bytes.
    private static let wholeBytes: Int64 = 256 << 10

    /// The answer to HEAD.
    ///
    /// - Parameter length: that of the content which GET would give, if the fields do not say it.
    static func makeHead(_ fetched: FetchResponse, length: Int64?) -> Response {
        var response = Response(status: fetched.head.status)
        response.headers = fetched.head.headerFields
        response.headers[.routeCacheControl] = nil
        if !response.headers.contains(.contentLength), ![.noContent, .notModified].contains(response.status) {
            // SwiftNIO ends a response without a length with an empty chunk, also that to HEAD, and the client takes
            // the chunk for the next response. Where no length is known it is the 0 of `createHeadResponse()`.
            response.headers[.contentLength] = "\(length ?? 0)"
        }
        return response
    }

    static func make(_ fetched: FetchResponse) async throws -> Response {
        var fields = fetched.head.headerFields
        fields[.routeCacheControl] = nil
        let body = fetched.body
        var response: Response
        if body.length == 0 {
            response = Response(status: fetched.head.status)
            if fields.contains(.contentLength) || [.noContent, .notModified].contains(response.status) {
                // What a 304 says of its length is not that of its content.
                response.headers = fields
            } else {
                response.headers.append(contentsOf: fields)
            }
            return response
        }
        if case .segments = body.source, let length = body.length, length <= wholeBytes {
            response = Response(status: fetched.head.status, headers: fields)
            response.body = Hummingbird.ResponseBody(byteBuffer: ByteBuffer(bytes: try await body.bytes()))
            return response
        }
        let length = body.length.flatMap { Int(exactly: $0) }
        return Response(
            status: fetched.head.status, headers: fields,
            body: Hummingbird.ResponseBody(contentLength: length) { writer in
                for try await piece in body { try await writer.write(ByteBuffer(bytes: piece)) }
                try await writer.finish(nil)
            })
    }
}
