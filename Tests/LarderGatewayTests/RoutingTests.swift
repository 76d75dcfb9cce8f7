import HTTPTestSupport
import HTTPTypes
import LarderGateway
import LarderHTTP
import LarderNIOTransport
import Locks
import TestOrigin
import Testing

/// Which server gets a request, and what a proxy has to change in it.
struct RoutingTests {
    /// Keeps where requests would have been sent.
    final class Sent: Sendable {
        let list = Mutex<[(destination: TransportDestination?, authority: String?, fields: HTTPFields)]>([])
        func transport() -> ScriptedTransport {
            ScriptedTransport { request in
                self.list.withLock {
                    $0.append((request.destination, request.head.authority, request.head.headerFields))
                }
                return .text(request.head.authority ?? "", fresh)
            }
        }
    }

    @Test func hostsHaveOriginsOfTheirOwn() async throws {
        let sent = Sent()
        try await withGateway(transport: sent.transport()) {
            $0.routes = Routes(
                hosts: [
                    "a.example": try OriginServer("http://10.0.0.1:81"),
                    "b.example:8080": try OriginServer("https://10.0.0.2"),
                ])
        } _: { setting in
            func status(_ host: String) async throws -> Int {
                try await exchange(setting.port, "GET / HTTP/1.1\r\nHost: \(host)\r\n\r\n").status
            }
            try await #expect(status("a.example") == 200)
            try await #expect(status("A.Example:1234") == 200)
            try await #expect(status("b.example:8080") == 200)
            try await #expect(status("b.example") == 421)
            try await #expect(status("c.example") == 421)
            let list = sent.list.withLock { $0 }
            #expect(list.map(\.destination?.host) == ["10.0.0.1", "10.0.0.1", "10.0.0.2"])
            #expect(list.map(\.destination?.port) == [81, 81, 443])
            #expect(list.map(\.destination?.scheme) == ["http", "http", "https"])
            #expect(list.map(\.authority) == ["a.example", "A.Example:1234", "b.example:8080"])
        }
    }

    /// HTTP/1.0 has no `Host` that a client has to send: the request is for the only server there is.
    @Test func aRequestWithoutAHostIsForTheOriginOfAllHosts() async throws {
        let sent = Sent()
        try await withGateway(transport: sent.transport()) {
            $0.routes = Routes(otherwise: try OriginServer("http://10.0.0.1:81"))
        } _: { setting in
            for request in ["GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: 10.0.0.1:81\r\n\r\n"] {
                let response = try await exchange(setting.port, request)
                #expect(response.status == 200 && response.text == "10.0.0.1:81")
            }
            #expect(sent.list.withLock { $0.map(\.authority) } == ["10.0.0.1:81"])
            // "any HTTP/1.1 request message that lacks a Host header field": RFC 9112 section 3.2.
            try await #expect(exchange(setting.port, "GET / HTTP/1.1\r\n\r\n").status == 400)
        }
        try await withGateway(transport: sent.transport()) {
            $0.routes = Routes(hosts: ["a.example": try OriginServer("http://10.0.0.1:81")])
        } _: { setting in
            try await #expect(exchange(setting.port, "GET / HTTP/1.0\r\n\r\n").status == 400)
        }
    }

    /// What one host's origin said is not another host's answer.
    @Test func hostsDoNotShareWhatIsStored() async throws {
        let sent = Sent()
        try await withGateway(transport: sent.transport()) { setting in
            for _ in 0..<2 {
                for host in ["a.example", "b.example"] {
                    let response = try await exchange(setting.port, "GET / HTTP/1.1\r\nHost: \(host)\r\n\r\n")
                    #expect(response.text == host)
                }
            }
            #expect(sent.list.withLock { $0.count } == 2)
        }
    }

    @Test func anOriginMayBeCalledByItsOwnName() async throws {
        let sent = Sent()
        try await withGateway(transport: sent.transport()) {
            $0.routes = Routes(otherwise: try OriginServer("http://origin.internal:8080"), passesHost: false)
        } _: { setting in
            try await #expect(exchange(setting.port, get("/")).text == "origin.internal:8080")
            #expect(sent.list.withLock { $0[0].destination } == nil)
        }
    }

    @Test func aForwardProxyTakesWholeURLs() async throws {
        let sent = Sent()
        try await withGateway(transport: sent.transport()) {
            $0.routes = Routes(allowsForwarding: true)
        } _: { setting in
            // The target goes before Host (RFC 9112 section 3.2.2).
            let text = "GET http://other.example:81/x?y HTTP/1.1\r\nHost: ignored.example\r\n\r\n"
            try await #expect(exchange(setting.port, text).text == "other.example:81")
            #expect(sent.list.withLock { $0[0].destination } == nil)
            try await #expect(exchange(setting.port, get("/x")).status == 400)
            try await #expect(exchange(setting.port, get("ftp://other.example/")).status == 400)
        }
    }

    @Test func contradictionsAreFoundAtTheStart() async throws {
        for change in [
            { $0.routes = Routes(otherwise: try OriginServer("http://a"), allowsForwarding: true) },
            { $0.port = nil }, { $0.eventLoops = 0 },
        ] as [(inout GatewayConfiguration) throws -> Void] {
            await #expect(throws: GatewayError.self) {
                try await withGateway(transport: ScriptedTransport { _ in .text("") }, change) { _ in }
            }
        }
        for url in [
            "example.org", "ftp://example.org", "http://", "http://a/path", "http://a:99999", "http://u@a",
            "http://a:b",
        ] {
            #expect(throws: GatewayError.self) { try OriginServer(url) }
        }
        #expect(try OriginServer("HTTPS://Example.org/") == OriginServer("https://example.org:443"))
    }

    @Test(arguments: ["1.1 test-gateway", "1.0 other, 1.1 test-gateway (comment)", "1.1 other, HTTP/1.1 test-gateway"])
    func aRequestThatWasHereBeforeIsALoop(_ via: String) async throws {
        let sent = Sent()
        try await withGateway(transport: sent.transport()) { setting in
            _ = try await exchange(setting.port, get("/"))
            try await #expect(exchange(setting.port, get("/", "Via: \(via)")).status == 508)
            try await #expect(exchange(setting.port, get("/", "Via: 1.1 test-gateway-2")).status == 200)
        }
    }

    @Test func maxForwardsCountsDown() async throws {
        let transport = ScriptedTransport { request in
            .text(request.head.headerFields[HTTPField.Name("Max-Forwards")!] ?? "none")
        }
        try await withGateway(transport: transport) { setting in
            func answer(_ method: String, _ value: String) async throws -> RawResponse {
                try await exchange(
                    setting.port, get("/", "Max-Forwards: \(value)", "Cookie: secret", "X: y", method: method))
            }
            for method in ["TRACE", "OPTIONS"] {
                try await #expect(answer(method, "2").text == "1")
                try await #expect(answer(method, "1").text == "0")
                try await #expect(answer(method, "99999999999999999999").text == "255")
            }
            try await #expect(answer("POST", "0").text == "0", "other methods are not counted")
            let traced = try await answer("TRACE", "0")
            #expect(traced.status == 200)
            #expect(traced["Content-Type"] == "message/http")
            #expect(traced.text.contains("X: y\r\n"))
            #expect(!traced.text.contains("secret"))
            let options = try await answer("OPTIONS", "0")
            #expect(options["Allow"]?.contains("GET") == true)
            #expect(transport.requests.count == 7)
        }
    }
}
