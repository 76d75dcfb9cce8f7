import HTTPTestSupport
import HTTPTypes
import LarderGateway
import LarderHTTP
import NIOHPACK
import NIOSSL
import TestSupport
import Testing

@testable import LarderServer

/// Which parts of a request over HTTP/2 are refused, and how the rest is passed on.
struct HTTP2RequestTests {
    let transport = ScriptedTransport { _ in .text("hello") }

    private func withClient(
        _ change: (inout GatewayConfiguration) throws -> Void = { _ in },
        _ body: (Setting, RawHTTP2Client) async throws -> Void
    ) async throws {
        try await withTLS(transport, change) { setting, port in
            let client = try await RawHTTP2Client.connect(to: port)
            // Settings are in force once they are acknowledged.
            try await client.settle()
            try await body(setting, client)
            await client.close()
        }
    }

    /// More than `HTTPFields` can have, which would stop the program.
    @Test func aHeadOfTooManyFieldsIsMalformed() async throws {
        var fields = [(":method", "GET"), (":scheme", "https"), (":authority", "example.org"), (":path", "/")]
        fields += Array(repeating: ("x", ""), count: 65_536)
        #expect(HTTPRequest(HPACKHeaders(fields)) == nil)
        #expect(HTTPRequest(HPACKHeaders(Array(fields[..<1_000]))) != nil)
    }

    /// RFC 9113 sections 8.2.1, 8.2.2, 8.3 and 8.3.1: "malformed", which is a stream error of type PROTOCOL_ERROR.
    @Test func malformedRequestsAreResetAlone() async throws {
        let whole = [(":method", "GET"), (":scheme", "https"), (":authority", "example.org"), (":path", "/")]
        var heads = [
            ("connection", "close"), ("keep-alive", "1"), ("proxy-connection", "close"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"), ("te", "gzip"), ("te", "trailers, gzip"), ("X-Upper", "1"), (":status", "200"),
            (":unknown", "1"), (":protocol", "websocket"), (":path", "/2"), ("a b", "1"), ("a", "b\r\nc: d"),
            ("a", "b\nc"), ("a", "b\0c"),
        ].map { whole + [$0] }
        heads += (0..<4).filter { $0 != 2 }.map { left in whole.indices.filter { $0 != left }.map { whole[$0] } }
        heads += [Array(whole[..<3]) + [(":path", "")], [("a", "1")] + whole]
        try await withClient { setting, client in
            for (index, fields) in heads.enumerated() {
                let stream = 4 * index + 1
                try await client.send(RawHTTP2Client.head(stream, fields))
                let answer = try await client.answer(stream)
                #expect(answer?.type == RawHTTP2Client.reset && answer?.code == 1, "\(fields.last ?? ("", ""))")
                try await client.send(RawHTTP2Client.request(stream + 2))
                try await #expect(client.content(stream + 2) == Array("hello".utf8), "\(fields.last ?? ("", ""))")
            }
            #expect(transport.requests.count == heads.count)
        }
    }

    @Test func trailersMayBeAskedForAndStayHere() async throws {
        try await withClient { setting, client in
            try await client.send(RawHTTP2Client.request(1, "GET", "/", [("te", "trailers")]))
            try await #expect(client.answer(1)?.status == 200)
            #expect(transport.requests[0].headerFields[HTTPField.Name("TE")!] == nil)
        }
    }

    @Test(arguments: [
        ("GET", "*", "example.org"), ("GET", "a", "example.org"), ("GET", "http://a/", "example.org"),
        ("GET", "/a b", "example.org"), ("GET", "/a#b", "example.org"), ("GET", "/ü", "example.org"),
        ("GET", "/", "user@example.org"), ("GET", "/", "example.org:99999"), ("GET", "/", "a/b"), ("GET", "/", ""),
        ("GET", "/", "a b"),
    ]) func improperTargetsAreRefused(_ method: String, _ path: String, _ authority: String) async throws {
        try await withClient { setting, client in
            try await client.send(RawHTTP2Client.request(1, method, path, authority: authority))
            let answer = try await client.answer(1)
            #expect(answer?.status == 400 || answer?.type == RawHTTP2Client.reset)
            #expect(transport.requests.isEmpty)
        }
    }

    @Test func optionsMayBeForTheWholeServer() async throws {
        try await withClient { setting, client in
            try await client.send(RawHTTP2Client.request(1, "OPTIONS", "*"))
            try await #expect(client.answer(1)?.status == 200)
            #expect(transport.requests.map(\.path) == ["*"])
        }
    }

    /// RFC 9113 section 8.2.3.
    @Test func cookiesAreJoined() async throws {
        try await withClient { setting, client in
            let fields = [("cookie", "a=1"), ("accept", "text/html"), ("cookie", "b=2"), ("cookie", "c=3")]
            try await client.send(RawHTTP2Client.request(1, "GET", "/", fields))
            try await #expect(client.answer(1)?.status == 200)
            #expect(transport.requests[0].headerFields[values: .cookie] == ["a=1; b=2; c=3"])
        }
    }

    /// With `Vary: Cookie` the same cookies select the same response, in how many fields they may come.
    @Test func joinedCookiesSelectTheSameResponse() async throws {
        let transport = ScriptedTransport { _ in .text("x", [.cacheControl: "max-age=60", .vary: "Cookie"]) }
        try await withTLS(transport) { setting, port in
            let client = try await RawHTTP2Client.connect(to: port)
            for (stream, fields) in [(1, [("cookie", "a=1"), ("cookie", "b=2")]), (3, [("cookie", "a=1; b=2")])] {
                try await client.send(RawHTTP2Client.request(stream, "GET", "/", fields))
                try await #expect(client.content(stream) == Array("x".utf8))
            }
            #expect(transport.requests.count == 1)
            await client.close()
        }
    }

    @Test func aHeadOverTheLimitIsRefusedAlone() async throws {
        for (path, field, status) in [
            ("/", 63_000, 200), ("/", 66_000, 431), ("/", 200_000, 431),
            ("/" + String(repeating: "a", count: 17_000), 1, 414),
        ] {
            try await withClient { setting, client in
                let fields = [("x-large", String(repeating: "a", count: field))]
                try await client.send(RawHTTP2Client.request(1, "GET", path, fields))
                try await #expect(client.answer(1)?.status == status)
                try await client.send(RawHTTP2Client.request(3))
                try await #expect(client.content(3) == Array("hello".utf8))
            }
        }
    }

    @Test func tooManyFieldsAreRefused() async throws {
        try await withClient { setting, client in
            try await client.send(RawHTTP2Client.request(1, "GET", "/", (0..<257).map { ("x-\($0)", "1") }))
            try await #expect(client.answer(1)?.status == 431)
        }
    }

    /// RFC 9110 section 8.6.
    @Test func noContentHasNoLength() async throws {
        let transport = ScriptedTransport { _ in .text("", status: 204, [.contentLength: "0"]) }
        try await withTLS(transport) { setting, port in
            let client = try await HTTP2Client.connect(to: port)
            let answer = try await client.get("/")
            #expect(answer.head.status == .noContent)
            #expect(answer.head.headerFields[.contentLength] == nil)
            await client.close()
        }
    }

    // MARK: Forwarding

    /// A host alone does not make a request one to a proxy.
    @Test(arguments: [false, true]) func hostsWithoutAnOriginAreForwardedWhereThatIsWanted(_ isWanted: Bool)
        async throws
    {
        try await withClient {
            $0.routes = Routes(hosts: ["example.org": try OriginServer("http://127.0.0.1:1")], allowsForwarding: true)
            $0.tls?.allowsForwarding = isWanted
        } _: { setting, client in
            try await client.send(RawHTTP2Client.request(1, authority: "169.254.169.254"))
            try await #expect(client.answer(1)?.status == (isWanted ? 200 : 421))
            let plain = [(":method", "GET"), (":scheme", "http"), (":authority", "other.example"), (":path", "/")]
            try await client.send(RawHTTP2Client.head(3, plain))
            try await #expect(client.next { $0.stream == 3 && $0.isEnd } != nil)
            // Whatever the scheme is said to be, an origin's responses have one URL.
            var served = plain
            served[2].1 = "example.org"
            try await client.send(RawHTTP2Client.head(5, served))
            try await #expect(client.content(5) == Array("hello".utf8))
            let urls = transport.requests.map { "\($0.scheme ?? "")://\($0.authority ?? "")" }
            #expect(
                urls == (isWanted ? ["https://169.254.169.254", "http://other.example"] : []) + ["https://example.org"])
        }
    }

