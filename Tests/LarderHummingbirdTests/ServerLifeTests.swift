import HTTPTestSupport
import HTTPTypes
import Hummingbird
import Larder
import LarderHTTP
import LarderHummingbird
import Logging
import NIOCore
import ServiceLifecycle
import SystemPackage
import TestOrigin
import TestSupport
import Testing

/// A server that shuts down, a store that fails under it, and handlers that do not return.
struct ServerLifeTests {
    private static func router(
        _ cache: ResponseCache, _ handler: @escaping @Sendable (Request, BasicRequestContext) async throws -> Response
    ) -> Router<BasicRequestContext> {
        let router = Router()
        router.add(middleware: ResponseCacheMiddleware(cache, lifetime: .seconds(60)))
        router.get("a", use: handler)
        router.get("b", use: handler)
        router.put("a", use: handler)
        return router
    }

    private static var logger: Logger {
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        return logger
    }

    /// A request that is under way is answered and stored; then the store can be closed.
    @Test func aShutdownWhileALoadRuns() async throws {
        try await withStore { store in
            let cache = try ResponseCache(store: store, origin: "http://site.example")
            let (gate, listening) = (Gate(), Port())
            let router = Self.router(cache) { _, _ in
                try await gate.wait()
                return response(String(repeating: "x", count: 1 << 20))
            }
            let app = Application(
                router: router, configuration: .init(address: .hostname("127.0.0.1", port: 0)),
                onServerRunning: { await listening.set($0.localAddress?.port ?? 0) }, logger: Self.logger)
            let services = ServiceGroup(configuration: .init(services: [app], logger: Self.logger))
            let running = Task { try await services.run() }
            let client = try await RawClient.connect(to: await listening.value())
            try await client.send("GET /a HTTP/1.1\r\nHost: site.example\r\n\r\n")
            await gate.arrival()
            await services.triggerGracefulShutdown()
            gate.open()
            try await #expect(client.response().body.count == 1 << 20)
            try await client.close()
            try await running.value
            await cache.drain()
            let request = try HTTPCache.request(for: "http://site.example/a")
            let stored = try await cache.cache.fetch(request, FetchOptions(policy: .doNotLoad))
            try await #expect(stored.body.bytes().count == 1 << 20)
        }
    }

    /// Without its store the cache keeps nothing; the handlers answer.
    @Test func aStoreThatIsClosed() async throws {
        try await withDirectory { path in
            let store = try Store(at: path.appending("store"), .testing())
            var configuration = ResponseCache.configuration
            configuration.logger.logLevel = .critical
            let cache = try ResponseCache(store: store, configuration: configuration)
            let calls = Calls()
            let app = Application(
                router: Self.router(cache) { request, _ in response("\(request.method) \(calls.next())") },
                logger: Self.logger)
            try await app.test(.ahc(.http)) { client in
                func text(_ method: HTTPRequest.Method = .get) async throws -> String {
                    String(buffer: try await client.execute(uri: "/a", method: method).body)
                }
                for _ in 0..<2 { try await #expect(text() == "GET 1") }
                await cache.drain()
                try await store.close()
                try await #expect(text() == "GET 2")
                try await #expect(text(.put) == "PUT 3")
                try await #expect(text() == "GET 4")
            }
        }
    }

    /// The directory is gone under a server that runs: every request is answered with the right bytes.
    @Test func aStoreWhoseDirectoryVanishes() async throws {
        try await withDirectory { path in
            let store = try Store(at: path.appending("store"), .testing())
            var configuration = ResponseCache.configuration
            configuration.logger.logLevel = .critical
            let cache = try ResponseCache(store: store, configuration: configuration)
            let long = String(repeating: "long", count: 50_000)
            let app = Application(
                router: Self.router(cache) { request, _ in
                    response(request.uri.path == "/a" ? long : "short")
                }, logger: Self.logger)
            try await app.test(.ahc(.http)) { client in
                func text(_ path: String, _ method: HTTPRequest.Method = .get) async throws -> String {
                    String(buffer: try await client.execute(uri: path, method: method).body)
                }
                func check() async throws {
                    for _ in 0..<2 {
                        try await #expect(text("/a") == long)
                        try await #expect(text("/b") == "short")
                    }
                }
                try await check()
                await cache.drain()
                TestFiles.remove(path.appending("store"))
                try await check()
                try await #expect(text("/a", .put) == long)
                try await check()
                await cache.drain()
            }
            // What the index says is in a file that no one else can see.
            do { try await store.close() } catch is LarderError {}
        }
    }

    /// `Timeouts.total` ends the wait for a handler: it is cancelled, and the client gets 503.
    @Test func aHandlerThatDoesNotReturn() async throws {
        let (gate, calls) = (Gate(), Calls())
        try await ServerSetting.run {
            $0.timeouts.total = .seconds(5)
        } routes: { router, cache in
            router.add(middleware: ResponseCacheMiddleware(cache, lifetime: .seconds(60)))
            router.get("a") { _, _ -> Response in
                _ = calls.next()
                try await gate.wait()
                return response("late")
            }
            router.get("b") { _, _ in response("at once") }
        } _: { setting in
            async let first = setting.code()
            await gate.arrival()
            // Others do not wait for it.
            try await #expect(setting.text(.get, "/b") == "at once")
            try await #expect(first == 503)
            #expect(calls.count == 1)
        }
    }
}

/// The port of a server, for those who wait until it listens.
private actor Port {
    private var port: Int?
    private var waiting: [CheckedContinuation<Int, Never>] = []

    func set(_ port: Int) {
        self.port = port
        for continuation in waiting { continuation.resume(returning: port) }
        waiting = []
    }

    func value() async -> Int {
        if let port { return port }
        return await withCheckedContinuation { waiting.append($0) }
    }
}
