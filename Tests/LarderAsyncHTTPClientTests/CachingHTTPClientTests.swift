import AsyncHTTPClient
import Larder
import LarderAsyncHTTPClient
import LarderHTTP
import NIOCore
import NIOHTTP1
import NIOSSL
import TestOrigin
import TestSupport
import Testing

/// The client that caches against real sockets, beside one that does not.
struct CachingHTTPClientTests {
    @Test func theSecondRequestIsAnsweredFromTheStore() async throws {
        try await ClientSetting.run { setting in
            setting.origin.script(
                "/a",
                .status(203, "body").header("Cache-Control", "max-age=60").header("X-Two", "1").header("X-Two", "2")
            )
            for _ in 0..<2 {
                let (response, text) = try await setting.get("/a")
                #expect(response.status == .nonAuthoritativeInformation && text == "body")
                #expect(response.headers["X-Two"] == ["1", "2"])
                #expect(response.url?.absoluteString == setting.origin.url + "/a")
            }
            #expect(setting.origin.requests.count == 1)
            let (hit, _) = try await setting.get("/a")
            #expect(hit.headers.first(name: "Cache-Status")?.contains("hit") == true)
        }
    }

    @Test func fieldsAndContentAreThoseOfTheClient() async throws {
        try await ClientSetting.run { setting in
            setting.origin.script(
                "/a",
                OriginAnswer.ok("body").header("Cache-Control", "max-age=60").header("ETag", "\"1\"")
                    .header("Set-Cookie", "a=b").header("Date", "Mon, 23 Nov 2026 00:00:00 GMT"))
            let plain = try await setting.plain.execute(setting.request("/a"), timeout: .seconds(600))
            let own = try await setting.client.execute(setting.request("/a"), timeout: .seconds(600))
            #expect(own.status == plain.status)
            let added: Set<String> = ["age", "cache-status"]
            let fields = own.headers.filter { !added.contains($0.name.lowercased()) }.map { "\($0.name): \($0.value)" }
            #expect(fields == plain.headers.map { "\($0.name): \($0.value)" })
            let contents = (try await plain.body.collect(upTo: 100), try await own.body.collect(upTo: 100))
            #expect(contents.0 == contents.1)
        }
    }

    @Test func errorsAreThoseOfTheClient() async throws {
        try await ClientSetting.run { setting in
            setting.origin.script("/cut", OriginAnswer.ok("0123456789").truncated(after: 4))
            setting.origin.script("/closed", .closed)
            setting.origin.script("/garbage", .raw("not HTTP at all\r\n\r\n"))
            for path in ["/cut", "/closed", "/garbage"] {
                let (own, plain) = await setting.errors(setting.request(path))
                #expect(own == plain && own != "nothing", "\(path)")
            }
            for url in ["", "example.org/", "ftp://example.org/", "http://", "http:///path", "http+unix:///x"] {
                let (own, plain) = await setting.errors(HTTPClientRequest(url: url))
                #expect(own == plain && own != "nothing", "\(url)")
            }
            for (name, value) in [("in valid", "x"), ("X", "in\r\nvalid"), ("X", "\u{0}")] {
                let (own, plain) = await setting.errors(setting.request("/", (name, value)))
                #expect(own == plain && own != "nothing", "\(name): \(value)")
            }
            var trace = setting.request("/")
            trace.method = .TRACE
            trace.body = .bytes(ByteBuffer(string: "x"))
            let (own, plain) = await setting.errors(trace)
            #expect(own == plain && own.contains("traceRequestWithBody"))
        }
    }

    @Test func nothingListens() async throws {
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.retryConnectionEstablishment = false
        try await ClientSetting.run(configuration) { setting in
            await setting.origin.stop()
            let (own, plain) = await setting.errors(setting.request("/"))
            #expect(own == plain && own != "nothing")
        }
    }

    @Test func timeouts() async throws {
        var configuration = HTTPClient.Configuration()
        configuration.timeout.read = .milliseconds(20)
        try await ClientSetting.run(configuration) { setting in
            setting.origin.script("/", .silent)
            setting.origin.script("/stops", OriginAnswer.ok("0123456789").truncated(after: 4, then: .silence))
            for path in ["/", "/stops"] {
                let (own, plain) = await setting.errors(setting.request(path))
                #expect(own == plain && own.contains("readTimeout"), "\(path)")
            }
        }
        try await ClientSetting.run { setting in
            setting.origin.script("/", .silent)
            for timeout in [TimeAmount.milliseconds(20), .zero] {
                let (own, plain) = await setting.errors(setting.request("/"), timeout: timeout)
                #expect(own == plain && own.contains("deadlineExceeded"))
            }
        }
    }

    @Test func aCancelledTaskGivesTheRequestUp() async throws {
        try await ClientSetting.run { setting in
            let gate = Gate()
            setting.origin.script("/", OriginAnswer.ok("late").holding(at: gate))
            let task = Task { try await setting.text(setting.request("/")) }
            await gate.arrival()
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            await setting.origin.wait { $0.connectionsOpen == 0 }
            gate.open()
        }
    }

