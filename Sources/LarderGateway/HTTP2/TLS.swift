import NIOSSL

/// The server's side of TLS.
enum TLS {
    static func context(_ settings: GatewayTLS) throws(GatewayError) -> NIOSSLContext {
        do {
            let chain = try NIOSSLCertificate.fromPEMFile(settings.certificateFile).map {
                NIOSSLCertificateSource.certificate($0)
            }
            var configuration = TLSConfiguration.makeServerConfiguration(
                certificateChain: chain,
                privateKey: .privateKey(try NIOSSLPrivateKey(file: settings.keyFile, format: .pem)))
            configuration.applicationProtocols = settings.allowsHTTP2 ? ["h2", "http/1.1"] : ["http/1.1"]
            return try NIOSSLContext(configuration: configuration)
        } catch {
            throw fault(of: settings)
        }
    }
}
