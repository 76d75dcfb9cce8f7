import Larder
import LarderGateway
import LarderHTTP
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
