import NIOSSL

/// The certificate of an origin with TLS.
public struct OriginCertificate: Sendable {
    /// The certificate, followed by those that it depends on: PEM.
    public var certificatePEM: String
    /// The private key: PEM.
    public var keyPEM: String

    /// Describes a certificate; it is read when an origin starts.
    /// - Parameters:
    ///   - certificatePEM: the certificate, followed by those that it depends on.
    ///   - keyPEM: its private key.
    public init(certificatePEM: String, keyPEM: String) {
        self.certificatePEM = certificatePEM
        self.keyPEM = keyPEM
    }

    /// A self-signed certificate for `localhost`, `example.org` and 127.0.0.1, valid from 2026 to 2126. Its key is
    /// public: use it only for tests. Let the client trust ``certificatePEM``.
    ///
    /// Made with
    /// `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500 -subj /CN=localhost`.
    public static let local = OriginCertificate(
        certificatePEM: """
            -----BEGIN CERTIFICATE-----
            MIIBqDCCAU6gAwIBAgIUCS+RnQG5SmsyioxdLZ4mXNuWDj8wCgYIKoZIzj0EAwIw
            FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTE0NTgyOVoYDzIxMjYxMDI4
            MTQ1ODI5WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
            PQMBBwNCAATT931YoFasofSy4qnJ5XFAl7qYcq007qVLfkmYu+mkWJDFsM5siNSd
            rwvqqUzdzLzMGDGgd2xZfgXqi89LzcZMo3wwejAdBgNVHQ4EFgQUlY+VfxgHVrdb
            gDCJhiotLlbrlt8wHwYDVR0jBBgwFoAUlY+VfxgHVrdbgDCJhiotLlbrlt8wDwYD
            VR0TAQH/BAUwAwEB/zAnBgNVHREEIDAegglsb2NhbGhvc3SCC2V4YW1wbGUub3Jn
            hwR/AAABMAoGCCqGSM49BAMCA0gAMEUCIBd5Ckccr6SsZIS1B8/I9YmIlG0SrCRW
            rRl/06pM7YtmAiEAg0Qutf0zOFT15hSoBvO+fEIl5vQ3TfBSvpmUNDBwt2A=
            -----END CERTIFICATE-----

            """,
        keyPEM: """
            -----BEGIN PRIVATE KEY-----
            MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg0AsthH+MemWpGsBn
            P73mEZr1a0zl0K9e4U3HX8G61GGhRANCAATT931YoFasofSy4qnJ5XFAl7qYcq00
            7qVLfkmYu+mkWJDFsM5siNSdrwvqqUzdzLzMGDGgd2xZfgXqi89LzcZM
            -----END PRIVATE KEY-----

            """)

    /// The TLS configuration of connections. Throws NIOSSL's error for text that is not PEM.
    func context() throws -> NIOSSLContext {
        let chain = try NIOSSLCertificate.fromPEMBytes(Array(certificatePEM.utf8))
        let key = try NIOSSLPrivateKey(bytes: Array(keyPEM.utf8), format: .pem)
        return try NIOSSLContext(
            configuration: .makeServerConfiguration(
                certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key)))
    }
}
