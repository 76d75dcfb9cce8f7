import Foundation
import Larder
import LarderHTTP
import LarderURLSession
import TestOrigin
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An origin, and sessions that load through a cache.
struct Bench {
    let origin: TestOrigin
    let store: Store
    let cache: HTTPCache
    let transport: URLSessionTransport
    let configuration: URLSessionConfiguration
    let caching: URLSessionCaching

    /// A session with the cache.
    func session(_ delegate: (any URLSessionDelegate)? = nil) -> URLSession {
        URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    }

    func url(_ path: String) -> URL { URL(string: origin.url + path)! }
    func request(_ path: String, _ change: (inout URLRequest) -> Void = { _ in }) -> URLRequest {
        var request = URLRequest(url: url(path))
        change(&request)
        return request
    }

    /// The answer of a session with the cache.
    func load(_ request: URLRequest) async throws -> Answer { try await session().answer(request) }
    func load(_ path: String) async throws -> Answer { try await load(request(path)) }

    /// The answer of a session without a cache.
    func loadPlain(_ request: URLRequest) async throws -> Answer {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        return try await URLSession(configuration: configuration).answer(request)
    }

    func count(_ path: String) -> Int { origin.requests(for: path).count }
}

/// What a task got.
struct Answer: Sendable, Equatable {
    var status: Int
    var fields: [String: String]
    var data: Data
    var url: URL?

    var text: String { String(decoding: data, as: UTF8.self) }

    init(_ data: Data, _ response: URLResponse) {
        let http = response as! HTTPURLResponse
        status = http.statusCode
        fields = http.allHeaderFields.reduce(into: [:]) { $0["\($1.key)"] = "\($1.value)" }
        self.data = data
        url = response.url
    }

    /// Without the fields of one connection, and a date that another answer need not share.
    var endToEnd: Answer {
        var result = self
        for name in ["Connection", "Keep-Alive", "Transfer-Encoding"] { result.fields[name] = nil }
        return result
    }
}

extension URLSession {
    /// Loads with a completion handler.
    func answer(_ request: URLRequest) async throws -> Answer {
        try await withCheckedThrowingContinuation { continuation in
            dataTask(with: request) { data, response, error in
                if let response, let data {
                    continuation.resume(returning: Answer(data, response))
                } else {
                    continuation.resume(throwing: error ?? URLError(.unknown))
                }
            }.resume()
        }
    }
}

/// Runs a test with an origin and a session configuration that has a cache.
///
/// - Parameter closesStore: whether the test closes the store.
func withBench(
    _ options: URLSessionCachingOptions = URLSessionCachingOptions(),
    cache change: (inout HTTPCacheConfiguration) -> Void = { _ in },
    session: (URLSessionConfiguration) -> Void = { _ in }, closesStore: Bool = false,
    _ body: (Bench) async throws -> Void
) async throws {
    func run(_ store: Store) async throws {
        let origin = try await TestOrigin.start()
        let configuration = URLSessionConfiguration.ephemeral
        session(configuration)
        let transport = URLSessionTransport(configuration)
        var cacheConfiguration = HTTPCacheConfiguration()
        cacheConfiguration.logger.logLevel = .critical
        change(&cacheConfiguration)
        let cache = HTTPCache(store: store, transport: transport, configuration: cacheConfiguration)
        let caching = configuration.useCache(cache, options)
        let bench = Bench(
            origin: origin, store: store, cache: cache, transport: transport, configuration: configuration,
            caching: caching)
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body(bench)) } catch { outcome = .failure(error) }
        cache.cancelAll()
        await cache.drain()
        transport.close()
        configuration.removeCache()
        await origin.stop()
        try outcome.get()
    }
    guard closesStore else { return try await withStore { try await run($0) } }
    try await withDirectory { path in
        try await run(try Store(at: path, .testing()))
        // What the test left is checked as in every other test.
        try finish(try Store(at: path, .testing()))
    }
}

/// The code of the `URLError` that a load throws; nil for none.
func errorCode(_ body: () async throws -> Answer) async -> URLError.Code? {
    do {
        _ = try await body()
        return nil
    } catch {
        return (error as? URLError)?.code ?? .unknown
    }
}
