import AsyncHTTPClient
import HTTPCaching
import Larder
import LarderAsyncHTTPClient
import LarderHTTP
import NIOCore
import NIOHTTP1
import TestOrigin
import TestSupport
import Testing

/// The rules of HTTP caching, as a caller of the client meets them.
struct CachingRulesTests {
    private static let resource = OriginResource(
        String(repeating: "0123456789", count: 10_000), etag: "\"1\"", fields: [.init("Cache-Control", "max-age=60")])

    @Test func conditionalRequests() async throws {
        try await ClientSetting.run { setting in
            setting.origin.script("/") { Self.resource.answer($0) }
            let content = try await setting.get("/").1
            let (known, nothing) = try await setting.get("/", ("If-None-Match", "\"1\""))
            #expect(known.status == .notModified && nothing.isEmpty)
            let (other, whole) = try await setting.get("/", ("If-None-Match", "\"2\""))
            #expect(other.status == .ok && whole == content)
            #expect(setting.origin.requests.count == 1)
        }
    }

    @Test func staleResponsesAreValidated() async throws {
        let clock = TestClock()
        var cache = CachingHTTPClient.cacheConfiguration
        cache.clock = clock
        try await ClientSetting.run(cache: cache) { setting in
            setting.origin.script("/") { Self.resource.answer($0) }
            let content = try await setting.get("/").1
            clock.advance(by: .seconds(61))
            let (validated, text) = try await setting.get("/")
            #expect(validated.status == .ok && text == content)
            #expect(setting.origin.requests.map { $0["If-None-Match"] } == [nil, "\"1\""])
            _ = try await setting.get("/")
            #expect(setting.origin.requests.count == 2)
        }
    }

    @Test func ranges() async throws {
        try await ClientSetting.run { setting in
            setting.origin.script("/") { Self.resource.answer($0) }
            for _ in 0..<2 {
                let (response, text) = try await setting.get("/", ("Range", "bytes=10-14"))
                #expect(response.status == .partialContent && text == "01234")
                #expect(response.headers.first(name: "Content-Range") == "bytes 10-14/100000")
            }
            #expect(setting.origin.requests.count == 1)
            // The whole: the part that is missing is asked for, or all of it.
            try await #expect(setting.get("/").1 == String(repeating: "0123456789", count: 10_000))
            let asked = setting.origin.requests.count
            try await #expect(setting.get("/", ("Range", "bytes=-3")).1 == "789")
            try await #expect(setting.status(setting.request("/", ("Range", "bytes=100000-"))) == .rangeNotSatisfiable)
            #expect(setting.origin.requests.count == asked)
        }
    }

    @Test func headFromGet() async throws {
        try await ClientSetting.run { setting in
            setting.origin.script("/") { Self.resource.answer($0) }
            _ = try await setting.get("/")
            var request = setting.request("/")
            request.method = .HEAD
            let (response, text) = try await setting.answer(to: request)
            #expect(response.headers.first(name: "Content-Length") == "100000" && text.isEmpty)
            #expect(setting.origin.requests.count == 1)
        }
    }

    @Test func variants() async throws {
        try await ClientSetting.run { setting in
            setting.origin.script("/") {
                OriginAnswer.ok("\($0["Accept-Language"] ?? "-") \($0.count)").header("Cache-Control", "max-age=60")
                    .header("Vary", "Accept-Language")
            }
            for expected in ["de 1", "en 2", "de 1", "en 2"] {
                let language = String(expected.prefix(2))
                try await #expect(setting.get("/", ("Accept-Language", language)).1 == expected)
            }
        }
    }

