import NIOSSL

/// The server's side of TLS.
enum TLS {
    /// For TLS 1.2: those that HTTP/2 may be spoken over (RFC 9113 section 9.2.2), as a client may choose it with any. All have
    /// an ephemeral key exchange and authenticated encryption. TLS 1.3 has no others.
    private static let cipherSuites = "ECDHE+AESGCM:ECDHE+CHACHA20"

    static func context(_ settings: GatewayTLS) throws(GatewayError) -> NIOSSLContext {
        do {
            let chain = try NIOSSLCertificate.fromPEMFile(settings.certificateFile).map {
                NIOSSLCertificateSource.certificate($0)
            }
            var configuration = TLSConfiguration.makeServerConfiguration(
                certificateChain: chain,
                privateKey: .privateKey(try NIOSSLPrivateKey(file: settings.keyFile, format: .pem)))
            // RFC 8996 retires TLS 1.0 and 1.1.
            configuration.minimumTLSVersion = settings.minimumVersion == .tls13 ? .tlsv13 : .tlsv12
            configuration.cipherSuites = cipherSuites
            configuration.applicationProtocols = settings.allowsHTTP2 ? ["h2", "http/1.1"] : ["http/1.1"]
            return try NIOSSLContext(configuration: configuration)
        } catch {
            throw fault(of: settings)
        }
    }
}
