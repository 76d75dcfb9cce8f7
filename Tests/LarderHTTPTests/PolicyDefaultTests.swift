import HTTPTestSupport
import HTTPCaching
import HTTPTypes
import Larder
import LarderHTTP
import TestSupport
import Testing

/// Policies as the cache's default, and what a caller gives in place of the origin's word.
struct PolicyDefaultTests {
    private static let aged: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"1\""]

    /// Every policy means the same as the cache's default and with a request.
    @Test(arguments: CachePolicy.named.map(\.policy)) func policyAsDefault(_ policy: CachePolicy) async throws {
        func outcomes(asDefault: Bool) async throws -> [String] {
            var seen: [String] = []
            try await Fixture.run({ if asDefault, !policy.isEmpty { $0.defaultPolicy = policy } }) { fixture in
                let options = asDefault ? FetchOptions() : FetchOptions(policy: policy)
                func note() async {
                    do {
                        let (response, text) = try await fixture.get(Fixture.url, options)
                        seen.append("\(response.source) \(text)")
                    } catch {
                        seen.append("\((error as? FetchError)?.code.description ?? "?")")
                    }
                }
                fixture.answer("one", Self.aged)
                await note()
                _ = try await fixture.get(Fixture.url, FetchOptions(policy: .askIfModifiedWhenStale))
                fixture.answer("two", [.cacheControl: "max-age=60", .eTag: "\"2\""])
                await note()
                fixture.clock.advance(by: .seconds(3_600))
                await note()
                fixture.clock.advance(by: .seconds(3_600))
                fixture.transport.handler = ScriptedTransport.unreachable
                await note()
            }
            return seen
        }
        try await #expect(outcomes(asDefault: true) == outcomes(asDefault: false))
    }

    /// A policy of the user's that never uses what is stored.
    private struct Never: ReusePolicy {
        func reuse(_ stored: StoredResponse, for request: HTTPRequest, now: Instant) -> Reuse { .load }
    }

    @Test func aRegisteredPolicyAsDefault() async throws {
        let registry = PolicyRegistry()
        registry.register(Never(), id: 100)
        try await Fixture.run({
            $0.registry = registry
            $0.defaultPolicyID = 100
        }) { fixture in
            fixture.answer("x")
            for _ in 0..<2 { try await #expect(fixture.get().response.source == .network) }
            // What a fetch asks for itself goes before.
            let asked = FetchOptions(policy: .askIfModifiedWhenStale)
            try await #expect(fixture.get(Fixture.url, asked).response.source == .hit)
            let numbered = FetchOptions(policyID: PolicyRegistry.cacheFirst)
            try await #expect(fixture.get(Fixture.url, numbered).response.source == .hit)
        }
    }

    /// What had to be validated is not used when that fails, with and without a policy of the user's.
    @Test(arguments: [true, false]) func askingThatFailsServesNothing(_ byPolicy: Bool) async throws {
        let registry = PolicyRegistry()
        registry.register(Never(), id: 100)
        try await Fixture.run({ $0.registry = registry }) { fixture in
            fixture.answer("x", Self.aged)
            _ = try await fixture.get()
            let options = byPolicy ? FetchOptions(policyID: 100) : FetchOptions(policy: .askIfModified)
            fixture.transport.handler = ScriptedTransport.unreachable
            #expect(await errorKind { _ = try await fixture.get(Fixture.url, options) } == .origin)
            fixture.answer("down", status: 503, [:])
            let (response, text) = try await fixture.get(Fixture.url, options)
            #expect(response.head.status.code == 503 && text == "down")
            fixture.transport.handler = ScriptedTransport.unreachable
            let falling = FetchOptions(policy: [.askIfModified, .fallbackToCacheIfLoadFails])
            try await #expect(fixture.get(Fixture.url, falling).response.source == .fallback)
            try await #expect(fixture.get().response.source == .hit)
        }
    }

    /// The lifetime that a caller gives counts most where the origin gives nothing at all.
    @Test func aGivenLifetimeNeedsNothingFromTheOrigin() async throws {
        try await Fixture.run({ $0.secondsToCache = 60 }) { fixture in
            fixture.answer("x", [:])
            _ = try await fixture.get()
            try await #expect(fixture.get().response.source == .hit)
            fixture.clock.advance(by: .seconds(61))
            try await #expect(fixture.get().response.source == .network)
            fixture.answer("y", [.cacheControl: "no-store"])
            _ = try await fixture.get("http://example.org/b")
            try await #expect(fixture.get("http://example.org/b").response.source == .network)
        }
    }

    @Test func missingResourcesAreRememberedForAWhile() async throws {
        try await Fixture.run({ $0.caching.lifetimesByStatus = [404: 10] }) { fixture in
            fixture.answer("no", status: 404, [:])
            _ = try await fixture.get()
            let (response, _) = try await fixture.get()
            #expect(response.source == .hit && response.head.status.code == 404)
            fixture.clock.advance(by: .seconds(11))
            try await #expect(fixture.get().response.source == .network)
        }
    }

    /// An answer to other content, or a change, is never answered from the store.
    @Test func keysTellContentApart() async throws {
        var policy = KeyPolicy()
        policy.addsMethod = true
        policy.addsBodyDigest = true
        try await Fixture.run({ $0.keyPolicy = policy }) { fixture in
            fixture.answer("x")
            func source(_ method: HTTPRequest.Method, _ body: RequestBody?) async throws -> FetchResponse.Source {
                let request = try HTTPCache.request(for: Fixture.url, method: method)
                let response = try await fixture.cache.fetch(request, body: body)
                _ = try await response.body.bytes()
                return response.source
            }
            func streamed(_ text: String) -> RequestBody {
                let pieces = Pieces([Array(text.utf8)])
                return RequestBody(length: nil) { try pieces.next() }
            }
            for text in ["a", "b", "a"] { try await #expect(source(.post, streamed(text)) == .network) }
            _ = try await fixture.get()
            try await #expect(fixture.get().response.source == .hit)
            for method in [HTTPRequest.Method.delete, .put, .patch] {
                _ = try await fixture.get()
                for _ in 0..<2 { try await #expect(source(method, RequestBody([1])) == .network) }
                // They change the resource: what was stored for it is gone.
                try await #expect(fixture.get().response.source == .network)
            }
        }
        policy.addsBodyDigest = false
        try await Fixture.run({ $0.keyPolicy = policy }) { fixture in
            fixture.answer("x")
            let post = try HTTPCache.request(for: Fixture.url, method: .post)
            for text in ["a", "b"] {
                let response = try await fixture.cache.fetch(post, body: RequestBody(Array(text.utf8)))
                #expect(response.source == .network)
                _ = try await response.body.bytes()
            }
        }
    }

    /// The version of an application keeps its entries apart.
    @Test func addedTextKeepsKeysApart() async throws {
        try await withStore { store in
            let transport = ScriptedTransport { _ throws(TransportError) in .answer(200, Self.aged, "x") }
            for (version, source) in [("1", FetchResponse.Source.network), ("2", .network), ("1", .hit), ("2", .hit)] {
                var configuration = HTTPCacheConfiguration()
                configuration.keyPolicy.addedText = version
                let cache = HTTPCache(store: store, transport: transport, configuration: configuration)
                let response = try await cache.fetch(Fixture.url)
                _ = try await response.body.bytes()
                #expect(response.source == source, "version \(version)")
                await cache.drain()
            }
        }
    }
}
