import HTTPTypes
import LarderHTTP
import LarderNIOTransport
import NIOSSL
import TestOrigin
import Testing

/// An origin with TLS.
struct TLSTests {
    private func transport() throws -> NIOTransport {
        var tls = NIOTransport.Configuration.defaultTLS
        let pem = OriginCertificate.local.certificatePEM
        tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(Array(pem.utf8)))
        return NIOTransport(NIOTransport.Configuration(tls: tls))
    }

    @Test func scriptsWorkOverTLS() async throws {
        let origin = try await TestOrigin.start(certificate: .local) { .ok("for \($0.path)") }
        #expect(origin.isTLS && origin.url.hasPrefix("https://127.0.0.1:"))
        let transport = try transport()
        for path in ["/a", "/b"] {
            let head = HTTPRequest(method: .get, scheme: "https", authority: origin.authority, path: path)
            let response = try await transport.send(TransportRequest(head: head))
            var body: [UInt8] = []
            while let piece = try await response.body.next() { body += piece }
            #expect(String(decoding: body, as: UTF8.self) == "for \(path)")
        }
        #expect(origin.requests.map(\.connection) == [1, 1])
        await transport.close()
        await origin.stop()
    }

    @Test func aCertificateThatIsNoneIsAnError() async {
        await #expect(throws: (any Error).self) {
            _ = try await TestOrigin.start(certificate: OriginCertificate(certificatePEM: "x", keyPEM: "y"))
        }
    }
}
