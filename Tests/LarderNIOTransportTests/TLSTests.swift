import HTTPTypes
import LarderHTTP
import LarderNIOTransport
import NIOSSL
import Testing

struct TLSTests {
    private static let script: ScriptedServer.Script = { peer in
        while true {
            _ = try await peer.head()
            try await peer.write("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n\(peer.index)")
        }
    }

    /// Sends two requests, one after the other.
    private func send(
        _ server: ScriptedServer, host: String, _ configuration: NIOTransport.Configuration
    ) async throws -> String {
        let head = HTTPRequest(method: .get, scheme: "https", authority: "\(host):\(server.port)", path: "/")
        return try await withTransport(configuration) { transport in
            let first = try await transport.text(TransportRequest(head: head))
            return first + (try await transport.text(TransportRequest(head: head)))
        }
    }

    private func error(_ body: () async throws -> String) async -> TransportError? {
        do {
            let text = try await body()
            Issue.record("the server was talked to: \(text)")
            return nil
        } catch {
            #expect(error is TransportError)
            return error as? TransportError
        }
    }

    /// By address, and by name; the connection is used again.
    @Test(arguments: [("127.0.0.1", TestCertificate.address), ("localhost", .names)])
    func aTrustedServerIsTalkedTo(host: String, certificate: TestCertificate) async throws {
        try await ScriptedServer.run(certificate: certificate, script: Self.script) { server in
            let text = try await send(server, host: host, .init(tls: TestCertificate.client()))
            #expect(text == "00")
        }
    }

    @Test func aServerThatNobodyKnowsIsRefused() async throws {
        try await ScriptedServer.run(certificate: .names, script: Self.script) { server in
            let error = await error { try await send(server, host: "localhost", .init()) }
            #expect(error?.code == .cannotConnect)
            #expect(error?.mayHaveBeenSeen == false)
            #expect(error?.connectFailure == .tls)
            #expect(
                error?.message
                    == "cannot connect to localhost:\(server.port): TLS failed: the certificate is not trusted")
        }
    }

    /// A handshake may be over before the task that asked for the connection continues, as on a machine that is busy.
    @Test func eachFailureOfTLSSaysSo() async throws {
        // Other roots than the system's: those take long to read, and threads of the pool would wait for them.
        var tls = NIOTransport.Configuration.defaultTLS
        tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(Array(TestCertificate.names.rawValue.utf8)))
        let configuration = NIOTransport.Configuration(tls: tls)
        try await ScriptedServer.run(certificate: .address, script: Self.script) { server in
            try await withTransport(configuration) { transport in
                for _ in 0..<12 {
                    let errors = await withTaskGroup(of: TransportError?.self) { group in
                        for _ in 0..<16 {
                            group.addTask {
                                await failure { () throws(TransportError) in
                                    try await transport.send(get(server, scheme: "https"))
                                }
                            }
                        }
                        return await group.reduce(into: []) { $0.append($1) }
                    }
                    let others = errors.filter { $0?.connectFailure != .tls }.map { $0?.message ?? "none" }
                    #expect(others.isEmpty)
                }
            }
        }
    }

    @Test(
        arguments: [
            ("127.0.0.1", "origin.test", true), ("127.0.0.1", "other.test", false), ("127.0.0.1", nil, false),
            ("localhost", nil, true), ("localhost", "other.test", false),
        ] as [(String, String?, Bool)])
    func theCertificateHasToBeForTheName(host: String, serverName: String?, isRight: Bool) async throws {
        try await ScriptedServer.run(certificate: .names, script: Self.script) { server in
            let configuration = NIOTransport.Configuration(tls: try TestCertificate.client()) { _, _ in
                NIOTransport.Endpoint(host: host, port: server.port, isTLS: true, serverName: serverName)
            }
            if isRight {
                let text = try await send(server, host: "a.example", configuration)
                #expect(text == "00")
            } else {
                let error = await error { try await send(server, host: "a.example", configuration) }
                #expect(error?.code == .cannotConnect)
                #expect(error?.mayHaveBeenSeen == false)
            }
        }
    }

    /// RFC 8996: TLS 1.0 and 1.1 must not be used.
    @Test(arguments: [(TLSVersion.tlsv11, false), (.tlsv12, true)])
    func oldVersionsAreRefused(newest: TLSVersion, isTalkedTo: Bool) async throws {
        let tls: (inout TLSConfiguration) -> Void = {
            $0.minimumTLSVersion = .tlsv1
            $0.maximumTLSVersion = newest
        }
        try await ScriptedServer.run(certificate: .names, tls: tls, script: Self.script) { server in
            let configuration = NIOTransport.Configuration(tls: try TestCertificate.client())
            if isTalkedTo {
                let text = try await send(server, host: "localhost", configuration)
                #expect(text == "00")
            } else {
                let error = await error { try await send(server, host: "localhost", configuration) }
                #expect(error?.code == .cannotConnect)
            }
        }
        #expect(NIOTransport.Configuration().tls.minimumTLSVersion == .tlsv12)
    }

    @Test func aServerWithoutTLSIsRefused() async throws {
        try await ScriptedServer.run { peer in
            try await peer.write("HTTP/1.1 400 Bad Request\r\n\r\n")
        } _: { server in
            let configuration = NIOTransport.Configuration(tls: try TestCertificate.client())
            let error = await error { try await send(server, host: "localhost", configuration) }
            #expect(error?.code == .cannotConnect)
            #expect(error?.mayHaveBeenSeen == false)
        }
    }

    @Test func trustRootsThatCannotBeReadAreReported() async throws {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .file("/nonexistent/roots.pem")
        let configuration = NIOTransport.Configuration(tls: tls)
        try await ScriptedServer.run(script: Self.script) { server in
            let error = await error { try await send(server, host: "localhost", configuration) }
            #expect(error?.code == .cannotConnect)
            #expect(error?.mayHaveBeenSeen == false)
            // http still works.
            let text = try await withTransport(configuration) { try await $0.text(get(server)) }
            #expect(text.count == 1)
        }
    }
}
