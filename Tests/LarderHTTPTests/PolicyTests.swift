import HTTPTestSupport
import HTTPCaching
import HTTPTypes
import Larder
import LarderHTTP
import TestSupport
import Testing

/// The eight policies, alone and combined, and what else a fetch can ask for.
struct PolicyTests {
    static let aged: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"1\""]

    /// One stored response, an hour old.
    private func withStale(_ policy: CachePolicy, _ body: (Fixture, FetchOptions) async throws -> Void) async throws {
        try await Fixture.run { fixture in
            fixture.answer("old", Self.aged)
            _ = try await fixture.get()
            fixture.clock.advance(by: .seconds(3_600))
            _ = fixture.transport.takeSent()
            fixture.answer("new", Self.aged)
            try await body(fixture, FetchOptions(policy: policy))
        }
    }

    @Test func defaultValidatesWhatIsStale() async throws {
        try await withStale(.useDefault) { fixture, options in
            fixture.transport.handler = { _ throws(TransportError) in .answer(304, Self.aged) }
            let (response, text) = try await fixture.get(Fixture.url, options)
            #expect(response.source == .revalidated && text == "old")
            #expect(response.originStatus == 304 && response.storedStatus == 200 && response.head.status == .ok)
            #expect(fixture.transport.sent[0].head.headerFields[.ifNoneMatch] == "\"1\"")
            // And it is fresh again.
            #expect(try await fixture.get().response.source == .hit)
        }
    }

    @Test func doNotReadLoadsAndStores() async throws {
        try await withStale(.doNotRead) { fixture, options in
            let (_, text) = try await fixture.get(Fixture.url, options)
            #expect(text == "new")
            #expect(fixture.transport.sent[0].head.headerFields[.ifNoneMatch] == nil)
            #expect(try await fixture.get().response.source == .hit)
        }
    }

    @Test func doNotWriteStoresNothing() async throws {
        try await Fixture.run { fixture in
            fixture.answer("x")
            let (response, _) = try await fixture.get(Fixture.url, FetchOptions(policy: .doNotWrite))
            #expect(!response.isStored)
            #expect(try await fixture.get().response.source == .network)
        }
    }

    @Test func askIfModifiedAsksThoughFresh() async throws {
        try await Fixture.run { fixture in
            fixture.answer("x", Self.aged)
            _ = try await fixture.get()
            fixture.transport.handler = { _ throws(TransportError) in .answer(304, Self.aged) }
            let (response, text) = try await fixture.get(Fixture.url, FetchOptions(policy: .askIfModified))
            #expect(response.source == .revalidated && text == "x" && fixture.transport.sent.count == 2)
        }
    }

    @Test(arguments: [CachePolicy.onlyLoadIfNotCached, .doNotLoad]) func expiryIsIgnored(_ policy: CachePolicy)
        async throws
    {
        try await withStale(policy) { fixture, options in
            let (response, text) = try await fixture.get(Fixture.url, options)
            #expect(response.source == .stale && text == "old" && fixture.transport.sent.isEmpty)
            #expect(response.ageSeconds == 3_600 && (response.freshSeconds ?? 0) < 0)
        }
    }

    @Test func doNotLoadWithoutAnythingStoredIsATypedError() async throws {
        try await Fixture.run { fixture in
            fixture.answer("x")
            do {
                _ = try await fixture.get(Fixture.url, FetchOptions(policy: .doNotLoad))
                Issue.record("nothing was stored")
            } catch let error as FetchError {
                #expect(error.code == .notCached && error.url == Fixture.url && error.message.contains(Fixture.url))
            }
            #expect(fixture.transport.sent.isEmpty)
        }
    }

    @Test func onlyLoadIfNotCachedLoadsWhatIsMissing() async throws {
        try await Fixture.run { fixture in
            fixture.answer("x")
            let (_, text) = try await fixture.get(Fixture.url, FetchOptions(policy: .onlyLoadIfNotCached))
            #expect(text == "x")
        }
    }

    @Test func fallbackAfterAFailure() async throws {
        let stubborn: HTTPFields = [.cacheControl: "max-age=60, must-revalidate"]
        try await Fixture.run { fixture in
            fixture.answer("old", stubborn)
            _ = try await fixture.get()
            fixture.clock.advance(by: .seconds(3_600))
            fixture.transport.handler = ScriptedTransport.unreachable
            #expect(await errorKind { _ = try await fixture.get() } == .origin)
            let both: CachePolicy = [.askIfModified, .fallbackToCacheIfLoadFails]
            let (response, text) = try await fixture.get(Fixture.url, FetchOptions(policy: both))
            #expect(response.source == .fallback && text == "old" && response.originStatus == nil)
        }
    }

    @Test func offlineAttemptsNoConnection() async throws {
        try await withStale(.useDefault) { fixture, _ in
            fixture.cache.isOffline = true
            let (_, text) = try await fixture.get()
            #expect(text == "old")
            #expect(await errorKind { _ = try await fixture.get("http://example.org/other") } == .notCached)
            #expect(
                await errorKind {
                    _ = try await fixture.cache.fetch(HTTPCache.request(for: Fixture.url, method: .post))
                } == .notCached)
            fixture.cache.isOffline = false
            #expect(
                await errorKind { _ = try await fixture.get("http://example.org/b", FetchOptions(isOffline: true)) }
                    == .notCached)
            #expect(fixture.transport.sent.isEmpty)
        }
    }

    @Test func aGivenLifetimeOverridesTheServersAndSurvivesValidation() async throws {
        try await Fixture.run { fixture in
            fixture.answer("x", Self.aged)
            _ = try await fixture.get(Fixture.url, FetchOptions(secondsToCache: 1_000))
            fixture.clock.advance(by: .seconds(900))
            #expect(try await fixture.get().response.source == .hit)
            fixture.clock.advance(by: .seconds(200))
            fixture.transport.handler = { _ throws(TransportError) in .answer(304, Self.aged) }
            #expect(try await fixture.get().response.source == .revalidated)
            fixture.clock.advance(by: .seconds(900))
            #expect(try await fixture.get().response.source == .hit)
        }
    }

    @Test func disrespectStoresWhatSaysNoStore() async throws {
        try await Fixture.run { fixture in
            fixture.answer("x", [.cacheControl: "no-store"])
            _ = try await fixture.get()
            #expect(try await fixture.get().response.source == .network)
            _ = try await fixture.get(Fixture.url, FetchOptions(respectsCacheControl: false))
            #expect(try await fixture.get().response.source == .hit)
            fixture.clock.advance(by: .seconds(3_601))
            #expect(try await fixture.get().response.source != .hit)
        }
    }

    @Test func storagePolicyReachesTheStore() async throws {
        try await Fixture.run { fixture in
            fixture.answer("x")
            _ = try await fixture.get(Fixture.url, FetchOptions(storagePolicy: .memoryOnly, tags: ["mine"]))
            let attributes = try #require(try await fixture.store.get(Key(Fixture.url))).attributes
            #expect(attributes.storagePolicy == .memoryOnly && attributes.tags == ["mine"])
            #expect(try await fixture.get().response.source == .hit)
        }
    }

    // MARK: Registry

    private struct Younger: ReusePolicy {
        let seconds: Int64
        func reuse(_ stored: StoredResponse, for request: HTTPRequest, now: Instant) throws -> Reuse {
            stored.policy.ageMilliseconds(at: now) < seconds * 1_000 ? .use : .load
        }
    }

    private struct Failing: ReusePolicy {
        struct Failure: Error {}
        func reuse(_ stored: StoredResponse, for request: HTTPRequest, now: Instant) throws -> Reuse { throw Failure() }
    }

    @Test func twoInstancesOfOnePolicySideBySide() async throws {
        try await withStale(.useDefault) { fixture, _ in
            let registry = fixture.cache.configuration.registry
            #expect(registry.register(Younger(seconds: 7_200), id: 100))
            #expect(registry.register(Younger(seconds: 60), id: 101))
            #expect(!registry.register(Younger(seconds: 60), id: 99))
            let (_, text) = try await fixture.get(Fixture.url, FetchOptions(policyID: 100))
            #expect(text == "old")
            #expect(try await fixture.get(Fixture.url, FetchOptions(policyID: 101)).text == "new")
            #expect(registry.ids == [0, 1, 2, 100, 101])
            #expect(registry.unregister(id: 100) && !registry.unregister(id: 1))
        }
    }

    @Test func builtInNumbers() async throws {
        try await withStale(.useDefault) { fixture, _ in
            let (_, first) = try await fixture.get(Fixture.url, FetchOptions(policyID: PolicyRegistry.cacheFirst))
            #expect(first == "old")
            #expect(try await fixture.get(Fixture.url, FetchOptions(policyID: PolicyRegistry.noCache)).text == "new")
            #expect(try await fixture.get(Fixture.url, FetchOptions(policyID: PolicyRegistry.cacheFirst)).text == "old")
            #expect(try await fixture.get(Fixture.url, FetchOptions(policyID: PolicyRegistry.writeOnly)).text == "new")
            #expect(try await fixture.get(Fixture.url, FetchOptions(policyID: PolicyRegistry.cacheFirst)).text == "new")
        }
    }

    @Test func unknownAndFailingPoliciesAreTypedErrors() async throws {
        try await withStale(.useDefault) { fixture, _ in
            fixture.cache.configuration.registry.register(Failing(), id: 100)
            #expect(
                await errorKind { _ = try await fixture.get(Fixture.url, FetchOptions(policyID: 100)) } == .policyFailed
            )
            #expect(
                await errorKind { _ = try await fixture.get(Fixture.url, FetchOptions(policyID: 55)) } == .unknownPolicy
            )
            #expect(fixture.transport.sent.isEmpty)
        }
    }

    // MARK: Keys

    private func sameKey(_ policy: KeyPolicy, _ first: String, _ second: String, fields: [HTTPFields] = [[:], [:]])
        async throws -> Bool
    {
        var isSame = false
        try await Fixture.run({ $0.keyPolicy = policy }) { fixture in
            fixture.answer("x")
            _ = try await fixture.get(first, fields: fields[0])
            isSame = try await fixture.get(second, fields: fields[1]).response.source == .hit
        }
        return isSame
    }

    @Test func keyPolicies() async throws {
        let base = "http://example.org/a"
        #expect(try await !sameKey(KeyPolicy(), base + "?x=1", base))
        var policy = KeyPolicy()
        policy.ignoresQuery = true
        #expect(try await sameKey(policy, base + "?x=1", base + "?y=2"))
        policy = KeyPolicy()
        policy.ignoredParameters = ["utm", "s"]
        #expect(try await sameKey(policy, base + "?a=1&utm=2&b", base + "?a=1&s=9&b&utm"))
        #expect(try await !sameKey(policy, base + "?a=1&utm=2", base + "?a=2&utm=2"))
        #expect(try await sameKey(policy, base + "?utm=2", base))
        policy = KeyPolicy()
        policy.hostAliases = ["www.example.org": "example.org"]
        #expect(try await sameKey(policy, base, "http://www.example.org/a"))
        #expect(try await !sameKey(policy, base, "http://other.example.org/a"))
        policy = KeyPolicy()
        policy.addedFields = [.acceptLanguage]
        #expect(try await !sameKey(policy, base, base, fields: [[:], [.acceptLanguage: "de"]]))
        #expect(try await sameKey(policy, base, base, fields: [[.acceptLanguage: "de"], [.acceptLanguage: "de"]]))
        policy = KeyPolicy()
        policy.custom = { $0.headerFields[.cookie] ?? "" }
        #expect(try await !sameKey(policy, base, base, fields: [[.cookie: "a"], [.cookie: "b"]]))
    }

    @Test func requestsWithContentUnderKeysOfTheirOwn() async throws {
        var policy = KeyPolicy()
        policy.addsMethod = true
        policy.addsBodyDigest = true
        try await Fixture.run({ $0.keyPolicy = policy }) { fixture in
            fixture.answer("x")
            let post = try HTTPCache.request(for: Fixture.url, method: .post)
            func source(_ text: String) async throws -> FetchResponse.Source {
                let response = try await fixture.cache.fetch(post, body: RequestBody(Array(text.utf8)))
                _ = try await response.body.bytes()
                return response.source
            }
            #expect(try await source("a") == .network)
            #expect(fixture.transport.sent[0].head.method == .post)
            #expect(try await source("a") == .hit)
            #expect(try await source("b") == .network)
            #expect(try await fixture.get().response.source == .network)
            try await #expect(fixture.cache.purge(Fixture.url) == 3)
            #expect(try await source("a") == .network)
        }
    }

    @Test func aFailingKeyPolicyIsATypedError() async throws {
        struct Failure: Error {}
        try await Fixture.run({ $0.keyPolicy.custom = { _ in throw Failure() } }) { fixture in
            #expect(await errorKind { _ = try await fixture.get() } == .policyFailed)
        }
    }

    // MARK: Refreshing

    @Test func theCachedResponseAtOnceAndTheRefreshedLater() async throws {
        try await withStale(.useDefault) { fixture, _ in
            let both = try await fixture.cache.fetchRefreshing(HTTPCache.request(for: Fixture.url))
            let cached = try #require(both.cached)
            #expect(String(decoding: try await cached.body.bytes(), as: UTF8.self) == "old")
            let refreshed = try await both.refreshed.value
            #expect(String(decoding: try await refreshed.body.bytes(), as: UTF8.self) == "new")
            #expect(try await fixture.get().text == "new")
            // Whatever policy is asked for, refreshing asks.
            fixture.answer("newer", Self.aged)
            let request = try HTTPCache.request(for: Fixture.url)
            let again = try await fixture.cache.fetchRefreshing(request, FetchOptions(policy: .onlyLoadIfNotCached))
            #expect(try await again.refreshed.value.source == .network)
            let none = try await fixture.cache.fetchRefreshing(HTTPCache.request(for: "http://example.org/none"))
            #expect(none.cached == nil)
        }
    }

    @Test func unparsableURLs() async throws {
        try await Fixture.run { fixture in
            for url in [
                "", "example.org", "ftp://example.org/", "http://", "http://a b/", "http://u@h/", "http://h:99999/",
                "http://é/",
            ] {
                #expect(await errorKind { _ = try await fixture.get(url) } == .invalidURL, "\(url)")
            }
        }
    }
}
