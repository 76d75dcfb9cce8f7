import HTTPTestSupport
import HTTPCaching
import HTTPTypes
import Larder
import LarderHTTP
import LarderNIOTransport
import Locks
import TestOrigin
import TestSupport
import Testing

/// What the library offers beside the gateway, with a real transport and a real origin: rows H2, H3, H5 to H9, H13 and
/// H17 of the features. The rules in detail have their tests without sockets.
struct LibraryTests {
    private struct Place {
        let cache: HTTPCache
        let origin: TestOrigin
        let clock: TestClock

        func get(
            _ path: String, _ options: FetchOptions = FetchOptions(), _ fields: HTTPFields = [:]
        ) async throws -> (source: FetchResponse.Source, status: Int, text: String) {
            var request = try HTTPCache.request(for: origin.url + path)
            request.headerFields = fields
            let response = try await cache.fetch(request, options)
            let text = String(decoding: try await response.body.bytes(), as: UTF8.self)
            return (response.source, response.head.status.code, text)
        }
    }

    private func withPlace(
        _ change: (inout HTTPCacheConfiguration) -> Void = { _ in }, _ body: (Place) async throws -> Void
    ) async throws {
        let clock = TestClock()
        let origin = try await TestOrigin.start { .counter($0).header("Cache-Control", "max-age=60") }
        let transport = NIOTransport()
        try await withStore(configuration: .testing(clock: clock)) { store in
            var configuration = HTTPCacheConfiguration()
            configuration.clock = clock
            configuration.retries = .none
            configuration.originFailureMemory = nil
            configuration.logger.logLevel = .critical
            change(&configuration)
            let cache = HTTPCache(store: store, transport: transport, configuration: configuration)
            try await body(Place(cache: cache, origin: origin, clock: clock))
            await cache.drain()
        }
        await transport.close()
        await origin.stop()
    }

    /// H2: where each policy takes an answer from: nothing stored, fresh, stale, and stale with an origin that is gone.
    @Test(
        arguments: [
            (.useDefault, ["network", "hit", "revalidated", "fallback"]),
            (.doNotRead, ["network", "network", "network", "origin"]),
            (.doNotWrite, ["network", "network", "network", "origin"]),
            (.askIfModifiedWhenStale, ["network", "hit", "revalidated", "fallback"]),
            (.askIfModified, ["network", "revalidated", "revalidated", "origin"]),
            (.onlyLoadIfNotCached, ["network", "hit", "stale", "stale"]),
            (.doNotLoad, ["notCached", "notCached", "notCached", "notCached"]),
            ([.askIfModified, .fallbackToCacheIfLoadFails], ["network", "revalidated", "revalidated", "fallback"]),
        ] as [(CachePolicy, [String])])
    func policies(_ policy: CachePolicy, _ expected: [String]) async throws {
        try await withPlace { place in
            let page = OriginResource(
                "page", etag: "\"1\"", fields: [OriginAnswer.Field("Cache-Control", "max-age=60")])
            place.origin.script("/page") { page.answer($0) }
            var seen: [String] = []
            func note() async {
                do {
                    seen.append(try await place.get("/page", FetchOptions(policy: policy)).source.rawValue)
                } catch {
                    seen.append((error as? FetchError)?.code.description ?? "\(error)")
                }
            }
            await note()
            await note()
            place.clock.advance(by: .seconds(100))
            await note()
            place.clock.advance(by: .seconds(100))
            place.origin.script("/page", .closed)
            await note()
            #expect(seen == expected)
        }
    }

    /// H3, H5: lifetimes of the caller's, and statuses that are remembered.
    @Test func lifetimesAndStatuses() async throws {
        try await withPlace({ $0.caching.lifetimesByStatus = [404: 10] }) { place in
            place.origin.script("/bare", .ok("bare"))
            place.origin.script("/no-store", OriginAnswer.ok("x").header("Cache-Control", "no-store"))
            place.origin.script("/moved", OriginAnswer.redirect(to: "/page", status: 308))
            place.origin.script("/found", OriginAnswer.redirect(to: "/page").header("Cache-Control", "max-age=60"))
            place.origin.script("/missing", .notFound)
            let lasting = FetchOptions(secondsToCache: 60)
            let regardless = FetchOptions(respectsCacheControl: false)
            for (path, options, source) in [
                ("/bare", lasting, FetchResponse.Source.hit), ("/no-store", lasting, .network),
                ("/no-store", regardless, .hit), ("/found", FetchOptions(), .hit), ("/missing", FetchOptions(), .hit),
                ("/moved", lasting, .hit),
            ] {
                _ = try await place.get(path, options)
                try await #expect(place.get(path, options).source == source, "\(path)")
            }
            place.clock.advance(by: .seconds(11))
            try await #expect(place.get("/missing").source == .network)
        }
    }

