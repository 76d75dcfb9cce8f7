import AsyncHTTPClient
import Larder
import LarderAsyncHTTPClient
import NIOCore

extension AdaptersBench {
    /// Answers of a server on this machine, through `HTTPClient` and, as hits, through `CachingHTTPClient`.
    static func measureClients(_ store: Store, port: Int, seconds: Int, rounds: Int) async throws {
        let plain = HTTPClient()
        let caching = CachingHTTPClient(store: store)
        for route in ["text", "list", "database", "large"] {
            let request = HTTPClientRequest(url: "http://127.0.0.1:\(port)/plain/\(route)")
            let expected = try await plain.execute(request, timeout: .seconds(30)).body.collect(upTo: 1 << 22)
            let first = try await caching.execute(request, timeout: .seconds(30)).body.collect(upTo: 1 << 22)
            await caching.cache.drain()
            let hit = try await caching.execute(request, timeout: .seconds(30))
            let content = try await hit.body.collect(upTo: 1 << 22)
            guard first.readableBytes == expected.readableBytes, content == first,
                hit.headers.first(name: "Cache-Status")?.contains("hit") == true
            else { fatalError("\(route) differs, or is not a hit") }
            let length = expected.readableBytes
            let rates = try await rates(
                seconds: seconds, rounds: rounds,
                [
                    { _ in
                        let response = try await plain.execute(request, timeout: .seconds(30))
                        let content = try await response.body.collect(upTo: 1 << 22)
                        precondition(content.readableBytes == length)
                    },
                    { _ in
                        let response = try await caching.execute(request, timeout: .seconds(30))
                        let content = try await response.body.collect(upTo: 1 << 22)
                        precondition(content.readableBytes == length)
                    },
                ])
            printRow(route, rates)
        }
        try await caching.shutdown()
        try await plain.shutdown()
    }
}
