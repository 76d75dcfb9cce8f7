import Foundation
import LarderHTTP
import LarderURLSession
import TestOrigin
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Sessions that load through the cache that the process shares. No other test sets it: it is one for all of them.
@Suite(.serialized) struct SharedCacheTests {
    private func prepare(_ bench: Bench) -> URL {
        bench.origin.script("/shared", .ok("hello").header("Cache-Control", "max-age=60"))
        return bench.url("/shared")
    }

    private func expectHello(_ session: URLSession, _ url: URL) async throws {
        let answer = try await session.answer(URLRequest(url: url))
        #expect(answer.text == "hello")
    }

    @Test func itIsTheOneOfTheMoment() async throws {
        try await withBench { bench in
            let url = prepare(bench)
            let configuration = URLSessionConfiguration.ephemeral
            let caching = configuration.useSharedCache()
            let session = URLSession(configuration: configuration)
            #expect(caching.cache == nil)
            for _ in 0..<2 { try await expectHello(session, url) }
            #expect(bench.count("/shared") == 2)
            HTTPCache.shared = bench.cache
            defer { HTTPCache.shared = nil }
            #expect(caching.cache === bench.cache)
            for _ in 0..<3 { try await expectHello(session, url) }
            #expect(bench.count("/shared") == 3)
            HTTPCache.shared = nil
            try await expectHello(session, url)
            #expect(bench.count("/shared") == 4)
        }
    }

    @Test func requestsThatItDoesNotApplyTo() async throws {
        try await withBench { bench in
            let url = prepare(bench)
            let configuration = URLSessionConfiguration.ephemeral
            configuration.useCache(bench.cache, URLSessionCachingOptions(appliesTo: { $0.url != url }))
            let session = URLSession(configuration: configuration)
            for _ in 0..<2 { try await expectHello(session, url) }
            #expect(bench.count("/shared") == 2)
        }
    }
}