    @Test func unsafeMethodsInvalidate() async throws {
        try await ClientSetting.run { setting in
            setting.origin.script("/") { OriginAnswer.counter($0).header("Cache-Control", "max-age=60") }
            for _ in 0..<2 { try await #expect(setting.get("/").1 == "1") }
            var put = setting.request("/")
            put.method = .PUT
            put.body = .bytes(ByteBuffer(string: "new"))
            try await #expect(setting.text(put) == "2")
            try await #expect(setting.get("/").1 == "3")
        }
    }

    /// A program that sends the requests of several users has one private cache for them: it mixes nothing up.
    @Test(arguments: ["Authorization", "Cookie"]) func eachUserHasResponsesOfItsOwn(field: String) async throws {
        try await ClientSetting.run { setting in
            setting.origin.script("/") {
                OriginAnswer.ok("\($0[field] ?? "-") \($0.count)").header("Cache-Control", "private, max-age=60")
            }
            for expected in ["ada 1", "bob 2", "ada 1", "bob 2"] {
                try await #expect(setting.get("/", (field, String(expected.prefix(3)))).1 == expected)
            }
            try await #expect(setting.get("/").1 == "- 3")
            // A purge of the URL reaches all of them.
            try await setting.client.cache.purge(setting.origin.url + "/")
            try await #expect(setting.get("/", (field, "ada")).1 == "ada 4")
            // A caller that knows better says so.
            let shared = FetchOptions(keyPolicy: KeyPolicy())
            for user in ["ada", "bob"] {
                let response = try await setting.client.execute(
                    setting.request("/", (field, user)), timeout: .seconds(600), options: shared)
                let text = String(buffer: try await response.body.collect(upTo: 100))
                #expect(text == "ada 5")
            }
        }
    }

    /// Callers with credentials of their own wait for a request of their own, too.
    @Test func usersDoNotShareRequests() async throws {
        try await ClientSetting.run { setting in
            let gate = Gate()
            setting.origin.script("/") {
                OriginAnswer.ok($0["Authorization"] ?? "-").header("Cache-Control", "max-age=60").holding(at: gate)
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for user in ["ada", "bob", "ada", "bob"] {
                    group.addTask {
                        try await #expect(setting.get("/", ("Authorization", user)).1 == user)
                    }
                }
                await gate.arrival(2)
                gate.open()
                try await group.waitForAll()
            }
            #expect(setting.origin.requests.count == 2)
        }
    }

    /// In a shared cache the response says whether it is for all users (RFC 9111 section 3.5).
    @Test func aSharedCache() async throws {
        var cache = CachingHTTPClient.cacheConfiguration
        cache.caching = CachingOptions(mode: .shared)
        try await ClientSetting.run(cache: cache) { setting in
            for (path, control, expected) in [
                ("/a", "max-age=60", ["ada 1", "bob 2"]), ("/b", "public, max-age=60", ["ada 1", "ada 1"]),
                ("/c", "private, max-age=60", ["ada 1", "bob 2"]),
            ] {
                setting.origin.script(path) {
                    OriginAnswer.ok("\($0["Authorization"] ?? "-") \($0.count)").header("Cache-Control", control)
                }
                for (user, text) in zip(["ada", "bob"], expected) {
                    try await #expect(setting.get(path, ("Authorization", user)).1 == text, "\(path)")
                }
            }
        }
    }

    @Test(arguments: [200, 204, 301, 404]) func withoutContent(status: Int) async throws {
        try await ClientSetting.run { setting in
            setting.origin.script("/", OriginAnswer.status(status).header("Cache-Control", "max-age=60"))
            let plain = try await setting.plain.execute(setting.request("/"), timeout: .seconds(600))
            _ = try await plain.body.collect(upTo: 100)
            for _ in 0..<2 {
                let (response, text) = try await setting.get("/")
                #expect(response.status == plain.status && text.isEmpty)
                #expect(response.headers["Content-Length"] == plain.headers["Content-Length"])
            }
            #expect(setting.origin.requests.count == 2)
        }
    }

    /// Content of unknown length, with trailer fields, which are dropped.
    @Test func chunkedContents() async throws {
        try await ClientSetting.run { setting in
            setting.origin.script(
                "/",
                OriginAnswer.ok("one").then("two").header("Cache-Control", "max-age=60")
                    .chunked(trailers: [.init("X-Sum", "6")]))
            setting.origin.script("/close", OriginAnswer.ok("three").header("Cache-Control", "max-age=60").untilClose())
            for _ in 0..<2 {
                try await #expect(setting.get("/").1 == "onetwo")
                try await #expect(setting.get("/close").1 == "three")
            }
            #expect(setting.origin.requests.count == 2)
        }
    }

    /// A redirect's content has no end: it is not waited for.
    @Test func aRedirectWithoutEnd() async throws {
        try await ClientSetting.run { setting in
            setting.origin.script(
                "/", OriginAnswer.redirect(to: "/to").content([]).then(GeneratedBytes(count: 1 << 40)))
            setting.origin.script("/to", .ok("arrived"))
            try await #expect(setting.get("/").1 == "arrived")
        }
    }

    /// A long content of the caller's is asked for as it goes out: while nothing takes it, it stands still.
    @Test func aLongUpload() async throws {
        try await ClientSetting.run { setting in
            setting.origin.script("/") { .ok("\($0.bodyLength)") }
            let (pieces, gate) = (512, Gate())
            let (stream, continuation) = AsyncStream.makeStream(of: ByteBuffer.self)
            let writing = Task {
                for number in 0..<pieces {
                    if number == pieces / 2 { try await gate.wait() }
                    continuation.yield(ByteBuffer(repeating: 65, count: 1 << 16))
                }
                continuation.finish()
            }
            var request = setting.request("/")
            request.method = .POST
            request.body = .stream(stream, length: .unknown)
            async let text = setting.text(request)
            // The first half is on its way while the second does not exist.
            await gate.arrival()
            gate.open()
            try await #expect(text == "\(pieces << 16)")
            try await writing.value
            #expect(setting.client.cache.heldBytes == 0)
        }
    }

    /// A response that no one reads leaves nothing behind: no memory, no connection that is held.
    @Test func responsesThatAreNotRead() async throws {
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 1
        try await ClientSetting.run(configuration) { setting in
            let bytes = GeneratedBytes(count: 8 << 20)
            setting.origin.script("/") { _ in OriginAnswer.ok(bytes).header("Cache-Control", "no-store") }
            for _ in 0..<5 {
                let response = try await setting.client.execute(setting.request("/"), timeout: .seconds(600))
                #expect(response.status == .ok)
            }
            await setting.client.cache.drain()
            #expect(setting.client.cache.heldBytes == 0)
        }
    }
}
