import HTTPTypes
import LarderHTTP
import TestSupport
import Testing

@testable import LarderNIOTransport

/// A proxy between the transport and its servers (RFC 9110 section 3.7).
struct ProxyTests {
    private static let answer = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"
    private static let credentials = NIOTransport.Proxy.Credentials(user: "Aladdin", password: "open sesame")

    private func configuration(
        _ proxy: ScriptedServer, exceptions: [String] = [], credentials: NIOTransport.Proxy.Credentials? = credentials
    ) throws -> NIOTransport.Configuration {
        .init(
            tls: try TestCertificate.client(),
            proxy: .init(host: "127.0.0.1", port: proxy.port, credentials: credentials, exceptions: exceptions))
    }

    private func request(
        _ url: String, authority: String = "a.example", _ path: String = "/p?q", fields: HTTPFields = [:]
    ) -> TransportRequest {
        TransportRequest(
            head: HTTPRequest(method: .get, scheme: url, authority: authority, path: path, headerFields: fields))
    }

    /// Answers everything, and notes the heads.
    private func script(_ log: Log, _ answer: String = answer) -> ScriptedServer.Script {
        { peer in
            while true {
                log.add(try await peer.head())
                try await peer.write(answer)
            }
        }
    }

    /// Joins a client to a server, as a proxy does.
    private func tunnels(to server: ScriptedServer, _ log: Log) -> ScriptedServer.Script {
        { peer in
            log.add(try await peer.head())
            try await peer.write("HTTP/1.1 200 Connection established\r\n\r\n")
            try await peer.join(port: server.port)
        }
    }

