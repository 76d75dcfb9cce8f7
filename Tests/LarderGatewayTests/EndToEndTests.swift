import HTTPTestSupport
import HTTPTypes
import LarderGateway
import LarderHTTP
import LarderNIOTransport
import TestOrigin
import TestSupport
import Testing

/// Client, gateway, transport and origin, all over sockets.
struct EndToEndTests {
    @Test func theOriginSeesTheClientsHostAndEndToEndFields() async throws {
        try await withOrigin { _ in
            .ok("hello").header("Cache-Control", "max-age=60").header("X", "1").header("X", "2")
        } _: {
            setting, origin in
            let client = try await setting.connect()
            let response = try await client.exchange(
                get("/a?b", "X-One: 1", "Connection: X-Hop", "X-Hop: 1", "x-one: 2"))
            #expect(response.text == "hello")
            #expect(response.values("X") == ["1", "2"])
            let request = try #require(origin.requests.first)
            #expect(request.target == "/a?b")
            #expect(request["Host"] == "example.org")
            #expect(request["X-One"] == "1, 2")
            #expect(request["X-Hop"] == nil)
            #expect(request["Via"] == "1.1 test-gateway")
            try await #expect(client.exchange(get("/a?b"))["Cache-Status"]?.contains("hit") == true)
            #expect(origin.requests.count == 1)
            try await client.close()
        }
    }

    @Test func interimAnswersAreRelayedInOrder() async throws {
        try await withOrigin { _ in
            .ok("done").interim(102).interim(103, [.init("Link", "</a.css>")]).interim(103, [.init("Link", "</b.css>")])
                .header("Cache-Control", "max-age=60")
        } _: { setting, origin in
            let client = try await setting.connect()
            try await client.send(get("/"))
            try await #expect(client.response().status == 102)
            try await #expect(client.response()["Link"] == "</a.css>")
            try await #expect(client.response()["Link"] == "</b.css>")
            try await #expect(client.response().text == "done")
            // They are not stored, and HTTP/1.0 does not know them (RFC 9110 section 15.2).
            try await client.send(get("/"))
            try await #expect(client.response().status == 200)
            let old = try await setting.connect()
            try await old.send(get("/other", version: "1.0"))
            try await #expect(old.response().status == 200)
            try await client.close()
            try await old.close()
        }
    }

    @Test func interimAnswersComeBeforeTheOriginIsDone() async throws {
        let gate = Gate()
        try await withOrigin { _ in
            .ok("done").interim(103, [.init("Link", "</a.css>")]).holding(at: gate)
        } _: {
            setting, origin in
            let client = try await setting.connect()
            try await client.send(get("/"))
            try await #expect(client.response().status == 103)
            gate.open()
            try await #expect(client.response().status == 200)
            try await client.close()
        }
    }

    @Test func contentArrivesWhileTheOriginSendsIt() async throws {
        let gate = Gate()
        try await withOrigin { _ in
            .ok("first").then(gate).then("second").chunked()
        } _: { setting, origin in
            let client = try await setting.connect()
            try await client.send(get("/"))
            let head = try await client.head()
            #expect(head["Transfer-Encoding"] == "chunked")
            try await #expect(client.bytes(10) == Array("5\r\nfirst\r\n".utf8))
            gate.open()
            try await #expect(client.bytes(16) == Array("6\r\nsecond\r\n0\r\n\r\n".utf8))
            try await client.close()
        }
    }

    /// "A response is usable by the next request as soon as the client has received it."
    @Test(arguments: [5, 300_000, 3 << 20]) func aResponseThatWasReceivedHits(_ count: Int) async throws {
        let content = body(count)
        try await withOrigin { request in
            .ok(content).header("Cache-Control", "max-age=60").header("N", "\(request.order)")
        } _: { setting, origin in
            let client = try await setting.connect()
            for number in 0..<20 {
                let first = try await client.exchange(get("/\(number)"))
                let second = try await client.exchange(get("/\(number)"))
                #expect(first.body == content)
                #expect(second.body == content)
                #expect(second["Cache-Status"]?.contains("; hit") == true)
            }
            #expect(origin.requests.count == 20)
            try await client.close()
        }
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        "HTTP/1.1 2000 OK\r\n\r\n", "what?",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: nonsense\r\n\r\nabc", "",
    ])
    func malformedAnswersAre502AndNotStored(_ text: String) async throws {
        try await withOrigin { _ in
            .raw(text)
        } _: { setting, origin in
            let response = try await exchange(setting.port, get("/"))
            #expect(response.status == 502)
            #expect(response["Content-Type"] == "text/plain; charset=utf-8")
            try await #expect(setting.store.figures().entryCount == 0)
        }
    }

    @Test func aClientThatLeavesClosesTheConnectionToTheOrigin() async throws {
        try await withOrigin { _ in
            .silent
        } _: { setting, origin in
            let client = try await setting.connect()
            try await client.send(get("/"))
            await origin.wait { $0.requests.count == 1 }
            try await client.reset()
            await origin.wait { $0.connectionsOpen == 0 }
        }
    }

    @Test func uploadsOfAnySizeArriveAndAreAnswered() async throws {
        try await withOrigin { request in
            .ok("\(request.bodyLength)")
        } _: { setting, origin in
            let client = try await setting.connect()
            for count in [0, 1, 65_536, 5 << 20] {
                try await client.send(get("/", "Content-Length: \(count)", method: "POST"))
                try await client.send(body(count))
                try await #expect(client.response().text == "\(count)")
            }
            try await client.close()
        }
    }

    @Test func anOriginThatIsAwayIs502() async throws {
        let transport = NIOTransport()
        try await withGateway(transport: transport) {
            // Nothing listens on port 1. A port that was just released may be the next one that the gateway gets.
            $0.routes.otherwise = try OriginServer("http://127.0.0.1:1")
        } _: { setting in
            let response = try await exchange(setting.port, get("/"))
            #expect(response.status == 502)
            #expect(response.text == "The origin cannot be reached: it refuses connections.\n")
        }
        await transport.close()
    }

    @Test func aNameWithoutAddressAndAFailureOfTLSAreTold() async throws {
        let origin = try await TestOrigin.start()
        for (url, text) in [
            ("http://larder.invalid:80", "its name has no address"), ("https://127.0.0.1:\(origin.port)", "TLS failed"),
        ] {
            let transport = NIOTransport()
            try await withGateway(transport: transport) {
                $0.routes.otherwise = try OriginServer(url)
            } _: { setting in
                let response = try await exchange(setting.port, get("/"))
                #expect(response.status == 502)
                #expect(response.text == "The origin cannot be reached: \(text).\n")
            }
            await transport.close()
        }
        await origin.stop()
    }
}
