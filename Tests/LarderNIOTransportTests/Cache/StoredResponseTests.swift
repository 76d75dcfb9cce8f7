import Foundation
import HTTPCaching
import HTTPTypes
import Larder
import LarderHTTP
import LarderNIOTransport
import SystemPackage
import Locks
import TestOrigin
import TestSupport
import Testing

/// What programs do with stored responses other than fetching them: what HTCache, ASIDownloadCache and AFCache
/// promised. Over sockets, with an origin that counts.
struct StoredResponseTests {
    private struct Place: Sendable {
        let cache: HTTPCache
        let store: Store
        let origin: TestOrigin
        let clock: TestClock

        func get(_ path: String, _ fields: HTTPFields = [:]) async throws -> FetchResponse {
            var request = try request(path)
            request.headerFields = fields
            let response = try await cache.fetch(request)
            _ = try await response.body.bytes()
            return response
        }

        func request(_ path: String) throws -> HTTPRequest { try HTTPCache.request(for: origin.url + path) }
    }

    private func run(
        _ change: (inout HTTPCacheConfiguration) -> Void = { _ in },
        store storeChange: (inout Configuration) -> Void = { _ in }, _ body: (Place) async throws -> Void
    ) async throws {
        let origin = try await TestOrigin.start()
        let transport = NIOTransport()
        let clock = TestClock()
        try await withStore(configuration: .testing(clock: clock, storeChange)) { store in
            var configuration = HTTPCacheConfiguration()
            configuration.clock = clock
            configuration.logger.logLevel = .critical
            change(&configuration)
            let cache = HTTPCache(store: store, transport: transport, configuration: configuration)
            try await body(Place(cache: cache, store: store, origin: origin, clock: clock))
            await cache.drain()
        }
        await transport.close()
        await origin.stop()
    }

    @Test func aResponseThatTheProgramHolds() async throws {
        try await run { place in
            let request = try place.request("/held")
            let response = HTTPResponse(
                status: .ok, headerFields: [.cacheControl: "max-age=60", .eTag: "\"1\"", .contentType: "text/plain"])
            let body = [UInt8](repeating: 7, count: 300_000)
            #expect(try await place.cache.store(response, body: body, for: request, FetchOptions(tags: ["t"])))
            let answer = try await place.cache.fetch(request)
            #expect(answer.source == .hit && answer.head.headerFields[.eTag] == "\"1\"")
            #expect(try await answer.body.bytes() == body)
            #expect(place.origin.requests.isEmpty)
            #expect(try await place.cache.stored(request)?.totalBytes == 300_000)
            #expect(try await place.store.listed(.tag("t")).count == 1)
            // The rules hold.
            let secret = HTTPResponse(status: .ok, headerFields: [.cacheControl: "no-store"])
            #expect(try await !place.cache.store(secret, body: [1], for: place.request("/secret")))
            #expect(try await place.cache.stored(place.request("/secret")) == nil)
        }
    }

    @Test func aResponseThatTheStoreDoesNotTake() async throws {
        try await run(store: { $0.budget = Budget(bytes: .mebibytes(4)) }) { place in
            let response = HTTPResponse(status: .ok, headerFields: [.cacheControl: "max-age=60"])
            let body = [UInt8](repeating: 7, count: 3 << 20)
            let request = try place.request("/large")
            let isStored = try await place.cache.store(response, body: body, for: request)
            let found = try await place.cache.stored(request)
            #expect(!isStored && found == nil)
        }
    }

    /// The two variants of a URL, each stored for the requests that it answers.
    @Test func variantsThatTheProgramHolds() async throws {
        try await run { place in
            for language in ["de", "en"] {
                var request = try place.request("/v")
                request.headerFields[.acceptLanguage] = language
                let response = HTTPResponse(
                    status: .ok, headerFields: [.cacheControl: "max-age=60", .vary: "Accept-Language"])
                #expect(try await place.cache.store(response, body: Array(language.utf8), for: request))
            }
            for language in ["en", "de"] {
                var request = try place.request("/v")
                request.headerFields[.acceptLanguage] = language
                let stored = try #require(try await place.cache.stored(request))
                #expect(stored.variant == ["accept-language: \(language)"])
                #expect(try await place.store.get(stored.key)?.body.bytes() == Array(language.utf8))
                #expect(try place.cache.key(of: request) == stored.primaryKey && stored.key != stored.primaryKey)
            }
            var other = try place.request("/v")
            other.headerFields[.acceptLanguage] = "fr"
            #expect(try await place.cache.stored(other) == nil)
        }
    }

