import AsyncHTTPClient
import HTTPTypes
import Larder
import LarderHTTP
import Logging
import NIOCore
import NIOHTTP1
import Locks

/// An `HTTPClient` that keeps what may be kept, with the calls of AsyncHTTPClient.
///
///     let client = CachingHTTPClient(store: store)  // was: HTTPClient()
///     let response = try await client.execute(HTTPClientRequest(url: "https://example.org/"), timeout: .seconds(30))
///     let body = try await response.body.collect(upTo: 1 << 20)
///     try await client.shutdown()
///
/// The configuration of the client stays in force: its proxy and the credentials for it, TLS, timeouts, limits of
/// connections, redirects (each answer on the way is cached) and decompression (stored as sent, decompressed for the
/// caller within the configured limit). Errors are those that the client throws. See `docs/asynchttpclient.md` for what
/// differs.
///
/// It owns an `HTTPClient`: call ``shutdown()`` before the last reference is dropped. Safe to use from any thread and
/// task.
public final class CachingHTTPClient: Sendable {
    /// The cache: to purge, to work offline, to wait for loads. Requests that are made here follow no redirects.
    public let cache: HTTPCache
    let client: HTTPClient
    private let redirects: ClientSettings.FollowConfiguration?
    private let growthLimit: ClientSettings.GrowthLimit?
    private let isShutDown = Atomic(false)

    /// A private cache whose limits of requests leave the counting to the client's pool, which lets any number wait.
    /// Change what you like and pass it to
    /// ``init(store:eventLoopGroup:configuration:cache:backgroundActivityLogger:)``.
    public static var cacheConfiguration: HTTPCacheConfiguration {
        var configuration = HTTPCacheConfiguration()
        configuration.requestsPerHost = 1 << 20
        configuration.requestLimit = 1 << 20
        configuration.timeouts = ownTimeouts
        return configuration
    }

    /// The deadline of each call and the client's own timeouts count; a cache's would be two more. A day is for a
    /// validation in the background, which has no caller whose time could be over.
    private static let ownTimeouts = Timeouts(
        connect: .zero, read: .seconds(86_400), write: .seconds(86_400), queue: .seconds(86_400))

    /// Makes a client and a cache in front of it.
    ///
    /// - Parameters:
    ///   - store: an open store, which stays the caller's to close, after ``shutdown()``.
    ///   - eventLoopGroup: where the connections live. Default: the one that `HTTPClient` has by default.
    ///   - configuration: as for `HTTPClient`.
    ///   - cache: how the cache behaves. Its time limits count in addition to those of the client. Default:
    ///     ``cacheConfiguration``.
    ///   - backgroundActivityLogger: as for `HTTPClient`. Default: nothing is logged.
    public init(
        store: Store, eventLoopGroup: any EventLoopGroup = HTTPClient.defaultEventLoopGroup,
        configuration: HTTPClient.Configuration = HTTPClient.Configuration(),
        cache: HTTPCacheConfiguration = CachingHTTPClient.cacheConfiguration,
        backgroundActivityLogger: Logger? = nil
    ) {
        redirects = ClientSettings.redirects(configuration)
        growthLimit = ClientSettings.decompression(configuration)
        let inner = AsyncHTTPClientTransport.innerConfiguration(configuration)
        if let backgroundActivityLogger {
            client = HTTPClient(
                eventLoopGroup: eventLoopGroup, configuration: inner,
                backgroundActivityLogger: backgroundActivityLogger)
        } else {
            client = HTTPClient(eventLoopGroup: eventLoopGroup, configuration: inner)
        }
        self.cache = HTTPCache(store: store, transport: AsyncHTTPClientTransport(client), configuration: cache)
    }

    /// Where the connections live.
    public var eventLoopGroup: any EventLoopGroup { client.eventLoopGroup }

    // MARK: Requests

