import HTTPTestSupport
import HTTPTypes
import LarderGateway
import LarderHTTP
import LarderNIOTransport
import NIOCore
import NIOSSL
import TestOrigin
import TestSupport
import Testing

/// The same over TLS and HTTP/2.
struct HTTP2Tests {
    @Test(arguments: [0, 5, 40_000, 3 << 20]) func missesAndHits(_ count: Int) async throws {
        let content = body(count)
        let transport = ScriptedTransport { _ in .bytes(content, fresh) }
        try await withTLS(transport) { setting, port in
            let client = try await HTTP2Client.connect(to: port)
            for number in 0..<3 {
                let response = try await client.get("/a")
                #expect(response.head.status == .ok)
                #expect(response.body == content)
                #expect(response.head.headerFields[.contentLength] == "\(count)")
                let status = response.head.headerFields[HTTPField.Name("Cache-Status")!]
                #expect(status?.contains(number == 0 ? "fwd=" : "hit") == true)
            }
            #expect(transport.requests.count == 1)
            #expect(transport.requests[0].scheme == "https")
            await client.close()
        }
    }

    /// Its file has a hole in front.
    @Test func aRangeOfAPartInProgressIsSent() async throws {
        let content = body(2 << 20)
        let transport = ScriptedTransport { request throws(TransportError) in
            guard request.head.headerFields[.range] == "bytes=1000000-1999999" else { return .answer(500) }
            return .bytes(
                Array(content[1_000_000..<2_000_000]), status: 206,
                [
                    .cacheControl: "max-age=60", .eTag: "\"a\"",
                    .contentRange: "bytes 1000000-1999999/\(content.count)",
                ])
        }
        try await withTLS(transport) { setting, port in
            let client = try await HTTP2Client.connect(to: port)
            for (first, last) in [(1_000_000, 1_999_999), (1_000_005, 1_900_000), (1_500_000, 1_500_009)] {
                let response = try await client.get("/a", [.range: "bytes=\(first)-\(last)"])
                #expect(response.head.status == .partialContent && response.body == Array(content[first...last]))
            }
            #expect(transport.requests.count == 1)
            await client.close()
        }
    }

    @Test func streamsGoSideBySide() async throws {
        let gate = Gate()
        let transport = ScriptedTransport { request in
            if request.head.path == "/slow" { try? await gate.wait() }
            return .text(request.head.path ?? "")
        }
        try await withTLS(transport) { setting, port in
            let client = try await HTTP2Client.connect(to: port)
            async let slow = client.get("/slow")
            await gate.arrival()
            try await #expect(client.get("/quick").body == Array("/quick".utf8))
            gate.open()
            try await #expect(slow.body == Array("/slow".utf8))
            await client.close()
        }
    }

    @Test func contentInterimAnswersAndHead() async throws {
        let origin = try await TestOrigin.start { request in
            .ok("\(request.method) \(request.bodyLength)").interim(103, [.init("Link", "</a.css>")])
        }
        let transport = NIOTransport()
        try await withTLS(transport) {
            $0.routes.otherwise = try OriginServer(origin.url)
        } _: { setting, port in
            let client = try await HTTP2Client.connect(to: port)
            var request = HTTPRequest(method: .post, scheme: "https", authority: "example.org", path: "/")
            let answer = try await client.send(request, body: body(300_000))
            #expect(answer.body == Array("POST 300000".utf8))
            #expect(answer.informational.map(\.status.code) == [103])
            #expect(origin.requests[0]["Transfer-Encoding"] == "chunked")
            request.headerFields[.contentLength] = "1000"
            try await #expect(client.send(request, body: body(1_000)).body == Array("POST 1000".utf8))
            request = HTTPRequest(method: .head, scheme: "https", authority: "example.org", path: "/")
            let head = try await client.send(request)
            #expect(head.body.isEmpty)
            #expect(head.head.headerFields[.contentLength] == "6")
            await client.close()
        }
        await transport.close()
        await origin.stop()
    }