    // MARK: TLS

    /// The status that a client gets whose TLS is of one version; nil where there is no connection.
    private func status(_ port: Int, _ version: TLSVersion, ciphers: String? = nil) async -> Int? {
        do {
            let client = try await RawHTTP2Client.connect(to: port) {
                $0.minimumTLSVersion = version
                $0.maximumTLSVersion = version
                if let ciphers { $0.cipherSuites = ciphers }
            }
            try await client.send(RawHTTP2Client.request(1))
            let status = try await client.answer(1)?.status
            await client.close()
            return status
        } catch {
            return nil
        }
    }

    /// RFC 8996, and RFC 9113 section 9.2.2.
    @Test func oldVersionsAndCiphersAreRefused() async throws {
        try await withTLS(transport) { setting, port in
            await #expect(status(port, .tlsv13) == 200)
            await #expect(status(port, .tlsv12) == 200)
            await #expect(status(port, .tlsv11) == nil)
            await #expect(status(port, .tlsv1) == nil)
            await #expect(status(port, .tlsv12, ciphers: "ECDHE-ECDSA-AES128-SHA") == nil)
        }
    }

    @Test func theOldestVersionCanBeSet() async throws {
        try await withTLS(transport, { $0.tls?.minimumVersion = .tls13 }) { setting, port in
            await #expect(status(port, .tlsv12) == nil)
            await #expect(status(port, .tlsv13) == 200)
        }
    }
}
