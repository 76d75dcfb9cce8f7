import HTTPTestSupport
import HTTPCaching
import HTTPTypes
import Larder
import LarderHTTP
import TestSupport
import Testing

/// Keys that are made of more than the URI: invalidation, purging and validation reach them like any other.
struct KeyAdditionTests {
    private func request(_ method: String, _ fixture: Fixture, url: String = Fixture.url) throws -> HTTPRequest {
        try HTTPCache.request(for: url, method: HTTPRequest.Method(method)!)
    }

    /// What was asked for before an invalidation is not stored after it (RFC 9111 section 4.4).
    @Test(arguments: ["purge", "POST", "prefix"])
    func aQueryAskedForBeforeAnInvalidationIsNotStored(_ how: String) async throws {
        try await Fixture.run { fixture in
            let (asked, gate) = (Latch(), Latch())
            fixture.transport.handler = { request throws(TransportError) in
                if request.head.method == .post { return .answer(200, [:], "done") }
                asked.open()
                await gate.wait()
                return .answer(200, [.cacheControl: "max-age=60"], "old")
            }
            let cache = fixture.cache
            let query = try request("QUERY", fixture)
            async let first = cache.fetch(query, body: RequestBody([1])).body.bytes()
            await asked.wait()
            switch how {
            case "purge": _ = try await cache.purge(Fixture.url)
            case "prefix": _ = try await cache.purge(prefix: "http://example.org/")
            default: _ = try await cache.fetch(request("POST", fixture), body: RequestBody([1])).body.bytes()
            }
            gate.open()
            _ = try await first
            await cache.drain()
            fixture.answer("new")
            let second = try await cache.fetch(query, body: RequestBody([1]))
            #expect(second.source == .network)
            try await #expect(second.body.bytes() == Array("new".utf8))
        }
    }

    /// What a POST invalidates itself does not keep its answer out; what others have invalidated since does.
    @Test(arguments: [false, true]) func aPurgeDuringAPOSTCounts(_ isPurged: Bool) async throws {
        try await Fixture.run { fixture in
            let (asked, gate) = (Latch(), Latch())
            fixture.transport.handler = { _ throws(TransportError) in
                asked.open()
                await gate.wait()
                return .answer(200, [.cacheControl: "max-age=60", .contentLocation: Fixture.url], "old")
            }
            let post = try request("POST", fixture)
            async let answer = fixture.cache.fetch(post, body: RequestBody([1])).body.bytes()
            await asked.wait()
            if isPurged { _ = try await fixture.cache.purge(Fixture.url) }
            gate.open()
            _ = try await answer
            await fixture.cache.drain()
            fixture.answer("new")
            try await #expect(fixture.get().text == (isPurged ? "new" : "old"))
        }
    }

    @Test func purgingByPrefixReachesQueries() async throws {
        try await Fixture.run { fixture in
            fixture.answer("found")
            let query = try request("QUERY", fixture)
            _ = try await fixture.cache.fetch(query, body: RequestBody([1])).body.bytes()
            try await #expect(fixture.cache.fetch(query, body: RequestBody([1])).source == .hit)
            try await #expect(fixture.cache.purge(prefix: "http://example.org") == 1)
            try await #expect(fixture.cache.fetch(query, body: RequestBody([1])).source == .network)
        }
    }

    /// What a policy of one request adds to the key does not hide the response from a purge or an invalidation of the
    /// URL. What several queries share is not concerned.
    @Test(arguments: ["purge", "POST"]) func thePolicyOfOneRequestIsReached(_ how: String) async throws {
        try await Fixture.run { fixture in
            let get = try request("GET", fixture)
            var options = FetchOptions(keyPolicy: KeyPolicy())
            options.keyPolicy?.addedFields = [.acceptLanguage]
            fixture.answer("old")
            for source in [FetchResponse.Source.network, .hit] {
                let response = try await fixture.cache.fetch(get, options)
                #expect(response.source == source)
                _ = try await response.body.bytes()
                await fixture.cache.drain()
            }
            if how == "purge" {
                try await #expect(fixture.cache.purge(Fixture.url) == 1)
            } else {
                _ = try await fixture.cache.fetch(request("POST", fixture), body: RequestBody([1])).body.bytes()
            }
            try await #expect(fixture.cache.fetch(get, options).source == .network)
        }
    }

    /// A validation in the background is the request again: with its method and its content.
    @Test func aRefreshInTheBackgroundKeepsMethodAndContent() async throws {
        try await Fixture.run({
            $0.keyPolicy.addsMethod = true
            $0.keyPolicy.addsBodyDigest = true
        }) { fixture in
            fixture.transport.handler = { request throws(TransportError) in
                var text = ""
                if let pull = request.body?.makePull(), let piece = try? await pull() {
                    text = String(decoding: piece, as: UTF8.self)
                }
                return .answer(
                    200, [.cacheControl: "max-age=1, stale-while-revalidate=60"],
                    "\(request.head.method.rawValue) \(text)")
            }
            let post = try request("POST", fixture)
            for source in [FetchResponse.Source.network, .stale, .hit] {
                let response = try await fixture.cache.fetch(post, body: RequestBody(Array("a".utf8)))
                #expect(response.source == source)
                try await #expect(String(decoding: response.body.bytes(), as: UTF8.self) == "POST a")
                await fixture.cache.drain()
                if source == .network { fixture.clock.advance(by: .seconds(2)) }
            }
        }
    }
}
