import HTTPTestSupport
import LarderGateway
import LarderHTTP
import Testing

/// Invalid HTTP is refused, the connection is closed, and no part of the request reaches the origin.
struct FramingTests {
    static let malformed: [(String, Int)] = [
        ("GET /\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\nHost: a\n\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nA\u{0}: b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nA: b\u{0}c\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nA: b\rc\r\n\r\n", 400),
        ("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        ("GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\na", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\na", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\na", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\na", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        ("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n", 400),
        ("GET /\(String(repeating: "a", count: 20_000)) HTTP/1.1\r\nHost: a\r\n\r\n", 414),
        ("GET / HTTP/1.1\r\nHost: a\r\nA: \(String(repeating: "a", count: 70_000))\r\n\r\n", 431),
        ("GET / HTTP/1.1\r\nHost: a\r\n\(String(repeating: "A: b\r\n", count: 300))\r\n", 431),
        ("\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\r\n\r\n", 400),
    ]

    @Test func malformedRequestsAreRefused() async throws {
        let transport = ScriptedTransport.takingContent("answered")
        try await withGateway(transport: transport) { setting in
            for (text, status) in Self.malformed {
                let client = try await setting.connect()
                // What follows must never be taken for a request of its own.
                try await client.send(text + get("/smuggled"))
                let response = try await client.response()
                let name = Comment(rawValue: String(text.prefix(120)))
                #expect(response.status == status, name)
                #expect(response["Connection"] == "close", name)
                #expect(response["Content-Type"]?.hasPrefix("text/plain") == true, name)
                #expect(response["Cache-Status"] == nil, name)
                try await #expect(client.rest().isEmpty, name)
                try await client.close()
            }
            #expect(!transport.requests.contains { $0.path == "/smuggled" })
        }
    }

    @Test func emptyLinesBeforeARequestArePassedOver() async throws {
        let transport = ScriptedTransport { _ in .text("x") }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            try await #expect(client.exchange("\r\n" + get("/")).status == 200)
            try await #expect(client.exchange("\r\n" + get("/")).status == 200)
            try await client.close()
        }
    }

    @Test func contentThatIsAnsweredFromTheStoreIsNoRequest() async throws {
        let transport = ScriptedTransport { _ in .text("x", fresh) }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            _ = try await client.exchange(get("/"))
            let smuggled = get("/smuggled")
            try await client.send(get("/", "Content-Length: \(smuggled.utf8.count)") + smuggled + get("/next"))
            try await #expect(client.response().status == 200)
            try await #expect(client.response().status == 200)
            #expect(!transport.requests.contains { $0.path == "/smuggled" })
            #expect(transport.requests.last?.path == "/next")
            try await client.close()
        }
    }
}
