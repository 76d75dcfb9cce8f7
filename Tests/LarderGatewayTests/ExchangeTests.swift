import HTTPTestSupport
import HTTPTypes
import LarderGateway
import LarderHTTP
import TestSupport
import Testing

/// Requests and answers over HTTP/1.1.
struct ExchangeTests {
    @Test func missesAreStoredAndTheNextRequestHits() async throws {
        let transport = ScriptedTransport { _ in .text("hello", fresh) }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            let first = try await client.exchange(get("/a"))
            #expect(first.statusLine == "HTTP/1.1 200 OK")
            #expect(first.text == "hello")
            #expect(first["Content-Length"] == "5")
            #expect(first["Via"] == "1.1 test-gateway")
            #expect(first["Cache-Status"]?.contains("fwd=uri-miss") == true)
            #expect(first["Connection"] == nil)
            for _ in 0..<3 {
                let second = try await client.exchange(get("/a"))
                #expect(second.text == "hello")
                #expect(second["Cache-Status"]?.contains("hit") == true)
                #expect(second["Age"] != nil)
            }
            #expect(transport.requests.count == 1)
            #expect(transport.requests[0].authority == "example.org")
            #expect(transport.requests[0].path == "/a")
            try await client.close()
        }
    }

    @Test(arguments: [0, 1, 4_000, 70_000, 3 << 20]) func contentOfAnySizeIsWhole(_ count: Int) async throws {
        let content = body(count)
        let transport = ScriptedTransport { request in
            .bytes(content, fresh, declaresLength: request.head.path != "/chunked")
        }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            for path in ["/length", "/chunked"] {
                for pass in 0..<3 {
                    let response = try await client.exchange(get(path))
                    #expect(response.body == content, "\(path), pass \(pass)")
                    #expect((response.chunks != nil) == (path == "/chunked" && pass == 0))
                }
            }
            #expect(transport.requests.count == 2)
            try await client.close()
        }
    }

    @Test func statusesArePassedOn() async throws {
        let transport = ScriptedTransport { request in
            .text("x", status: Int(request.head.path?.dropFirst() ?? "") ?? 0, reason: "A Reason", fresh)
        }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            for status in [200, 203, 299, 404, 410, 499, 500, 599, 600, 999] {
                for _ in 0..<2 {
                    let response = try await client.exchange(get("/\(status)"))
                    #expect(response.status == status)
                    #expect(response.text == "x")
                }
            }
            try await client.close()
        }
    }

    @Test func methodsArePassedOn() async throws {
        let transport = ScriptedTransport { request in .text(request.head.method.rawValue) }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            for method in ["POST", "PUT", "DELETE", "PATCH", "PROPFIND", "BREW", "M-SEARCH", "get"] {
                try await #expect(client.exchange(get("/", method: method)).text == method)
            }
            try await client.close()
        }
    }

    @Test func answersToHeadHaveTheLengthAndNoContent() async throws {
        let transport = ScriptedTransport { request in
            request.head.method == .head
                ? TransportResponse(
                    head: HTTPResponse(status: .ok, headerFields: [.contentLength: "5", .cacheControl: "max-age=60"]),
                    body: .empty)
                : .text("hello", fresh)
        }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            let miss = try await client.exchange(get("/", method: "HEAD"))
            #expect(miss["Content-Length"] == "5")
            try await #expect(client.exchange(get("/")).text == "hello")
            let hit = try await client.exchange(get("/", method: "HEAD"))
            #expect(hit["Content-Length"] == "5")
            #expect(hit["Cache-Status"]?.contains("hit") == true)
            try await #expect(client.exchange(get("/")).text == "hello")
            try await client.close()
        }
    }

    @Test(arguments: [204, 304]) func statusesWithoutContentHaveNone(_ status: Int) async throws {
        let transport = ScriptedTransport { _ in
            TransportResponse(
                head: HTTPResponse(status: .init(code: status), headerFields: [.eTag: "\"a\""]), body: .empty)
        }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            let fields = ["If-None-Match: \"b\""]
            for _ in 0..<2 {
                let response = try await client.exchange(get("/", fields[0]))
                #expect(response.status == status)
                #expect(response["Content-Length"] == nil)
                #expect(response["Transfer-Encoding"] == nil)
            }
            try await client.close()
        }
    }

    @Test func pipelinedRequestsAreAnsweredInOrder() async throws {
        let transport = ScriptedTransport { request in .text(request.head.path ?? "", fresh) }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            _ = try await client.exchange(get("/1"))
            _ = try await client.exchange(get("/3"))
            // Hits stand behind misses, and wait for them.
            let paths = (0..<200).map { "/\($0 % 10)" }
            try await client.send(paths.map { get($0) }.joined())
            for path in paths { try await #expect(client.response().text == path) }
            #expect(transport.requests.count == 10)
            try await client.close()
        }
    }

    @Test func requestsMayArriveByteByByte() async throws {
        let transport = ScriptedTransport { _ in .text("hello", fresh) }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            for byte in get("/").utf8 { try await client.send([byte]) }
            try await #expect(client.response().text == "hello")
            for byte in get("/").utf8 { try await client.send([byte]) }
            try await #expect(client.response().text == "hello")
            try await client.close()
        }
    }

    @Test func theConnectionEndsWhenTheClientWants() async throws {
        let transport = ScriptedTransport { request in
            .text("hello", fresh, declaresLength: request.head.path == "/length")
        }
        try await withGateway(transport: transport) { setting in
            for path in ["/length", "/unknown"] {
                for text in [get(path, "Connection: close"), get(path, version: "1.0"), get(path, version: "1.0")] {
                    let client = try await setting.connect()
                    let response = try await client.exchange(text)
                    #expect(response.text == "hello")
                    #expect(response["Connection"] == "close")
                    #expect(response["Transfer-Encoding"] == nil || text.contains("HTTP/1.1"))
                    try await #expect(client.rest().isEmpty)
                }
            }
            let client = try await setting.connect()
            for _ in 0..<3 {
                let response = try await client.exchange(get("/length", "Connection: keep-alive", version: "1.0"))
                #expect(response["Connection"] == "keep-alive")
                #expect(response.text == "hello")
            }
            try await client.close()
        }
    }

    @Test func connectionFieldsAreNotPassedOn() async throws {
        let transport = ScriptedTransport { request in
            .text("x", [.connection: "X-Hop", HTTPField.Name("X-Hop")!: "1", HTTPField.Name("X-End")!: "2"])
        }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            let response = try await client.exchange(
                get(
                    "/", "Connection: X-Own, keep-alive", "X-Own: 1", "X-Other: 2", "TE: trailers", "Upgrade: websocket"
                ))
            #expect(response["X-Hop"] == nil)
            #expect(response["X-End"] == "2")
            let sent = transport.requests[0].headerFields
            #expect(sent[HTTPField.Name("X-Own")!] == nil)
            #expect(sent[HTTPField.Name("X-Other")!] == "2")
            #expect(sent[.te] == nil)
            #expect(sent[HTTPField.Name("Upgrade")!] == nil)
            #expect(sent[HTTPField.Name("Via")!] == "1.1 test-gateway")
            try await client.close()
        }
    }

    @Test func rangesComeFromTheStore() async throws {
        let content = body(500_000)
        let transport = ScriptedTransport { _ in .bytes(content, fresh) }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            _ = try await client.exchange(get("/"))
            let middle = try await client.exchange(get("/", "Range: bytes=1000-299999"))
            #expect(middle.status == 206)
            #expect(middle.body == Array(content[1000..<300_000]))
            let several = try await client.exchange(get("/", "Range: bytes=0-9,400000-499999"))
            #expect(several.status == 206)
            #expect(several.body.count > 100_010)
            try await #expect(client.exchange(get("/", "Range: bytes=500000-")).status == 416)
            #expect(transport.requests.count == 1)
            try await client.close()
        }
    }
}