    @Test func whatIsNoProperRequestIsRefused() async throws {
        let transport = ScriptedTransport { _ in .text("x") }
        try await withTLS(transport, { $0.limits.bodyBytes = 1_000 }) { setting, port in
            let client = try await HTTP2Client.connect(to: port)
            func status(_ request: HTTPRequest, body: [UInt8]? = nil) async throws -> Int {
                try await client.send(request, body: body).head.status.code
            }
            let good = HTTPRequest(method: .get, scheme: "https", authority: "example.org", path: "/")
            try await #expect(status(good) == 200)
            var bad = good
            bad.headerFields[HTTPField.Name("Host")!] = "other.example"
            try await #expect(status(bad) == 400)
            bad = good
            bad.path = "nonsense"
            try await #expect(status(bad) == 400)
            bad = good
            bad.headerFields[HTTPField.Name("Via")!] = "1.1 test-gateway"
            try await #expect(status(bad) == 508)
            bad = good
            bad.method = .post
            bad.headerFields[.contentLength] = "1001"
            try await #expect(status(bad, body: body(1_001)) == 413)
            #expect(transport.requests.count == 1)
            await client.close()
        }
    }

    @Test func anOriginThatBreaksOffResetsTheStreamAlone() async throws {
        let transport = ScriptedTransport { request in
            guard request.head.path == "/cut" else { return .text("whole") }
            let pieces = Pieces([Array("first".utf8)], isComplete: false)
            return TransportResponse(
                head: HTTPResponse(status: .ok),
                body: pieces.body(length: nil))
        }
        try await withTLS(transport) { setting, port in
            let client = try await HTTP2Client.connect(to: port)
            await #expect(throws: (any Error).self) { try await client.get("/cut") }
            try await #expect(client.get("/").body == Array("whole".utf8))
            await client.close()
        }
    }

    @Test func stoppingSaysGoodbye() async throws {
        let gate = Gate()
        let transport = ScriptedTransport { _ in
            try? await gate.wait()
            return .text("done")
        }
        try await withTLS(transport) { setting, port in
            let client = try await HTTP2Client.connect(to: port)
            async let answer = client.get("/")
            await gate.arrival()
            async let stopped: Void = setting.gateway.stop(drain: .seconds(600))
            gate.open()
            try await #expect(answer.body == Array("done".utf8))
            try await client.closed()
            await stopped
        }
    }

    @Test func aConnectionOverTheLimitIsClosed() async throws {
        try await withTLS(ScriptedTransport { _ in .text("hello") }, { $0.limits.connections = 1 }) { setting, port in
            let first = try await HTTP2Client.connect(to: port)
            try await #expect(first.get("/").body == Array("hello".utf8))
            let second = try await RawClient.connect(to: port)
            try await #expect(second.rest().isEmpty)
            try await #expect(first.get("/").body == Array("hello".utf8))
            await first.close()
        }
    }

    @Test func aCertificateThatIsNotThereIsAnError() async throws {
        await #expect(throws: GatewayError.self) {
            try await withGateway(transport: ScriptedTransport { _ in .text("") }) {
                $0.tls = GatewayTLS(certificateFile: "/nowhere.pem", keyFile: "/nowhere.pem")
            } _: { _ in
            }
        }
    }

    /// HTTP/1.1 over TLS: the client does not offer h2, or the gateway does not.
    @Test(arguments: [5, 300_000, 3 << 20]) func clientsWithoutHTTP2(_ count: Int) async throws {
        let content = body(count)
        let origin = ScriptedTransport { _ in .bytes(content, fresh) }
        try await withTLS(origin, { $0.tls?.allowsHTTP2 = false }) { setting, port in
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.certificateVerification = .none
            let client = NIOTransport(NIOTransport.Configuration(tls: tls))
            func check(_ range: Range<Int>) async throws {
                var head = HTTPRequest(method: .get, scheme: "https", authority: "127.0.0.1:\(port)", path: "/")
                if range != content.indices {
                    head.headerFields[.range] = "bytes=\(range.lowerBound)-\(range.upperBound - 1)"
                }
                let response = try await client.send(TransportRequest(head: head))
                var received: [UInt8] = []
                while let piece = try await response.body.next() { received += piece }
                #expect(received == Array(content[range]))
            }
            for _ in 0..<3 { try await check(content.indices) }
            guard count > 64 << 10 else { return await client.close() }
            // In memory, and longer than what is written at once.
            while try await !setting.hasSharedBody() { try await check(content.indices) }
            for range in [content.indices, 0..<count - 1, 1..<100_000, 70_000..<70_010, content.indices] {
                try await check(range)
            }
            #expect(origin.requests.count == 1)
            await #expect(setting.gateway.readCounters().heldBytes == 0)
            await client.close()
        }
    }
}
