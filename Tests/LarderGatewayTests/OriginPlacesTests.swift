import HTTPTestSupport
import HTTPTypes
import LarderGateway
import LarderHTTP
import LarderNIOTransport
import TestOrigin
import TestSupport
import Testing

/// What clients may take of an origin, and what they may send it. Over sockets.
struct OriginPlacesTests {
    private func withOrigin(
        _ origin: TestOrigin, _ transport: any Transport,
        caching: @escaping (inout HTTPCacheConfiguration) -> Void = { _ in }, _ body: (Setting) async throws -> Void
    ) async throws {
        try await withGateway(
            transport: transport, { $0.routes.otherwise = try OriginServer(origin.url) }, caching: caching, body)
        await origin.stop()
        #expect(origin.history.failures.isEmpty)
    }

    /// Runs `body` with an origin that answers "late" when the gate opens.
    private func withOriginThatWaits(
        caching: @escaping (inout HTTPCacheConfiguration) -> Void, _ body: (Setting, Gate) async throws -> Void
    ) async throws {
        let gate = Gate()
        let transport = NIOTransport()
        let origin = try await TestOrigin.start { _ in .ok("late").holding(at: gate) }
        try await withOrigin(origin, transport, caching: caching) { setting in try await body(setting, gate) }
        await transport.close()
    }

    /// Two requests hang, whatever host they name: it is one origin. One waits, and one more is refused at once.
    @Test func aQueueThatIsFullIsAnsweredAtOnce() async throws {
        try await withOriginThatWaits {
            $0.requestsPerHost = 2
            $0.waitingPerHost = 1
            $0.timeouts.queue = .seconds(120)
        } _: { setting, gate in
            var hanging: [RawClient] = []
            for host in ["a", "b"] {
                let client = try await setting.connect()
                try await client.send("GET /hang HTTP/1.1\r\nHost: \(host).example\r\n\r\n")
                hanging.append(client)
            }
            await gate.arrival(2)
            let waiting = try await setting.connect()
            try await waiting.send(get("/waits"))
            try await waitWhile { setting.cache.waitingRequests < 1 }
            let refused = try await setting.connect()
            let answer = try await refused.exchange(get("/refused"))
            #expect(answer.status == 503)
            #expect(answer["Retry-After"] == "1")
            gate.open()
            for client in hanging + [waiting] { try await #expect(client.response().text == "late") }
            try await #expect(refused.exchange(get("/again")).text == "late")
            for client in hanging + [waiting, refused] { try await client.close() }
        }
    }

    @Test func waitingForAPlaceHasAnEnd() async throws {
        try await withOriginThatWaits {
            $0.requestsPerHost = 1
            $0.timeouts.queue = .milliseconds(20)
        } _: { setting, gate in
            let hanging = try await setting.connect()
            try await hanging.send(get("/hang"))
            await gate.arrival()
            let waiting = try await setting.connect()
            try await #expect(waiting.exchange(get("/waits")).status == 504)
            gate.open()
            try await #expect(hanging.response().text == "late")
            for client in [hanging, waiting] { try await client.close() }
        }
    }

    /// A client that sends its content byte by byte holds a place, but not the last one.
    @Test func slowUploadsLeaveRoomForOthers() async throws {
        let transport = NIOTransport()
        let origin = try await TestOrigin.start { _ in .ok("done") }
        try await withOrigin(
            origin, transport,
            caching: {
                $0.requestsPerHost = 4
                $0.timeouts.queue = .seconds(120)
            }
        ) { setting in
            var slow: [RawClient] = []
            for _ in 0..<3 {
                let client = try await setting.connect()
                try await client.send(get("/up", "Content-Length: 3", method: "POST") + "x")
                slow.append(client)
            }
            try await waitWhile { setting.cache.waitingRequests < 1 }
            let other = try await setting.connect()
            for number in 0..<5 { try await #expect(other.exchange(get("/\(number)")).text == "done") }
            for client in slow { try await client.send("yz") }
            for client in slow { try await #expect(client.response().text == "done") }
            for client in slow + [other] { try await client.close() }
        }
        await transport.close()
    }

    /// A server that sends a byte now and then meets every other limit.
    @Test func aResponseThatDripsEndsInTime() async throws {
        let gate = Gate()
        let transport = NIOTransport()
        let origin = try await TestOrigin.start { _ in .ok("first").then(gate).then("rest").chunked() }
        try await withOrigin(
            origin, transport, caching: { $0.timeouts.total = .seconds(1) }
        ) { setting in
            var hasDripped = false
            // On a busy machine the time may be over before the head comes.
            while !hasDripped {
                let client = try await setting.connect()
                try await client.send(get("/"))
                let head = try await client.head()
                guard head.status == 200 else {
                    #expect(head.status == 504)
                    try await client.close()
                    continue
                }
                // The connection ends without the last chunk.
                let rest = try? await client.rest()
                #expect(rest.map { String(decoding: $0, as: UTF8.self).contains("0\r\n\r\n") } != true)
                hasDripped = true
            }
            gate.open()
        }
        await transport.close()
    }

    @Test func credentialsForAProxyDoNotReachTheOrigin() async throws {
        let transport = NIOTransport()
        let origin = try await TestOrigin.start { _ in
            .ok("done").header("Proxy-Authenticate", "Basic realm=x").interim(
                103, [.init("Connection", "X-Hop"), .init("X-Hop", "1"), .init("Link", "</a.css>")])
        }
        try await withOrigin(origin, transport) { setting in
            let client = try await setting.connect()
            try await client.send(get("/", "Proxy-Authorization: Basic c2VjcmV0", "Proxy-Connection: keep-alive"))
            let interim = try await client.response()
            #expect(interim.status == 103)
            #expect(interim["Link"] == "</a.css>")
            #expect(interim["X-Hop"] == nil)
            #expect(interim["Connection"] == nil)
            try await #expect(client.response()["Proxy-Authenticate"] == nil)
            try await client.close()
            let head = String(decoding: try #require(origin.requests.first).rawHead, as: UTF8.self)
            #expect(!head.lowercased().contains("proxy-"))
        }
        await transport.close()
    }
}
