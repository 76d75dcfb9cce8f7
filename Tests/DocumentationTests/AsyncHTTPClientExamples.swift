import AsyncHTTPClient
import Larder
import LarderAsyncHTTPClient
import LarderHTTP

// The Swift blocks of docs/asynchttpclient.md and of the articles of LarderAsyncHTTPClient: see Examples.swift.

enum AsyncHTTPClientExamples {
    static func inFiveLines(store: Store) async throws {
        let client = CachingHTTPClient(store: store)  // was: HTTPClient()

        let request = HTTPClientRequest(url: "https://example.org/news")
        let response = try await client.execute(request, timeout: .seconds(30))
        print(response.status, response.headers["Age"], try await response.body.collect(upTo: 1 << 20).readableBytes)

        try await client.shutdown()
    }

    static func transport(store: Store) async throws {
        let client = AsyncHTTPClientTransport.makeClient()
        let cache = HTTPCache(store: store, transport: AsyncHTTPClientTransport(client))
        await cache.drain()
        try await client.shutdown()
    }

    static func options(client: CachingHTTPClient, request: HTTPClientRequest) async throws {
        let fresh = FetchOptions(policy: .askIfModified)
        let checked = try await client.execute(request, timeout: .seconds(30), options: fresh)
        try await client.cache.purge("https://example.org/news")
        _ = checked
    }
}
