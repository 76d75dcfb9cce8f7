import Logging

/// How a ``Gateway`` listens, where it sends requests, and what it allows.
public struct GatewayConfiguration: Sendable {
    /// The address to listen on. Default: 127.0.0.1.
    public var host = "127.0.0.1"
    /// The port for HTTP/1.1 without TLS; 0 for a free one, nil for none. Default: 0.
    public var port: Int? = 0
    /// TLS with HTTP/2 and HTTP/1.1 on a port of its own. Default: nil, none.
    public var tls: GatewayTLS?
    /// The address of the admin server. Default: 127.0.0.1.
    public var adminHost = "127.0.0.1"
    /// The port of the admin server (`/metrics`, `/healthz`, `/`); 0 for a free one. Default: nil, no admin server.
    public var adminPort: Int?
    /// Where requests go.
    public var routes = Routes()
    /// What a client may use up.
    public var limits = GatewayLimits()
    /// CONNECT. Default: refused.
    public var tunnels = TunnelPolicy()
    /// PURGE. Default: from loopback.
    public var purging = PurgePolicy()
    /// The access log. Default: nil, none.
    public var accessLog: AccessLogConfiguration?
    /// The number of event loops, each on a thread of its own. Default: nil, one for each core.
    public var eventLoops: Int?
    /// Memory for stored bodies that lie in files of their own and are asked for again and again, in bytes, for all
    /// event loops together; 0 for none. What is not asked for leaves it within seconds. Default: 32 MiB.
    public var hotBodyBytes = 32 << 20
    /// Where the gateway tells of trouble. Default: a logger labelled `larder.gateway`.
    public var logger = Logger(label: "larder.gateway")
    /// What limits in time are measured with. Tests replace it.
    package var time: any GatewayTime = SystemTime()

    /// A gateway without an origin, on a free port of 127.0.0.1.
    public init() {}
}

/// The certificate for TLS.
public struct GatewayTLS: Sendable, Hashable {
    /// The port; 0 for a free one.
    public var port: Int
    /// The path of a PEM file with the certificate and those that it depends on, the server's first.
    public var certificateFile: String
    /// The path of a PEM file with the private key.
    public var keyFile: String
    /// Whether HTTP/2 is offered (ALPN). Default: true.
    public var allowsHTTP2: Bool
    /// The oldest version of TLS that is spoken. Default: 1.2.
    public var minimumVersion: Version
    /// Whether requests over HTTP/2 for hosts without an origin are forwarded, where ``Routes/allowsForwarding`` is
    /// set; 421 otherwise. HTTP/2 has one form for requests to a server and requests to a proxy (RFC 9113 section
    /// 8.3.1), so with this every client of the port reaches every host that the gateway reaches. Default: false.
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

/// Whether CONNECT makes tunnels (RFC 9110 section 9.3.6).
public struct TunnelPolicy: Sendable, Hashable {
    /// Default: false. A gateway that tunnels for every client that can reach it is an open proxy.
    public var isAllowed: Bool
    /// The ports that may be connected to. Default: 443.
    public var ports: Set<Int>
    /// How long a connection may take. Default: 10 s.
    public var connectTimeout: Duration

    /// Makes a policy. Each parameter sets the property of its name, and has the default that the property states.
    public init(isAllowed: Bool = false, ports: Set<Int> = [443], connectTimeout: Duration = .seconds(10)) {
        self.isAllowed = isAllowed
        self.ports = ports
        self.connectTimeout = connectTimeout
    }
}

/// Who may remove stored responses with PURGE.
///
/// `PURGE` of a URL removes what is stored for it. With a field `Purge-Prefix` (a URL, or a path on the request's host)
/// it removes everything whose URL starts so, with `Purge-Tag` everything that has one of the tags, with `Purge-Group`
/// what belongs to a cache group (RFC 9875) of the request's host.
public struct PurgePolicy: Sendable, Hashable {
    /// Whether PURGE is the gateway's; false forwards it like any other method. Default: true.
    public var isEnabled: Bool
    /// Clients on a loopback address may. Set it to false if another proxy on this machine is in front. Default: true.
    public var allowsLoopback: Bool
    /// Clients with `Authorization: Bearer` and this token may, from anywhere. Default: nil, none.
    public var token: String?

    /// Makes a policy. Each parameter sets the property of its name, and has the default that the property states.
    public init(isEnabled: Bool = true, allowsLoopback: Bool = true, token: String? = nil) {
        self.isEnabled = isEnabled
        self.allowsLoopback = allowsLoopback
        self.token = token
    }
}
