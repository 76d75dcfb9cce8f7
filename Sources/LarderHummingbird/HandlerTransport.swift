import HTTPTypes
import Hummingbird
import Larder
import LarderHTTP

/// Sends the requests of a cache to the handler of the request that waits.
struct HandlerTransport: Transport {
    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        guard let call = HandlerCall.current else { throw Self.failure(HandlerCall.Gone(), request) }
        let response: Response
        do {
            response = try await call.run(Self.handled(request, call.request))
        } catch let error as HTTPError where error.status == .notModified {
            return TransportResponse(
                head: HTTPResponse(status: .notModified, headerFields: error.headers), body: .empty)
        } catch let error as any HTTPResponseError where error.status.code < 500 {
            // An answer that is thrown. It is not kept, as its content is made further up.
            call.refuse(error)
            return TransportResponse(
                head: HTTPResponse(status: error.status, headerFields: [.cacheControl: "no-store"]), body: .empty)
        } catch {
            throw Self.failure(error, request)
        }
        let head = HTTPResponse(status: response.status, headerFields: Self.fields(response, call.lifetime))
        if request.head.method == .head || [.noContent, .notModified].contains(response.status) {
            return TransportResponse(head: head, body: .empty)
        }
        let body = HandlerBody(response.body)
        do {
            return TransportResponse(head: head, body: try await body.start())
        } catch {
            throw Self.failure(error, request)
        }
    }

    /// The request for the handler: what the cache sends, with what only one hop knows.
    private static func handled(_ sent: TransportRequest, _ original: Request) -> Request {
        var head = original.head
        head.method = sent.head.method
        // What the key was made of: a response for other names would be kept for all.
        head.scheme = sent.head.scheme
        head.authority = sent.head.authority
        var fields = sent.head.headerFields
        let kept: [HTTPField.Name] = [.contentLength, .transferEncoding, .connection]
        for name in kept where original.headers.contains(name) { fields[values: name] = original.headers[values: name] }
        head.headerFields = fields
        // What the rules took for a request without content gets none (HTTP/2 needs no field that announces it).
        if [.get, .head].contains(head.method), !original.hasContent {
            return Request(head: head, body: Hummingbird.RequestBody(buffer: ByteBuffer()))
        }
        guard original.isQuery, let content = sent.body else { return Request(head: head, body: original.body) }
        return Request(head: head, body: Hummingbird.RequestBody(asyncSequence: ReadContent(content)))
    }

    /// What is kept of a status that says nothing about its freshness.
    private static let statuses: Set<Int> = [200, 203, 204, 300, 301, 308]
    /// Fields by which a handler speaks for itself.
    private static let ownWords: [HTTPField.Name] = [
        .cacheControl, .expires, .setCookie, .init("Pragma")!, .init("CDN-Cache-Control")!,
    ]

    /// The handler's fields, with the lifetime that the route gives.
    private static func fields(_ response: Response, _ lifetime: Duration?) -> HTTPFields {
        var fields = response.headers
        fields[.routeCacheControl] = nil
        let isEventStream = fields[.contentType]?.lowercased().hasPrefix("text/event-stream") ?? false
        if let lifetime, !isEventStream, statuses.contains(response.status.code),
            !ownWords.contains(where: fields.contains)
        {
            fields[.routeCacheControl] = "max-age=\(max(0, lifetime.components.seconds))"
        }
        return fields
    }

    private static func failure(_ error: any Error, _ request: TransportRequest) -> TransportError {
        if let error = error as? TransportError { return error }
        let code: TransportError.Code = error is CancellationError ? .cancelled : .closed
        return TransportError(
            code, mayHaveBeenSeen: !(error is HandlerCall.Gone),
            "the handler of \(request.head.path ?? "/") failed: \(error)", cause: error)
    }
}

/// Content that the cache has read, for a handler.
private struct ReadContent: AsyncSequence, Sendable {
    let content: LarderHTTP.RequestBody
    init(_ content: LarderHTTP.RequestBody) { self.content = content }

    func makeAsyncIterator() -> Iterator { Iterator(pull: content.makePull()) }

    struct Iterator: AsyncIteratorProtocol {
        let pull: @Sendable () async throws -> [UInt8]?
        mutating func next() async throws -> ByteBuffer? { try await pull().map { ByteBuffer(bytes: $0) } }
    }
}
