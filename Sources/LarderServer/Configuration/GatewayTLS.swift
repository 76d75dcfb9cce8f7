/// The certificate for TLS.
public struct GatewayTLS: Sendable, Hashable {
    /// The port; 0 for a free one.
    public var port: Int
    /// The path of a PEM file with the certificate chain, the server's certificate first.
    public var certificateFile: String
    /// The path of a PEM file with the private key.
    public var keyFile: String
    /// Offers HTTP/2 (ALPN). Default: true.
    public var allowsHTTP2: Bool
    /// The oldest version of TLS that the gateway accepts. Default: 1.2.
    public var minimumVersion: Version
    /// Forwards requests over HTTP/2 for hosts without an origin, if `Routes.allowsForwarding` is set. False answers
    /// them with 421. HTTP/2 has one form for requests to a server and requests to a proxy (RFC 9113 section 8.3.1), so
    /// with this option every client of the port reaches every host that the gateway reaches. Default: false.
    public var allowsForwarding: Bool

    /// A version of TLS.
    public enum Version: Sendable, Hashable {
        /// RFC 5246.
        case tls12
        /// RFC 8446.
        case tls13
    }

    /// Describes a TLS port. Files are read when the gateway starts, not here.
    ///
    /// Each parameter sets the property of its name, and has the default that the property states.
    public init(
        port: Int = 0, certificateFile: String, keyFile: String, allowsHTTP2: Bool = true,
        minimumVersion: Version = .tls12, allowsForwarding: Bool = false
    ) {
        self.port = port
        self.certificateFile = certificateFile
        self.keyFile = keyFile
        self.allowsHTTP2 = allowsHTTP2
        self.minimumVersion = minimumVersion
        self.allowsForwarding = allowsForwarding
    }
}