    @Test func askingIsNeitherAHitNorAnAccess() async throws {
        try await run { place in
            place.origin.script("/a", .ok("hello").header("Cache-Control", "max-age=60"))
            let request = try place.request("/a")
            #expect(try await place.cache.stored(request) == nil)
            _ = try await place.get("/a")
            let before = try #require(
                try await place.store.details(of: place.cache.key(of: request)!))
            let counters = try await place.store.perform { try $0.statistics().counters }
            place.clock.advance(by: .seconds(30))
            let fresh = try #require(try await place.cache.stored(request))
            #expect(fresh.isFresh && fresh.isComplete && fresh.ageSeconds == 30 && fresh.freshSeconds == 30)
            place.clock.advance(by: .seconds(60))
            let stale = try #require(try await place.cache.stored(request))
            #expect(!stale.isFresh && stale.freshSeconds == -30)
            let body = try #require(try place.cache.storedBody(request))
            #expect(try await body.bytes() == Array("hello".utf8))
            let after = try #require(try await place.store.details(of: stale.key))
            #expect(after.hitCount == before.hitCount && after.lastAccess == before.lastAccess)
            let now = try await place.store.perform { try $0.statistics().counters }
            #expect(now.hits == counters.hits && now.misses == counters.misses)
            #expect(place.origin.requests.count == 1)
        }
    }

    /// To pin, lease, tag, export and remove by request.
    @Test func theKeyOfARequest() async throws {
        try await run({ $0.keyPolicy.ignoredParameters = ["utm"] }) { place in
            place.origin.script("/k", .ok(String(repeating: "x", count: 200_000)).header("Cache-Control", "max-age=60"))
            _ = try await place.get("/k?utm=1")
            let request = try place.request("/k?utm=2")
            let key = try #require(try place.cache.key(of: request))
            #expect(try await place.store.pin(key))
            #expect(try await place.cache.stored(request)?.key == key)
            try await withDirectory { directory in
                let file = directory.appending("exported")
                let isExported = try await place.store.perform { try $0.export(key, to: file) }
                let length = try TestFiles.read(file).count
                #expect(isExported && length == 200_000)
            }
            #expect(try await place.store.remove(key))
            #expect(try await place.cache.stored(request) == nil)
            #expect(
                try place.cache.key(of: HTTPRequest(method: .connect, scheme: "http", authority: "h:1", path: nil))
                    == nil)
        }
    }

    @Test func howLongItIsFresh() async throws {
        try await run { place in
            place.origin.script("/f", .ok("x").header("Cache-Control", "max-age=10").header("ETag", "\"1\""))
            let request = try place.request("/f")
            #expect(try await !place.cache.setFreshness(.seconds(60), of: request))
            _ = try await place.get("/f")
            place.clock.advance(by: .seconds(20))
            #expect(try await place.cache.setFreshness(.seconds(600), of: request))
            place.clock.advance(by: .seconds(590))
            let hit = try await place.get("/f")
            #expect(hit.source == .hit && hit.ageSeconds == 610 && hit.freshSeconds == 10)
            #expect(hit.head.headerFields[.cacheControl] == "max-age=10")
            #expect(try await place.cache.setFreshness(.zero, of: request))
            #expect(try await place.cache.stored(request)?.isFresh == false)
            _ = try await place.get("/f")
            #expect(place.origin.requests.count == 2)
        }
    }

    /// A time that was given ends with the next validation, and does not permit what the response forbids.
    @Test func howLongItIsFreshAfterAValidation() async throws {
        try await run { place in
            let value = "max-age=10, must-revalidate"
            place.origin.script("/v") {
                OriginResource("x", etag: "\"1\"", fields: [.init("Cache-Control", value)]).answer($0)
            }
            let request = try place.request("/v")
            _ = try await place.get("/v")
            place.clock.advance(by: .seconds(864_000))
            #expect(try await place.cache.setFreshness(.milliseconds(3_600_500), of: request))
            #expect(try await place.cache.stored(request)?.freshSeconds == 3600)
            place.clock.advance(by: .seconds(4_000))
            #expect(try await place.get("/v").source == .revalidated)
            #expect(try await place.cache.stored(request)?.freshSeconds == 10)
            #expect(try await place.cache.setFreshness(.zero, of: request))
            #expect(try await place.get("/v").source == .revalidated)
            #expect(try await place.get("/v").source == .hit)
            // must-revalidate holds, whatever was given.
            #expect(try await place.cache.setFreshness(.seconds(1), of: request))
            place.clock.advance(by: .seconds(60))
            place.cache.isOffline = true
            await #expect(throws: FetchError.self) { try await place.get("/v") }
        }
    }

    @Test func settingsOfALivingCache() async throws {
        try await run { place in
            place.origin.script("/s", .ok("x").header("Cache-Control", "no-store"))
            place.origin.script("/m", .ok("x").header("Cache-Control", "max-age=60"))
            _ = try await place.get("/s")
            #expect(try await place.cache.stored(place.request("/s")) == nil)
            place.cache.respectsCacheControl = false
            place.cache.defaultLifetimeSeconds = 30
            _ = try await place.get("/s")
            #expect(try await place.cache.stored(place.request("/s"))?.freshSeconds == 30)
            _ = try await place.get("/m")
            place.cache.defaultPolicy = .askIfModified
            #expect(try await place.get("/m").source != .hit)
            place.cache.defaultPolicy = .askIfModifiedWhenStale
            #expect(try await place.get("/m").source == .hit)
            place.cache.defaultPolicyID = PolicyRegistry.noCache
            #expect(try await place.get("/m").source == .network)
            #expect(place.cache.defaultPolicyID == PolicyRegistry.noCache && !place.cache.respectsCacheControl)
        }
    }

    private struct Always: ReusePolicy {
        func reuse(_ stored: StoredResponse, for request: HTTPRequest, now: Instant) -> Reuse { .use }
    }
    private struct Never: ReusePolicy {
        func reuse(_ stored: StoredResponse, for request: HTTPRequest, now: Instant) -> Reuse { .load }
    }

    @Test func policiesByTheirType() {
        let registry = PolicyRegistry()
        for id in [100, 105] { registry.register(Always(), id: id) }
        registry.register(Never(), id: 101)
        #expect(registry.policy(id: 101) is Never && registry.policy(id: 0) == nil && registry.policy(id: 7) == nil)
        #expect(registry.ids(of: Always.self) == [100, 105])
        #expect(registry.unregister(Always.self) == [100, 105] && registry.unregister(Always.self) == [])
        #expect(registry.ids == [0, 1, 2, 101])
    }

    @Test func removalByDateWithProgress() async throws {
        try await run { place in
            place.origin.script("/r", .ok("x").header("Cache-Control", "max-age=6000").header("Vary", "X"))
            for number in 0..<5 { _ = try await place.get("/r", [HTTPField.Name("X")!: "\(number)"]) }
            try await place.store.put([1], for: "mine")
            let middle = place.store.now
            place.clock.advance(by: .seconds(60))
            for number in 5..<8 { _ = try await place.get("/r", [HTTPField.Name("X")!: "\(number)"]) }
            let seen = Mutex<[PurgeProgress]>([])
            let removed = try await place.cache.purge(.storedBefore(middle + .seconds(30))) { progress in
                seen.withLock { $0.append(progress) }
            }
            #expect(removed == 5 && seen.withLock { $0.last?.removed } == 5)
            #expect(try place.store.contains("mine"))
            // A variant that is pinned stays findable.
            var pinned = try place.request("/r")
            pinned.headerFields[HTTPField.Name("X")!] = "7"
            let key = try #require(try await place.cache.stored(pinned)?.key)
            #expect(try await place.store.pin(key))
            #expect(try await place.cache.purge(!.pinned) == 2)
            #expect(try await place.get("/r", [HTTPField.Name("X")!: "7"]).source == .hit)
            _ = try await place.get("/r", [HTTPField.Name("X")!: "6"])
            #expect(try await place.get("/r", [HTTPField.Name("X")!: "6"]).source == .hit)
            struct Stop: Error {}
            await #expect(throws: Stop.self) {
                try await place.cache.purge(.all) { _ in throw Stop() }
            }
        }
    }

    @Test func aDownloadIntoAFile() async throws {
        try await run { place in
            let text = String(repeating: "0123456789", count: 50_000)
            place.origin.script("/d", .ok(text).header("Cache-Control", "max-age=60"))
            try await withDirectory { directory in
                let file = directory.appending("d")
                let first = try await place.cache.download(place.request("/d"), to: file)
                #expect(first.source == .network)
                try #expect(TestFiles.read(file) == Array(text.utf8))
                // What is there stays.
                await #expect(throws: Errno.fileExists) {
                    try await place.cache.download(place.request("/d"), to: file)
                }
                try #expect(TestFiles.read(file) == Array(text.utf8))
                let second = directory.appending("e")
                #expect(try await place.cache.download(place.request("/d"), to: second).source == .hit)
                await #expect(throws: FetchError.self) {
                    try await place.cache.download(
                        place.request("/none"), to: directory.appending("f"), FetchOptions(policy: .doNotLoad))
                }
                #expect(TestFiles.names(in: directory) == ["d", "e"])
            }
        }
    }
}
