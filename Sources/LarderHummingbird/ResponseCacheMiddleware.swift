import HTTPTypes
import Hummingbird
import Larder
import LarderHTTP
import NIOCore

/// Answers requests from a ``ResponseCache``, and lets what the handlers answer be kept.
///
///     router.add(middleware: ResponseCacheMiddleware(cache))
///     router.group("news").add(middleware: ResponseCacheMiddleware(cache, lifetime: .seconds(30)))
///
/// Put it after middleware that every request has to pass, such as authentication and logging, and before middleware
/// whose work is to be kept, such as compression. Requests that ask for the same at once share one call of the handler;
/// the handler is cancelled when the last of their clients has left, and not before.
public struct ResponseCacheMiddleware<Context: RequestContext>: RouterMiddleware {
    private let cache: ResponseCache
    private let lifetime: Duration?
    private let options: FetchOptions

    /// Makes a middleware; any number of them may share a cache.
    ///
    /// - Parameters:
    ///   - cache: where responses are kept.
    ///   - lifetime: how long a response stays fresh whose handler sets neither `Cache-Control` nor `Expires` nor
    ///     `Set-Cookie`; whole seconds. For status 200, 203, 204, 300, 301 and 308. Clients are not told. Nil: such a
    ///     response is not kept. Default: nil.
    ///   - key: what a response depends on besides method and URL (`addedFields`, `custom`), or not (`ignoresQuery`,
    ///     `ignoredParameters`). Nil: as the cache's configuration says. Default: nil.
    ///   - tags: names for everything that is kept here, in addition to those that handlers set. Default: none.
    public init(
        _ cache: ResponseCache, lifetime: Duration? = nil, key: KeyPolicy? = nil, tags: [String] = []
    ) {
        self.cache = cache
        self.lifetime = lifetime
        options = FetchOptions(keyPolicy: key, tags: tags)
    }

    /// Answers a request, from the store or by the handler.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - context: passed to the handler.
    ///   - next: the handler, with the middleware after this one.
    /// - Returns: the answer; its content may still be arriving.
    /// - Throws: what the handler throws.
    public func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        let head = cache.request(for: request)
        // The handler reads the content itself, except where the key takes it in.
        let content = request.hasContent ? request.contentForCache : nil
        let local: LocalAnswer
        do {
            local = try await cache.cache.answer(head, hasContent: content != nil, body: content, options)
        } catch {
            switch error.code {
            case .cancelled: throw CancellationError()
            // No key fits the request, such as one with a `Host` that is not valid.
            case .invalidURL: return try await next(request, context)
            default: throw error
            }
        }
        switch local {
        case .response(let response):
            return try await HandledResponse.make(response, method: request.method)
        case .load(let pending):
            return try await withoutActuallyEscaping(next) { next in
                try await load(pending, content, HandlerCall(request, context, lifetime, next))
            }
        }
    }

    /// Asks the handler, or waits for a request that asks it already.
    private func load(_ pending: LoadRequest, _ content: LarderHTTP.RequestBody?, _ call: HandlerCall) async throws
        -> Response
    {
        let result: Result<FetchResponse, FetchError> = await HandlerCall.$current.withValue(call) {
            var attempts = 0
            while true {
                do throws(FetchError) {
                    return .success(
                        try await cache.cache.load(pending, body: content, onInformational: nil))
                } catch {
                    attempts += 1
                    // The request that asked was gone before its handler ran: this one asks itself.
                    guard error.transport?.cause is HandlerCall.Gone, attempts < 4, !Task.isCancelled else {
                        return .failure(error)
                    }
                }
            }
        }
        // The handler must not be called once this function has returned.
        await call.close()
        if let refusal = call.refusal { throw refusal }
        switch result {
        case .success(let response): return try await HandledResponse.make(response, method: call.request.method)
        case .failure(let error):
            if error.code == .cancelled, Task.isCancelled { throw CancellationError() }
            throw error.transport?.cause ?? error
        }
    }
}

extension Request {
    /// Whether the client sends content (RFC 9110 section 8.6, RFC 9112 section 6).
    var hasContent: Bool {
        if let length = headers[.contentLength] { return length != "0" }
        if headers.contains(.transferEncoding) { return true }
        // HTTP/2 has no field for content of unknown length.
        return [.post, .put, .patch].contains(method) || isQuery
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

/// Turns what the cache answers into a response of the server.
enum HandledResponse {
    /// The longest stored content that is sent in one piece with its head, in bytes.
    private static let wholeBytes: Int64 = 256 << 10

    static func make(_ fetched: FetchResponse, method: HTTPRequest.Method) async throws -> Response {
        var fields = fetched.head.headerFields
        fields[.routeCacheControl] = nil
        let body = fetched.body
        var response: Response
        if method == .head || body.length == 0 {
            response = Response(status: fetched.head.status)
            // What the answer to HEAD, or a 304, says of its length is not that of its content.
            response.headers = fields
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