    /// Answers a request from the store, or from the network.
    ///
    /// - Parameters:
    ///   - request: as for `HTTPClient`.
    ///   - deadline: when the head of the answer has to be there. A request that others wait for, too, continues.
    ///   - logger: as for `HTTPClient`. Default: nothing is logged.
    ///   - options: what this request wants other than the cache's configuration says. Default: nothing.
    /// - Returns: the answer when its head is there; its content may still be arriving.
    /// - Throws: what `HTTPClient` throws, and `FetchError` where only a cache can fail.
    public func execute(
        _ request: HTTPClientRequest, deadline: NIODeadline, logger: Logger? = nil,
        options: FetchOptions = FetchOptions()
    ) async throws -> HTTPClientResponse {
        try await follow(
            request, isReplayable: ClientSettings.isReplayable(request.body), deadline, logger, options)
    }

    /// Answers a request from the store, or from the network.
    ///
    /// - Parameters:
    ///   - request: as for `HTTPClient`.
    ///   - timeout: how long the head of the answer may take.
    ///   - logger: as for `HTTPClient`. Default: nothing is logged.
    ///   - options: what this request wants other than the cache's configuration says. Default: nothing.
    /// - Returns: the answer when its head is there; its content may still be arriving.
    /// - Throws: what `HTTPClient` throws, and `FetchError` where only a cache can fail.
    public func execute(
        _ request: HTTPClientRequest, timeout: TimeAmount, logger: Logger? = nil,
        options: FetchOptions = FetchOptions()
    ) async throws -> HTTPClientResponse {
        try await execute(request, deadline: .now() + timeout, logger: logger, options: options)
    }

    /// Follows redirects.
    ///
    /// - Parameter isReplayable: whether the content can be sent a second time.
    func follow(
        _ request: HTTPClientRequest, isReplayable: Bool, _ deadline: NIODeadline, _ logger: Logger?,
        _ options: FetchOptions
    ) async throws -> HTTPClientResponse {
        var request = request
        var trail = redirects.map { RedirectTrail($0, from: request.url) }
        var history: [HTTPClientRequestResponse] = []
        while true {
            var response = try await answer(request, deadline, logger, options)
            let head = HTTPResponseHead(version: response.version, status: response.status, headers: response.headers)
            history.append(HTTPClientRequestResponse(request: request, responseHead: head))
            response.history = history
            let location = response.headers.first(name: "Location")
            guard let next = try trail?.next(after: request, response.status, location),
                next.body == nil || isReplayable
            else { return response }
            let body = response.body
            // Read to its end, if that is near, so that it is stored and its connection can be used again.
            try? await limited(by: min(deadline, .now() + Self.skippingTime)) { await Self.skip(body) }
            request = next
        }
    }

    /// The most of a redirect's content that is read, in bytes.
    private static let skippedBytes = 64 << 10
    /// How long that may take. The answer has said where to go.
    private static let skippingTime = TimeAmount.seconds(1)

    private static func skip(_ body: HTTPClientResponse.Body) async {
        var rest = skippedBytes
        // An answer that cannot be read to its end has said where to go all the same.
        do {
            for try await piece in body {
                rest -= piece.readableBytes
                if rest <= 0 { return }
            }
        } catch {}
    }

