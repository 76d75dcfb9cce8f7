import Foundation
import LarderHTTP
import LarderURLSession
import TestOrigin
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What each cache policy of `URLRequest` takes from the store, and what it asks of the origin.
struct PolicyTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var policy: URLRequest.CachePolicy
        /// Requests that arrive at the origin for a fresh, a stale and a missing response.
        var fresh: Int
        var stale: Int
        var missing: Int
        /// `If-None-Match` of the request for the stale response.
        var validates = false
        var cacheControl: String?
        var testDescription: String { "policy \(policy.rawValue)" }
    }

    static let cases = [
        Case(policy: .useProtocolCachePolicy, fresh: 0, stale: 1, missing: 1, validates: true),
        Case(policy: .reloadIgnoringLocalCacheData, fresh: 1, stale: 1, missing: 1),
        Case(
            policy: .reloadIgnoringLocalAndRemoteCacheData, fresh: 1, stale: 1, missing: 1, cacheControl: "no-cache"),
        Case(policy: .returnCacheDataElseLoad, fresh: 0, stale: 0, missing: 1),
        Case(policy: .returnCacheDataDontLoad, fresh: 0, stale: 0, missing: 0),
        Case(policy: .reloadRevalidatingCacheData, fresh: 1, stale: 1, missing: 1, validates: true),
    ]

    private func script(_ bench: Bench) {
        for (path, control) in [("/fresh", "max-age=60"), ("/stale", "max-age=0"), ("/missing", "max-age=60")] {
            let page = OriginResource("body", etag: "\"1\"", fields: [.init("Cache-Control", control)])
            bench.origin.script(path) { page.answer($0) }
        }
    }

    private func check(_ test: Case, _ bench: Bench, _ request: (String) -> URLRequest) async throws {
        for (path, expected) in [("/fresh", test.fresh), ("/stale", test.stale)] {
            let answer1 = try await bench.load(request(path))
            #expect(answer1.text == "body")
            #expect(bench.count(path) == 1 + expected, "\(path)")
        }
        if test.missing == 0 {
            #expect(await errorCode { try await bench.load(request("/missing")) } == .resourceUnavailable)
        } else {
            let answer2 = try await bench.load(request("/missing"))
            #expect(answer2.text == "body")
        }
        #expect(bench.count("/missing") == test.missing)
        if test.stale == 1 {
            let last = try #require(bench.origin.requests(for: "/stale").last)
            #expect(last["If-None-Match"] == (test.validates ? "\"1\"" : nil))
            #expect(last["Cache-Control"] == test.cacheControl && last["Pragma"] == test.cacheControl)
        }
    }

    @Test(arguments: cases) func ofARequest(test: Case) async throws {
        try await withBench { bench in
            script(bench)
            for path in ["/fresh", "/stale"] { _ = try await bench.load(path) }
            try await check(test, bench) { path in bench.request(path) { $0.cachePolicy = test.policy } }
        }
    }

    @Test(arguments: cases) func ofAConfiguration(test: Case) async throws {
        try await withBench(session: { $0.requestCachePolicy = test.policy }) { bench in
            script(bench)
            for path in ["/fresh", "/stale"] {
                _ = try await bench.cache.fetch(bench.origin.url + path).body.bytes()
            }
            try await check(test, bench) { bench.request($0) }
        }
    }

    @Test func aReloadIsStored() async throws {
        try await withBench { bench in
            bench.origin.script("/a") { .counter($0).header("Cache-Control", "max-age=60") }
            let answer3 = try await bench.load("/a")
            #expect(answer3.text == "1")
            let reload = bench.request("/a") { $0.cachePolicy = .reloadIgnoringLocalCacheData }
            let answer4 = try await bench.load(reload)
            #expect(answer4.text == "2")
            let answer5 = try await bench.load("/a")
            #expect(answer5.text == "2")
        }
    }

    @Test func whatMustNotBeStoredIsNotStoredByAnotherPolicy() async throws {
        try await withBench(URLSessionCachingOptions(fetch: FetchOptions(policy: .doNotWrite))) { bench in
            bench.origin.script("/a") { .counter($0).header("Cache-Control", "max-age=60") }
            let reload = bench.request("/a") { $0.cachePolicy = .reloadIgnoringLocalCacheData }
            let first = try await bench.load(reload)
            let second = try await bench.load("/a")
            #expect(first.text == "1" && second.text == "2")
        }
    }

    @Test func optionsOfTheCacheApply() async throws {
        let options = URLSessionCachingOptions(fetch: FetchOptions(secondsToCache: 60, tags: ["app"]))
        try await withBench(options) { bench in
            bench.origin.script("/a") { .counter($0).header("Cache-Control", "max-age=0") }
            let answer6 = try await bench.load("/a")
            #expect(answer6.text == "1")
            let answer7 = try await bench.load("/a")
            #expect(answer7.text == "1")
            #expect(try await bench.cache.purge(tag: "app") == 1)
            let answer8 = try await bench.load("/a")
            #expect(answer8.text == "2")
        }
    }
}