    /// The time of one caller is not that of the others.
    @Test func aDeadlineEndsOneCallOfSeveral() async throws {
        try await ClientSetting.run { setting in
            let gate = Gate()
            setting.origin.script(
                "/", OriginAnswer.ok("late").header("Cache-Control", "max-age=60").holding(at: gate))
            let isOver = Latch()
            let hasty = Task {
                defer { isOver.open() }
                return try await setting.client.execute(setting.request("/"), timeout: .seconds(1))
            }
            // On a busy machine the time may be over before the request is sent.
            try await waitWhile { gate.arrivals == 0 && !isOver.isOpen }
            let patient = Task { try await setting.text(setting.request("/")) }
            await #expect(throws: HTTPClientError.deadlineExceeded) { try await hasty.value }
            gate.open()
            try await #expect(patient.value == "late")
        }
    }

    @Test func manyCallersShareOneRequest() async throws {
        try await ClientSetting.run { setting in
            let gate = Gate()
            setting.origin.script(
                "/", OriginAnswer.ok("shared").header("Cache-Control", "max-age=60").holding(at: gate))
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<100 { group.addTask { try await setting.text(setting.request("/")) } }
                await gate.arrival()
                gate.open()
                for try await text in group { #expect(text == "shared") }
            }
            #expect(setting.origin.requests.count == 1)
        }
    }

