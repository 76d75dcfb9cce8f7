import HTTPTypes
import Hummingbird
import Larder
import LarderHTTP

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
    ///     `Set-Cookie`; whole seconds. For status 200, 203, 204, 300, 301 and 308, and not for event streams
    ///     (`text/event-stream`), which do not end. Clients are not told. Nil: such a response is not kept. Default:
    ///     nil.
    ///   - key: what a response depends on in addition to method and URL (`addedFields`, `custom`), or not
    ///     (`ignoresQuery`, `ignoredParameters`). Nil: as the cache's configuration says. Default: nil.
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
        // Within another one: the outer one waits for this answer and keeps it. To look for it, or to wait for a load,
        // could be to wait for the outer one. Connections that are upgraded are not answers to keep.
        if HandlerCall.current != nil || request.headers.contains(.upgrade) { return try await next(request, context) }
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
            return try await made(response, head)
        case .load(let pending):
            let response = try await withoutActuallyEscaping(next) { next in
                try await load(pending, content, HandlerCall(request, context, lifetime, next))
            }
            return try await made(response, head)
        }
    }

    private func made(_ response: FetchResponse, _ request: HTTPRequest) async throws -> Response {
        guard request.method == .head else { return try await HandledResponse.make(response) }
        var length: Int64?
        if !response.head.headerFields.contains(.contentLength) { length = await storedLength(request) }
        return HandledResponse.makeHead(response, length: length)
    }

    /// The length of the content that is kept for a URL.
    private func storedLength(_ request: HTTPRequest) async -> Int64? {
        var request = request
        request.method = .get
        for name in [HTTPField.Name.range, .ifRange, .ifNoneMatch, .ifModifiedSince, .ifMatch, .ifUnmodifiedSince] {
            request.headerFields[name] = nil
        }
        var options = options
        options.policy = .doNotLoad
        // A length that cannot be found is as good as none.
        guard
            case .response(let response)? =
                try? await cache.cache.answer(request, hasContent: false, body: nil, options)
        else { return nil }
        return response.body.length
    }

    /// Asks the handler, or waits for a request that asks it already.
    private func load(
        _ pending: LoadRequest, _ content: LarderHTTP.RequestBody?, _ call: HandlerCall
    ) async throws -> FetchResponse {
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
        case .success(let response): return response
        case .failure(let error):
            if error.code == .cancelled, Task.isCancelled { throw CancellationError() }
            if error.code == .timedOut || error.code == .overloaded {
                throw HTTPError(.serviceUnavailable)
            }
            throw error.transport?.cause ?? error
        }
    }
}
