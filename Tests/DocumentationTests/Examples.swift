import Foundation
import HTTPCaching
import HTTPTypes
import Larder
import LarderGateway
import LarderHTTP
import LarderNIOTransport
import LarderPackages
import LarderURLSession

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// Every Swift block of docs/*.md, verbatim but for its indentation and its imports: that this file compiles is the test
// that they do. `DocumentationTests` compares the two.

enum Examples {
    static func concurrencyWithBody(store: Store) throws {
        let sum = try store.withBody(of: "https://example.com/hello") { span in
            (0..<span.byteCount).reduce(0) { $0 + Int(span.unsafeLoad(fromByteOffset: $1, as: UInt8.self)) }
        }
        print(sum ?? 0)
    }

    static func recoveryRebuild() throws {
        do {
            try Store(at: "/var/cache/app").close()
        } catch let error as LarderError where error.code == .corruption {
            let report = try Store.rebuildIndex(at: "/var/cache/app")
            print("\(report.keptEntries) entries kept; damaged: \(report.damages)")
        }
    }

    static func recoveryCheck(store: Store) throws {
        let report = try store.check(repair: true)
        for violation in report.violations { print(violation) }
    }

    static func httpCacheFiveMinutes() async throws {
        let store = try Store(at: "/var/cache/app", Configuration(budget: Budget(bytes: .gigabytes(1))))
        let transport = NIOTransport()
        let cache = HTTPCache(store: store, transport: transport)

        let answer = try await cache.fetch("https://example.org/news")
        print(answer.source, answer.head.status.code, answer.freshSeconds ?? 0)
        for try await piece in answer.body { print(piece.count) }

        await cache.drain()
        await transport.close()
        try await store.close()
    }

    static func httpCacheRequest(cache: HTTPCache) async throws {
        var request = try HTTPCache.request(for: "https://example.org/news", method: .get)
        request.headerFields[.acceptLanguage] = "de, en;q=0.5"
        let options = FetchOptions(
            policy: [.askIfModified, .fallbackToCacheIfLoadFails], tags: ["news"],
            timeouts: Timeouts(connect: .seconds(3), read: .seconds(10)), priority: .high)
        let response = try await cache.fetch(request, options)
        print(response.source)
    }

    static func httpCacheSynchronous(cache: HTTPCache) throws {
        let response = try cache.fetchAndWait("https://example.org/news")
        let bytes = try response.body.bytesAndWait()
        print(bytes.count)
    }

    struct AtMostThisOld: ReusePolicy {
        let seconds: Int64

        func reuse(_ stored: StoredResponse, for request: HTTPRequest, now: Instant) throws -> Reuse {
            now.milliseconds(since: stored.responseTime) < seconds * 1_000 ? .use : .load
        }
    }

    static func httpCacheRegistry(store: Store, transport: NIOTransport) async throws {
        let registry = PolicyRegistry()
        registry.register(AtMostThisOld(seconds: 60), id: 100)
        registry.register(AtMostThisOld(seconds: 3_600), id: 101)
        var configuration = HTTPCacheConfiguration()
        configuration.registry = registry
        let cache = HTTPCache(store: store, transport: transport, configuration: configuration)
        let answer = try await cache.fetch("https://example.org/news", FetchOptions(policyID: 101))
        print(answer.source)
    }

    static func httpCacheRefreshing(cache: HTTPCache) async throws {
        let both = try await cache.fetchRefreshing(HTTPCache.request(for: "https://example.org/news"))
        if let cached = both.cached { print("so far:", try await cached.body.bytes().count) }
        let refreshed = try await both.refreshed.value
        print(refreshed.source)
    }

    static func httpCacheStored(cache: HTTPCache, store: Store) async throws {
        let request = try HTTPCache.request(for: "https://example.org/news")
        if let stored = try await cache.stored(request) {
            print(stored.isFresh, stored.ageSeconds, stored.freshSeconds, stored.status, stored.isComplete)
            // The entry behind it, for everything that a store can do with one.
            try await store.pin(stored.key)
            try await store.perform { try $0.export(stored.key, to: "/tmp/news.html") }
        }
        // As if the origin had just sent it: under the same rules, with the same invalidations.
        let response = HTTPResponse(status: .ok, headerFields: [.cacheControl: "max-age=60"])
        let isStored = try await cache.store(response, body: Array("hello".utf8), for: request)
        // Fresh for an hour from now on. `Cache-Control` and `Age` stay what they were: other caches go by these.
        try await cache.setFreshness(.seconds(3600), of: request)
        print(isStored)
    }

    static func logLevels() {
        let levels = LogLevels(.warning)
        var opening = Configuration()
        opening.logger = levels.logger(opening.logger)
        var caching = HTTPCacheConfiguration()
        caching.logger = levels.logger(caching.logger)
        // At any time, for all parts that have such a logger:
        levels["storing"] = .debug
        levels.level = .info
        _ = (opening, caching)
    }

