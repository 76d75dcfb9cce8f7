import HTTPTypes
import Hummingbird
import HummingbirdCore
import HummingbirdTesting
import Larder
import LarderHTTP
import LarderHummingbird
import Logging
import NIOCore
import Locks
import TestSupport
import Testing

/// A server whose handlers are cached, on a real socket, and a client of it.
struct ServerSetting: Sendable {
    let cache: ResponseCache
    let client: any TestClientProtocol
    let clock: TestClock

    /// Starts a server.
    /// - Parameters:
    ///   - origin: as for the cache.
    ///   - scheme: that of the client's requests.
    ///   - server: the protocols that the server speaks.
    ///   - configure: changes the cache's configuration.
    ///   - routes: adds middleware and routes.
    ///   - body: the test.
    static func run(
        origin: String? = "http://site.example", scheme: TestHTTPScheme = .http, server: HTTPServerBuilder = .http1(),
        configure: (inout HTTPCacheConfiguration) -> Void = { _ in },
        routes: (Router<BasicRequestContext>, ResponseCache) -> Void,
        _ body: @escaping @Sendable (ServerSetting) async throws -> Void
    ) async throws {
        let clock = TestClock()
        try await withStore(configuration: .testing(clock: clock)) { store in
            var configuration = ResponseCache.configuration
            configuration.clock = clock
            configuration.logger.logLevel = .critical
            configure(&configuration)
            let cache = try ResponseCache(store: store, origin: origin, configuration: configuration)
            let router = Router()
            routes(router, cache)
            var logger = Logger(label: "test")
            logger.logLevel = .critical
            let app = Application(router: router, server: server, logger: logger)
            try await app.test(.ahc(scheme)) { client in
                try await body(ServerSetting(cache: cache, client: client, clock: clock))
            }
            await cache.drain()
        }
    }

    /// Starts a server with one cached route, `/a`.
    static func serving(
        lifetime: Duration? = nil, key: KeyPolicy? = nil, tags: [String] = [],
        handler: @escaping @Sendable (Request, BasicRequestContext) async throws -> Response,
        _ body: @escaping @Sendable (ServerSetting) async throws -> Void
    ) async throws {
        try await run { router, cache in
            router.add(middleware: ResponseCacheMiddleware(cache, lifetime: lifetime, key: key, tags: tags))
            for method in [HTTPRequest.Method.get, .post, .put, .init("QUERY")!] {
                router.on("a", method: method, use: handler)
            }
        } _: {
            try await body($0)
        }
    }

    var port: Int { client.port ?? 0 }

    func send(
        _ method: HTTPRequest.Method = .get, _ path: String = "/a", _ fields: HTTPFields = [:], body: String? = nil
    ) async throws -> TestResponse {
        try await client.execute(
            uri: path, method: method, headers: fields, body: body.map { ByteBuffer(string: $0) })
    }

    func text(
        _ method: HTTPRequest.Method = .get, _ path: String = "/a", _ fields: HTTPFields = [:], body: String? = nil
    ) async throws -> String {
        String(buffer: try await send(method, path, fields, body: body).body)
    }

    func code(
        _ method: HTTPRequest.Method = .get, _ path: String = "/a", _ fields: HTTPFields = [:]
    ) async throws -> Int { try await send(method, path, fields).status.code }
}

/// Counts the calls of a handler.
final class Calls: Sendable {
    private let number = Mutex(0)
    var count: Int { number.withLock { $0 } }
    /// The number of this call: 1 for the first.
    func next() -> Int {
        number.withLock { number in
            number += 1
            return number
        }
    }
}

/// A response with a text.
func response(
    _ text: String, status: HTTPResponse.Status = .ok, cacheControl: String? = nil, _ fields: HTTPFields = [:]
) -> Response {
    var response = Response(status: status, headers: fields, body: .init(byteBuffer: ByteBuffer(string: text)))
    if let cacheControl { response.headers[.cacheControl] = cacheControl }
    return response
}

extension HTTPField.Name {
    static let cacheStatus = HTTPField.Name("Cache-Status")!
}