    @Test func plainRequestsGoWithTheirWholeURL() async throws {
        let log = Log()
        try await ScriptedServer.run(script: script(log)) { proxy in
            try await withTransport(configuration(proxy)) { transport in
                let stolen: HTTPFields = [.proxyAuthorization: "Basic c3RvbGVu", .accept: "*/*"]
                try await transport.send(request("http", fields: stolen), expecting: "x")
                // The connection serves all origins.
                try await transport.send(request("http", authority: "b.example:8080", "*"), expecting: "x")
            }
            #expect(proxy.connections == 1)
        }
        let field = "Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"
        #expect(
            log.lines == [
                "GET http://a.example/p?q HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\n\(field)\r\n",
                "GET http://b.example:8080 HTTP/1.1\r\nHost: b.example:8080\r\n\(field)\r\n",
            ])
    }

    /// The origin does not see what is sent to the proxy, and the connection through the proxy is kept.
    @Test(arguments: [false, true]) func secureRequestsGoThroughATunnel(http2: Bool) async throws {
        let (outer, inner) = (Log(), Log())
        try await ScriptedServer.run(certificate: .names, script: script(inner)) { origin in
            try await ScriptedServer.run(script: tunnels(to: origin, outer)) { proxy in
                var configuration = try configuration(proxy)
                configuration.http2 = http2
                try await withTransport(configuration) { transport in
                    let authority = "origin.test:\(origin.port)"
                    for _ in 0..<2 {
                        try await transport.send(
                            request("https", authority: authority, fields: [.proxyAuthorization: "Basic c3RvbGVu"]),
                            expecting: "x")
                    }
                    #expect(
                        outer.lines == [
                            "CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n"
                                + "Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n"
                        ])
                    let head = "GET /p?q HTTP/1.1\r\nHost: \(authority)\r\n\r\n"
                    #expect(inner.lines == [head, head])
                }
            }
        }
    }

    /// A proxy connects to where the URL says, which is not where this request goes.
    @Test func requestsWithADestinationGoThroughATunnel() async throws {
        let (outer, inner) = (Log(), Log())
        try await ScriptedServer.run(script: script(inner)) { origin in
            try await ScriptedServer.run(script: tunnels(to: origin, outer)) { proxy in
                try await withTransport(configuration(proxy, credentials: nil)) { transport in
                    var request = request("https")
                    request.destination = TransportDestination(scheme: "http", host: "10.0.0.1", port: 81)
                    try await transport.send(request, expecting: "x")
                }
            }
        }
        #expect(outer.lines == ["CONNECT 10.0.0.1:81 HTTP/1.1\r\nHost: 10.0.0.1:81\r\n\r\n"])
        #expect(inner.lines == ["GET /p?q HTTP/1.1\r\nHost: a.example\r\n\r\n"])
    }

    @Test func exceptionsAreConnectedToDirectly() async throws {
        let log = Log()
        try await ScriptedServer.run(script: script(log)) { server in
            let proxy = NIOTransport.Proxy(host: "nosuch.invalid", port: 1, exceptions: ["127.0.0.1"])
            try await withTransport(.init(proxy: proxy)) { transport in
                try await transport.send(get(server), expecting: "x")
            }
        }
        #expect(log.lines.first?.hasPrefix("GET / HTTP/1.1\r\n") == true)
    }

    @Test(arguments: [
        ("example.org", true), ("www.example.org", true), ("EXAMPLE.org", true), ("badexample.org", false),
        ("intern", true), ("x.intern", true), ("port.example", true), ("::1", true), ("::2", false), ("other", false),
    ]) func exceptionsAreHostsAndWhatIsBelowThem(host: String, isDirect: Bool) {
        let proxy = NIOTransport.Proxy(
            host: "proxy", port: 3_128, exceptions: ["example.org", ".intern", "port.example:8443", "::1", ""])
        #expect(proxy.serves(.init(host: host, port: 8_443)) != isDirect)
        #expect(proxy.serves(.init(host: "port.example", port: 443)))
        #expect(!NIOTransport.Proxy(host: "p", port: 1, exceptions: ["*"]).serves(.init(host: host, port: 1)))
    }

    /// For a plain request the proxy's answer is the answer.
    @Test func aRefusalOfThePlainRequestIsItsResponse() async throws {
        let refusal =
            "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 0\r\n\r\n"
        try await ScriptedServer.run(script: script(Log(), refusal)) { proxy in
            try await withTransport(configuration(proxy, credentials: nil)) { transport in
                let head = try await transport.send(request("http")).head
                #expect(head.status.code == 407)
                #expect(head.headerFields[.proxyAuthenticate] == "Basic realm=\"p\"")
            }
        }
    }

    /// What a proxy says to CONNECT is not the origin's answer.
    @Test(arguments: [
        ("HTTP/1.1 407 Proxy Authentication Required\r\nSet-Cookie: a=b\r\nContent-Length: 2\r\n\r\nno", "407"),
        ("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 503 Service Unavailable\r\n\r\n", "503"),
        ("SSH-2.0-x\r\n\r\n", "no valid answer"),
        ("", "closed the connection"),
    ]) func aTunnelThatIsRefusedIsAnError(bytes: String, text: String) async throws {
        try await ScriptedServer.run { peer in
            _ = try await peer.head()
            try await peer.write(bytes)
        } _: { proxy in
            try await withTransport(configuration(proxy)) { transport in
                let error = await failure { () throws(TransportError) in
                    try await transport.send(request("https"))
                }
                #expect(error?.code == .cannotConnect)
                #expect(error?.mayHaveBeenSeen == false)
                #expect(error?.message.contains(text) == true, "\(error?.message ?? "")")
                #expect(error?.message.contains("QWxh") == false)
                let endpoint = NIOTransport.Endpoint(host: "a.example", port: 443, isTLS: true)
                try await waitWhile { transport.pool.load(endpoint).places != 0 }
            }
        }
    }

    @Test func aTunnelThatDoesNotComeTimesOut() async throws {
        try await ScriptedServer.run { peer in
            _ = await peer.readToEnd()
        } _: { proxy in
            try await withTransport(configuration(proxy)) { transport in
                var request = request("https")
                request.timeouts.connect = .milliseconds(100)
                let error = await failure { [request] () throws(TransportError) in try await transport.send(request) }
                #expect(error?.code == .timedOut)
                #expect(error?.mayHaveBeenSeen == false)
            }
        }
    }

    @Test func credentialsAreNotPrinted() {
        let proxy = NIOTransport.Proxy(host: "p", port: 1, credentials: Self.credentials)
        #expect("\(proxy) \(Self.credentials)" == "p:1 credentials")
    }
}