    static func httpCachePurge(cache: HTTPCache, store: Store) async throws {
        let fiveDaysAgo = store.now - .seconds(5 * 86_400)
        try await cache.purge(.storedBefore(fiveDaysAgo) && !.pinned) { progress in
            print("\(progress.removed) of \(progress.examined)")
        }
    }

    struct CountingTransport: Transport {
        let inner: any Transport
        let count: @Sendable (TransportRequest) -> Void

        func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
            count(request)
            return try await inner.send(request)
        }

        func endpoint(for request: TransportRequest) -> String { inner.endpoint(for: request) }
    }

    static func transportProxy() async {
        var configuration = NIOTransport.Configuration()
        configuration.proxy = NIOTransport.Proxy(
            host: "proxy.example", port: 3_128, credentials: .init(user: "me", password: "secret"),
            exceptions: ["localhost", "127.0.0.1", ".intern.example"])
        let transport = NIOTransport(configuration)
        await transport.close()
    }

    static func gatewayKeeper(
        settings: GatewayConfiguration, routes: Routes, transport: NIOTransport, caching: HTTPCacheConfiguration
    ) async throws {
        let configuration = Configuration(budget: Budget(bytes: .gigabytes(10)))
        let keeper = StoreKeeper(at: "/var/cache/gateway", configuration) { store in
            HTTPCache(store: store, transport: RoutedTransport(routes, over: transport), configuration: caching)
        }
        let gateway = try await Gateway.start(settings, cache: try keeper.open())
        let watching = Task { await keeper.run(gateway) }

        watching.cancel()
        await watching.value
        await gateway.stop(drain: .seconds(10))
        await keeper.cache?.drain()
        try keeper.close()
    }

    static func gatewayEmbedding() async throws {
        let store = try Store(at: "/var/cache/gateway", Configuration(budget: Budget(bytes: .gigabytes(10))))
        var settings = GatewayConfiguration()
        settings.port = 8080
        settings.adminPort = 9100
        settings.routes = Routes(otherwise: try OriginServer("http://127.0.0.1:9000"))

        var caching = HTTPCacheConfiguration()
        caching.caching = .gateway
        caching.viaName = "edge-1"
        let transport = NIOTransport()
        let cache = HTTPCache(
            store: store, transport: RoutedTransport(settings.routes, over: transport), configuration: caching)
        let gateway = try await Gateway.start(settings, cache: cache)
        print(gateway.address?.port ?? 0)

        await gateway.stop(drain: .seconds(10))
        await cache.drain()
        await transport.close()
        try await store.close()
    }

    static func packages(store: Store, cache: HTTPCache) async throws {
        let packages = PackageStore(store)
        var options = InstallOptions()
        options.mode = .pin
        let result = try await packages.install("Resources/site.zip", options)
        print("\(result.added) responses, \(result.unchanged) as before")
        let answer = try await cache.fetch("https://www.example.com/index.html", FetchOptions(isOffline: true))
        _ = answer
    }

    static func urlSessionFiveMinutes() async throws {
        let store = try Store(at: "/var/cache/app", Configuration(budget: Budget(bytes: .megabytes(200))))
        let configuration = URLSessionConfiguration.default
        let transport = URLSessionTransport(configuration)
        let cache = HTTPCache(store: store, transport: transport)
        configuration.useCache(cache)
        let session = URLSession(configuration: configuration)

        let (data, response) = try await session.data(from: URL(string: "https://example.org/news")!)
        print(data.count, (response as? HTTPURLResponse)?.statusCode ?? 0)
    }

    static func urlSessionCatalogue(store: Store) {
        let configuration = URLSessionConfiguration.default
        let cache = HTTPCache(store: store, transport: URLSessionTransport(configuration))
        configuration.useCache(cache)
        let session = URLSession(configuration: configuration)
        session.invalidateAndCancel()
    }

    static func urlSessionOptions(configuration: URLSessionConfiguration, cache: HTTPCache) async throws {
        let caching = configuration.useCache(cache, URLSessionCachingOptions(delivery: .pieces))
        let request = URLRequest(url: URL(string: "https://example.org/film")!)
        try await caching.download(for: request, to: URL(fileURLWithPath: "film.mp4"))
        try await caching.invalidate(request)
    }

    static func urlSessionURLCache(store: Store) {
        let responses = StoreURLCache(store) { error in print("not stored:", error) }
        URLCache.shared = responses
    }

    static func urlSessionExtension() throws {
        let extensionStore = try Store(at: "/path/of/the/group/larder", .forAppExtension(budget: .megabytes(12)))
        try extensionStore.close()
    }

    static func urlSessionSuspension(caching: URLSessionCaching, transport: URLSessionTransport) async throws {
        // In UIApplication.didEnterBackgroundNotification, or NSExtensionHostDidEnterBackground.
        try await caching.suspend()

        // In willEnterForegroundNotification.
        let reopened = try Store(at: "/path/of/the/group/larder", .forAppExtension())
        caching.resume(HTTPCache(store: reopened, transport: transport))
    }
}
