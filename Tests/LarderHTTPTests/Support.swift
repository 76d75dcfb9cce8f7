import HTTPTestSupport
import HTTPTypes
import Larder
import LarderHTTP
import TestSupport
import Testing

/// A cache on a fresh store, with a clock and a transport that the test holds.
struct Fixture: Sendable {
    let cache: HTTPCache
    let transport: ScriptedTransport
    let clock: TestClock
    let store: Store

    static let url = "http://example.org/a"

    /// Runs `body`; the store is checked and removed afterwards.
    static func run(
        _ change: (inout HTTPCacheConfiguration) -> Void = { _ in },
        store storeChange: (inout Configuration) -> Void = { _ in },
        _ body: (Fixture) async throws -> Void
    ) async throws {
        let clock = TestClock()
        try await withStore(configuration: .testing(clock: clock, storeChange)) { store in
            let transport = ScriptedTransport()
            var configuration = HTTPCacheConfiguration()
            configuration.clock = clock
            configuration.retries = .none
            // With a sanitizer, waiting takes longer than the limit for it.
            configuration.timeouts.queue = .seconds(120)
            configuration.logger.logLevel = .critical
            change(&configuration)
            let cache = HTTPCache(store: store, transport: transport, configuration: configuration)
            try await body(Fixture(cache: cache, transport: transport, clock: clock, store: store))
            await cache.drain()
        }
    }

    /// Answers every request with the same response.
    func answer(_ body: String, status: Int = 200, _ fields: HTTPFields = [.cacheControl: "max-age=60"]) {
        transport.handler = { _ throws(TransportError) in .answer(status, fields, body) }
    }

    /// Fetches with GET and reads the whole body.
    func get(
        _ url: String = Fixture.url, _ options: FetchOptions = FetchOptions(), fields: HTTPFields = [:]
    ) async throws -> (response: FetchResponse, text: String) {
        var request = try HTTPCache.request(for: url)
        request.headerFields = fields
        let response = try await cache.fetch(request, body: nil, options)
        return (response, String(decoding: try await response.body.bytes(), as: UTF8.self))
    }
}

/// The kind of the error that a call throws; nil if it throws none.
func errorKind(_ body: () async throws -> Void) async -> FetchError.Code? {
    do {
        try await body()
        return nil
    } catch let error as FetchError {
        return error.code
    } catch {
        return nil
    }
}
