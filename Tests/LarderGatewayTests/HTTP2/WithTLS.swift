import HTTPTestSupport
import Larder
import LarderGateway
import LarderHTTP
import NIOSSL
import TestSupport

/// Runs `body` with a gateway that listens for TLS too, and the port.
func withTLS(
    _ transport: any Transport, compression: Compression = .off,
    _ change: (inout GatewayConfiguration) throws -> Void = { _ in },
    caching: (inout HTTPCacheConfiguration) -> Void = { _ in }, _ body: (Setting, Int) async throws -> Void
) async throws {
    try await withDirectory { directory in
        let files = try TestCertificate.write(to: directory)
        try await withGateway(transport: transport, compression: compression) {
            $0.tls = GatewayTLS(certificateFile: files.certificate, keyFile: files.key)
            try change(&$0)
        } caching: {
            caching(&$0)
        } _: { setting in
            try await body(setting, setting.gateway.tlsAddress?.port ?? 0)
        }
    }
}

extension RawClient {
    /// A client that speaks HTTP/1.1 over TLS, and takes any certificate.
    static func connectSecurely(to port: Int, receiveBuffer: Int? = nil) async throws -> RawClient {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.certificateVerification = .none
        let context = try NIOSSLContext(configuration: tls)
        return try await connect(to: port, receiveBuffer: receiveBuffer) { channel in
            try channel.pipeline.syncOperations.addHandler(
                NIOSSLClientHandler(context: context, serverHostname: "localhost"))
        }
    }
}
