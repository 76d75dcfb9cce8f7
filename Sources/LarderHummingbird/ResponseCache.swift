import HTTPCaching
import HTTPTypes
import Hummingbird
import Larder
import LarderHTTP

/// A shared cache in front of the handlers of a Hummingbird server (RFC 9111).
///
///     let cache = try ResponseCache(store: store, origin: "https://example.org")
///     let router = Router()
///     router.add(middleware: ResponseCacheMiddleware(cache))
///     router.get("articles/:id") { request, context -> Response in
///         var response = try await article(request, context)
///         response.headers[.cacheControl] = "public, max-age=60"
///         response.cacheTags = ["articles"]
///         return response
///     }
///     // When an article changes:
///     try await cache.purge(tag: "articles")
///
/// It owns no store and runs no handler itself: ``ResponseCacheMiddleware`` does, for each request that the store
/// cannot answer. Safe to use from any thread and task. Several caches, in this process or others, may share one store.
public final class ResponseCache: Sendable {
    /// The cache behind it: purging by prefix or group, and what troubles the store has had.
    public let cache: HTTPCache
    /// What is put in place of the scheme and the host that clients name.
    let origin: (scheme: String, authority: String)?

    /// How a cache in front of handlers behaves unless told otherwise: a shared cache that keeps what a response says
    /// it may, and nothing on a guess. A handler that fails is not hidden by a stale response unless that allows it
    /// (`stale-if-error`).
    public static var configuration: HTTPCacheConfiguration {
        var configuration = HTTPCacheConfiguration()
        configuration.caching = .gateway
        configuration.caching.heuristicPercent = 0
        configuration.caching.servesStaleWhenDisconnected = false
        configuration.caching.takesServerErrorAsDisconnection = false
        // A server counts its requests itself.
        configuration.requestsPerHost = 1 << 20
        configuration.requestLimit = 1 << 20
        return configuration
    }

    /// Joins a store and the handlers of a server.
    ///
    /// - Parameters:
    ///   - store: an open store, which stays the caller's to close, after ``drain()``.
    ///   - origin: scheme and host of the site, such as `https://example.org`, by which responses are kept whatever the
    ///     client's `Host` says. Nil: each host that a client names has its own; then limit the hosts that reach the
    ///     server, because clients choose how many there are. Default: nil.
    ///   - configuration: how the cache behaves. Handlers are asked only while a request waits, once, and for whole
    ///     responses: settings for a second attempt, for parts and for the memory of failures have no effect, and the
    ///     cache is always a shared one (`CachingOptions.mode`). Default:
    ///     ``configuration``.
    /// - Throws: `FetchError` with `invalidURL` for an origin that is not valid.
    public init(
        store: Store, origin: String? = nil,
        configuration: HTTPCacheConfiguration = ResponseCache.configuration
    ) throws(FetchError) {
        var configuration = configuration
        // All clients share it, so `private` and the rules for `Authorization` have to count.
        configuration.caching.mode = .shared
        configuration.caching.storesPartialResponses = false
        configuration.caching.targetedFields.insert(.routeCacheControl, at: 0)
        configuration.retries = .none
        configuration.originFailureMemory = nil
        configuration.sliceBytes = nil
        configuration.revalidatesInBackground = false
        if let origin {
            let request = try HTTPCache.request(for: origin)
            self.origin = (request.scheme ?? "http", request.authority ?? "")
        } else {
            self.origin = nil
        }
        cache = HTTPCache(store: store, transport: HandlerTransport(), configuration: configuration)
    }

    /// Removes everything kept for a URL: all methods and variants. The cooperative pool does not wait.
    ///
    /// - Parameter url: absolute, or a path of the origin that the cache was made with.
    /// - Returns: how many responses were removed.
    /// - Throws: `FetchError` with `invalidURL`, and `LarderError` when the store cannot be written.
    @discardableResult
    public func purge(_ url: String) async throws -> Int {
        guard url.hasPrefix("/"), let origin else { return try await cache.purge(url) }
        return try await cache.purge("\(origin.scheme)://\(origin.authority)\(url)")
    }

    /// Removes everything kept under a tag. The cooperative pool does not wait.
    ///
    /// - Parameter tag: one that a handler gave a response: see `Response.cacheTags`.
    /// - Returns: how many responses were removed.
    /// - Throws: `LarderError` when the store cannot be read or written.
    @discardableResult
    public func purge(tag: String) async throws -> Int { try await cache.purge(tag: tag) }

    /// Returns when no response is being stored: call it before the store is closed.
    public func drain() async { await cache.drain() }

    /// The request as the cache sees it.
    func request(for request: Request) -> HTTPRequest {
        var head = request.head
        head.scheme = origin?.scheme ?? head.scheme ?? "http"
        head.authority = origin?.authority ?? head.authority ?? request.headers[.hostField] ?? "localhost"
        // The server is the end of the connection: what a client names there still counts for key and variant, as it
        // did for the middleware before this one.
        head.headerFields[.connection] = nil
        return head
    }
}

extension HTTPField.Name {
    /// The lifetime that a route gives, where the handler says nothing: a field that only this cache sees (RFC 9213
    /// section 2).
    static let routeCacheControl = HTTPField.Name("Larder-Route-Cache-Control")!
    static let cacheTag = HTTPField.Name("Cache-Tag")!
    /// In place of `:authority`, which HTTP/2 allows (RFC 9113 section 8.3.1).
    static let hostField = HTTPField.Name("Host")!
}

extension Response {
    /// The names under which a cache in front of the handler keeps this response: the members of `Cache-Tag`. Members
    /// have 1 to 200 bytes, without spaces or commas.
    public var cacheTags: [String] {
        get {
            headers[values: .cacheTag].flatMap { $0.split { $0 == "," || $0 == " " } }.map(String.init)
        }
        set { headers[.cacheTag] = newValue.isEmpty ? nil : newValue.joined(separator: ", ") }
    }
}