    /// Answers one request.
    private func answer(
        _ request: HTTPClientRequest, _ deadline: NIODeadline, _ logger: Logger?, _ options: FetchOptions
    ) async throws -> HTTPClientResponse {
        guard !isShutDown.load(ordering: .acquiring) else { throw HTTPClientError.alreadyShutdown }
        var request = request
        // A range of coded content cannot be decompressed.
        if growthLimit != nil, !request.headers.contains(name: "Accept-Encoding"),
            !request.headers.contains(name: "Range")
        {
            request.headers.add(name: "Accept-Encoding", value: "deflate, gzip")
        }
        guard case .cached(let head) = OutgoingRequest(request) else {
            var response = try await client.execute(request, deadline: deadline, logger: logger)
            if let limit = DeliveredBody.limit(growthLimit, for: response.headers) {
                response.body = .stream(DeliveredBody(response.body, limit: limit))
            }
            return response
        }
        // The content of a QUERY is part of its key: the cache reads it, and passes it on.
        let isQuery = head.method.rawValue == "QUERY"
        let call = ClientCall(content: isQuery ? nil : request.body, logger: logger)
        let content = request.body?.forCache
        let options = separated(options, for: head)
        let cache = cache
        do {
            let fetched = try await ClientCall.$current.withValue(call) {
                let local = try await cache.answer(head, hasContent: content != nil, body: content, options)
                switch local {
                case .response(let response): return response
                case .load(let pending):
                    return try await limited(by: deadline) {
                        try await cache.load(pending, body: content, onInformational: nil)
                    }
                }
            }
            return delivered(options.watched(fetched))
        } catch {
            throw error.asClientError
        }
    }

    /// The options of a request that has credentials, under a key of their own.
    ///
    /// A private cache may keep what answers them, as that of a browser with one user does (RFC 9111 section 3.5 binds
    /// shared caches only). A program that sends the requests of several users must not mix their answers up.
    private func separated(_ options: FetchOptions, for request: HTTPRequest) -> FetchOptions {
        guard cache.configuration.caching.mode == .private, options.keyPolicy == nil else { return options }
        let credentials = Self.credentials.filter(request.headerFields.contains)
        guard !credentials.isEmpty else { return options }
        var options = options
        var policy = cache.configuration.keyPolicy
        policy.addedFields += credentials.filter { !policy.addedFields.contains($0) }
        options.keyPolicy = policy
        return options
    }

    private static let credentials: [HTTPField.Name] = [.authorization, .cookie]

    private func delivered(_ response: FetchResponse) -> HTTPClientResponse {
        var headers = HTTPHeaders()
        headers.reserveCapacity(response.head.headerFields.count)
        for field in response.head.headerFields { headers.add(name: field.name.rawName, value: field.value) }
        let limit = DeliveredBody.limit(growthLimit, for: headers)
        return HTTPClientResponse(
            status: HTTPResponseStatus(statusCode: response.head.status.code), headers: headers,
            body: .stream(DeliveredBody(response.body, limit: limit)))
    }

    /// Does something until a deadline.
    func limited<Value: Sendable>(
        by deadline: NIODeadline, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        guard deadline < .distantFuture else { return try await body() }
        let rest = deadline - .now()
        guard rest > .zero else { throw HTTPClientError.deadlineExceeded }
        return try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await body() }
            group.addTask {
                try await Task.sleep(for: .nanoseconds(rest.nanoseconds))
                return nil
            }
            defer { group.cancelAll() }
            guard let value = try await group.next() ?? nil else { throw HTTPClientError.deadlineExceeded }
            return value
        }
    }

    // MARK: Shutting down

    /// Ends all requests and shuts the client down. The store stays open.
    ///
    /// - Throws: `HTTPClientError.alreadyShutdown`.
    public func shutdown() async throws {
        isShutDown.store(true, ordering: .releasing)
        cache.cancelAll()
        try await client.shutdown()
        await cache.drain()
    }

    /// As above, for callers without a task.
    ///
    /// - Returns: fails with `HTTPClientError.alreadyShutdown`.
    public func shutdown() -> EventLoopFuture<Void> {
        let promise = eventLoopGroup.any().makePromise(of: Void.self)
        promise.completeWithTask { try await self.shutdown() }
        return promise.futureResult
    }

    /// As above, waiting on the calling thread: any thread but those of an event loop and of Swift's cooperative pool.
    ///
    /// - Throws: `HTTPClientError.alreadyShutdown`.
    @available(*, noasync, message: "it can block indefinitely, prefer shutdown()", renamed: "shutdown()")
    public func syncShutdown() throws { try shutdown().wait() }
}