    @Test func theConnectionLimitStaysInForce() async throws {
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 1
        try await ClientSetting.run(configuration) { setting in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<20 { group.addTask { _ = try await setting.get("/\(number)") } }
                try await group.waitForAll()
            }
            #expect(setting.origin.requests.count == 20)
            #expect(setting.origin.history.connectionsAccepted == 1)
        }
    }

    @Test func theProxyAndItsCredentialsStayInForce() async throws {
        let origin = try await TestOrigin.start { request in
            request.method == "CONNECT" ? .ok() : OriginAnswer.ok("through").header("Cache-Control", "max-age=60")
        }
        var configuration = HTTPClient.Configuration()
        configuration.proxy = .server(
            host: "127.0.0.1", port: origin.port, authorization: .basic(username: "user", password: "secret"))
        try await ClientSetting.run(configuration) { setting in
            for _ in 0..<2 {
                let (_, text) = try await setting.answer(to: HTTPClientRequest(url: "http://a.example/x"))
                #expect(text == "through")
            }
            #expect(origin.requests.map(\.method) == ["CONNECT", "GET"])
            #expect(origin.requests[0]["Proxy-Authorization"] == "Basic dXNlcjpzZWNyZXQ=")
            #expect(origin.requests[1]["Host"] == "a.example" && origin.requests[1]["Proxy-Authorization"] == nil)
        }
        await origin.stop()
    }

    @Test func theTLSSettingsStayInForce() async throws {
        let roots = try NIOSSLCertificate.fromPEMBytes(Array(OriginCertificate.local.certificatePEM.utf8))
        var trusting = HTTPClient.Configuration()
        trusting.tlsConfiguration = .makeClientConfiguration()
        trusting.tlsConfiguration?.trustRoots = .certificates(roots)
        try await ClientSetting.run(trusting, certificate: .local) { setting in
            setting.origin.script("/", OriginAnswer.ok("secure").header("Cache-Control", "max-age=60"))
            for _ in 0..<2 { try await #expect(setting.text(setting.request("/")) == "secure") }
            #expect(setting.origin.requests.count == 1)
        }
        var wary = HTTPClient.Configuration()
        wary.connectionPool.retryConnectionEstablishment = false
        try await ClientSetting.run(wary, certificate: .local) { setting in
            let (own, plain) = await setting.errors(setting.request("/"))
            #expect(own == plain && own.contains("CERTIFICATE_VERIFY_FAILED"))
        }
    }

    /// A request with TLS settings of its own, or a `Host` of its own, may be answered by another server.
    @Test func someRequestsGoPastTheCache() async throws {
        try await ClientSetting.run { setting in
            setting.origin.script("/") { OriginAnswer.counter($0).header("Cache-Control", "max-age=60") }
            var request = setting.request("/")
            request.tlsConfiguration = .makeClientConfiguration()
            try await #expect(setting.text(request) == "1")
            try await #expect(setting.text(request) == "2")
            try await #expect(setting.text(setting.request("/", ("Host", "other.example"))) == "3")
            try await #expect(setting.text(setting.request("/")) == "4")
            try await #expect(setting.text(setting.request("/", ("Host", setting.origin.authority))) == "4")
        }
    }

    @Test func contentsAreSentWithTheirLength() async throws {
        try await ClientSetting.run { setting in
            setting.origin.script("/") { .ok("\($0.method) \($0["Content-Length"] ?? "-") \($0.text)") }
            var request = setting.request("/")
            request.method = .PUT
            request.body = .bytes(ByteBuffer(string: "content"))
            try await #expect(setting.text(request) == "PUT 7 content")
            request.body = .stream([ByteBuffer(string: "con"), ByteBuffer(string: "tent")].async, length: .unknown)
            try await #expect(setting.text(request) == "PUT - content")
            request.body = .stream(
                [ByteBuffer(string: "con"), ByteBuffer(string: "tent")].async, length: .known(7 as Int64))
            try await #expect(setting.text(request) == "PUT 7 content")
            request.body = .stream([ByteBuffer(string: "con")].async, length: .known(7 as Int64))
            let (own, plain) = await setting.errors(request)
            #expect(own == plain && own.contains("bodyLengthMismatch"))
        }
    }

    @Test func aQueryIsKeptUnderItsContent() async throws {
        try await ClientSetting.run { setting in
            setting.origin.script("/") {
                OriginAnswer.ok("\($0.count) \($0.text)").header("Cache-Control", "max-age=60")
            }
            for (content, expected) in [("a", "1 a"), ("b", "2 b"), ("a", "1 a")] {
                var request = setting.request("/", ("Content-Type", "text/plain"))
                request.method = .RAW(value: "QUERY")
                request.body = .bytes(ByteBuffer(string: content))
                try await #expect(setting.text(request) == expected)
            }
        }
    }

    @Test func aLongContentStreamsWithLittleMemory() async throws {
        try await ClientSetting.run { setting in
            let bytes = GeneratedBytes(count: 48 << 20)
            setting.origin.script("/", OriginAnswer.ok(bytes).header("Cache-Control", "max-age=60"))
            for _ in 0..<2 {
                let response = try await setting.client.execute(setting.request("/"), timeout: .seconds(600))
                var count: Int64 = 0
                var most = 0
                for try await piece in response.body {
                    let range = count..<count + Int64(piece.readableBytes)
                    #expect(Array(piece.readableBytesView) == bytes.bytes(in: range))
                    count = range.upperBound
                    most = max(most, setting.client.cache.heldBytes)
                }
                #expect(count == bytes.count && most < 4 << 20)
            }
            #expect(setting.origin.requests.count == 1)
        }
    }

    @Test func optionsOfOneRequest() async throws {
        try await ClientSetting.run { setting in
            setting.origin.script("/") { OriginAnswer.counter($0).header("Cache-Control", "max-age=60") }
            let stored = FetchOptions(policy: .doNotLoad)
            await #expect(throws: FetchError.self) {
                try await setting.client.execute(setting.request("/"), timeout: .seconds(600), options: stored)
            }
            _ = try await setting.get("/")
            let response = try await setting.client.execute(
                setting.request("/"), timeout: .seconds(600), options: FetchOptions(policy: .doNotRead))
            let text = String(buffer: try await response.body.collect(upTo: 10))
            #expect(text == "2")
        }
    }

    @Test func afterItsShutdownItAnswersNothing() async throws {
        let origin = try await TestOrigin.start { _ in OriginAnswer.ok("x").header("Cache-Control", "max-age=60") }
        try await withStore { store in
            let client = CachingHTTPClient(store: store)
            let request = HTTPClientRequest(url: origin.url + "/")
            _ = try await client.execute(request, timeout: .seconds(600)).body.collect(upTo: 10)
            try await client.shutdown()
            await #expect(throws: HTTPClientError.alreadyShutdown) {
                try await client.execute(request, timeout: .seconds(600))
            }
            await #expect(throws: HTTPClientError.alreadyShutdown) { try await client.shutdown() }
        }
        await origin.stop()
    }

    /// Requests that are under way end with an error, and the shutdown with them.
    @Test func aShutdownWhileALoadRuns() async throws {
        let gate = Gate()
        let origin = try await TestOrigin.start { _ in
            OriginAnswer.ok("late").header("Cache-Control", "max-age=60").holding(at: gate)
        }
        try await withStore { store in
            let client = CachingHTTPClient(store: store)
            let url = origin.url + "/"
            let waiting = (0..<3).map { _ in
                Task { try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(600)) }
            }
            await gate.arrival()
            try await client.shutdown()
            for task in waiting { await #expect(throws: (any Error).self) { try await task.value } }
        }
        gate.open()
        await origin.stop()
    }

    /// Without its store the client is a client.
    @Test func aStoreThatIsClosed() async throws {
        let origin = try await TestOrigin.start { OriginAnswer.counter($0).header("Cache-Control", "max-age=60") }
        try await withDirectory { path in
            let store = try Store(at: path.appending("store"), .testing())
            var cache = CachingHTTPClient.cacheConfiguration
            cache.logger.logLevel = .critical
            let client = CachingHTTPClient(store: store, cache: cache)
            let text: () async throws -> String = {
                let response = try await client.execute(
                    HTTPClientRequest(url: origin.url + "/"), timeout: .seconds(600))
                return String(buffer: try await response.body.collect(upTo: 100))
            }
            for _ in 0..<2 { try await #expect(text() == "1") }
            await client.cache.drain()
            try await store.close()
            for expected in ["2", "3"] { try await #expect(text() == expected) }
            try await client.shutdown()
        }
        await origin.stop()
    }
}

extension Array where Element: Sendable {
    /// The elements as an asynchronous sequence.
    var async: AsyncStream<Element> {
        AsyncStream { continuation in
            for element in self { continuation.yield(element) }
            continuation.finish()
        }
    }
}