    /// H6: offline no connection is attempted.
    @Test func offline() async throws {
        try await withPlace { place in
            _ = try await place.get("/a")
            place.cache.isOffline = true
            try await #expect(place.get("/a").source == .hit)
            await #expect(throws: FetchError.self) { _ = try await place.get("/b") }
            #expect(place.origin.requests.count == 1)
        }
    }

    /// H7: what is stored at once, and what the origin says later.
    @Test func refreshing() async throws {
        try await withPlace { place in
            _ = try await place.get("/a")
            let both = try await place.cache.fetchRefreshing(HTTPCache.request(for: place.origin.url + "/a"))
            let cached = String(decoding: try await #require(both.cached).body.bytes(), as: UTF8.self)
            let refreshed = String(decoding: try await both.refreshed.value.body.bytes(), as: UTF8.self)
            #expect(cached == "1" && refreshed == "2")
        }
    }

    /// H8: what makes two requests the same.
    @Test func keys() async throws {
        var policy = KeyPolicy()
        policy.ignoredParameters = ["utm"]
        policy.addedFields = [.acceptLanguage]
        policy.addedText = "2.0"
        try await withPlace({ $0.keyPolicy = policy }) { place in
            _ = try await place.get("/a?x=1&utm=a")
            try await #expect(place.get("/a?x=1&utm=b").source == .hit)
            try await #expect(place.get("/a?x=2").source == .network)
            try await #expect(place.get("/a?x=1", FetchOptions(), [.acceptLanguage: "de"]).source == .network)
        }
    }

    /// A response may be used while it is younger than this many seconds, no matter what it says itself.
    private struct Younger: ReusePolicy {
        let seconds: Int64
        func reuse(_ stored: StoredResponse, for request: HTTPRequest, now: Instant) -> Reuse {
            stored.policy.ageMilliseconds(at: now) < seconds * 1_000 ? .use : .load
        }
    }

    /// H9: two policies of one type side by side, and one of them as the cache's default.
    @Test func registeredPolicies() async throws {
        let registry = PolicyRegistry()
        registry.register(Younger(seconds: 10), id: 100)
        registry.register(Younger(seconds: 1_000), id: 101)
        try await withPlace({
            $0.registry = registry
            $0.defaultPolicyID = 100
        }) { place in
            _ = try await place.get("/a")
            place.clock.advance(by: .seconds(100))
            try await #expect(place.get("/a", FetchOptions(policyID: 101)).source == .stale)
            try await #expect(place.get("/a").source == .network)
        }
    }

    /// H13, H17: 64 tasks at once, cancelling, and progress.
    @Test func callsOfEveryKind() async throws {
        try await withPlace { place in
            let gate = Gate()
            place.origin.script("/slow", .ok("slow").holding(at: gate))
            let slow = Task { try await place.get("/slow") }
            await gate.arrival()
            #expect(
                place.cache.cancel(url: place.origin.url.uppercased().replacing("HTTP:", with: "http:") + "/slow#x")
                    == 1)
            await #expect(throws: FetchError.self) { _ = try await slow.value }
            gate.open()
            let text = try await withThrowingTaskGroup(of: String.self) { group in
                for number in 0..<64 {
                    group.addTask { try await place.get("/page\(number % 4)").text }
                }
                return try await group.reduce(into: Set<String>()) { $0.insert($1) }
            }
            #expect(text == ["1"])
            let done = Total()
            place.origin.script("/big", .ok(GeneratedBytes(count: 300_000)))
            let options = FetchOptions(onProgress: { progress in done.set(progress.bytes, of: progress.total) })
            _ = try await place.get("/big", options)
            #expect(done.bytes == 300_000 && done.total == 300_000)
        }
    }

    private final class Total: Sendable {
        private let state = Mutex<(bytes: Int64, total: Int64?)>((0, nil))
        func set(_ bytes: Int64, of total: Int64?) { state.withLock { $0 = (bytes, total) } }
        var bytes: Int64 { state.withLock { $0.bytes } }
        var total: Int64? { state.withLock { $0.total } }
    }
}
