import Logging

/// How a ``Gateway`` listens, where it sends requests, and what it allows.
public struct GatewayConfiguration: Sendable {
    /// The address to listen on. Default: 127.0.0.1.
    public var host = "127.0.0.1"
    /// The port for HTTP/1.1 without TLS; 0 for a free one, nil for none. Default: 0.
    public var port: Int? = 0
    /// TLS with HTTP/2 and HTTP/1.1, on a separate port. Default: nil, none.
    public var tls: GatewayTLS?
    /// The address of the admin server. Default: 127.0.0.1.
    public var adminHost = "127.0.0.1"
    /// The port of the admin server (`/metrics`, `/healthz`, `/`); 0 for a free one. Default: nil, no admin server.
    public var adminPort: Int?
    /// Where requests go.
    public var routes = Routes()
    /// Limits on the resources that clients can use.
    public var limits = GatewayLimits()
    /// The rules for CONNECT. Default: refused.
    public var tunnels = TunnelPolicy()
    /// The rules for PURGE. Default: allowed from loopback.
    public var purging = PurgePolicy()
    /// The access log. Default: nil, none.
    public var accessLog: AccessLogConfiguration?
    /// The number of event loops, each on its own thread. Default: nil, one for each core.
    public var eventLoops: Int?
    /// Memory for frequently requested bodies that are stored in separate files, in bytes, for all event loops
    /// together; 0 for none. A body that is no longer requested leaves this memory within seconds. Default: 32 MiB.
    public var hotBodyBytes = 32 << 20
    /// The logger for problems. Default: a logger labelled `larder.gateway`.
    public var logger = Logger(label: "larder.gateway")
    /// The clock for time limits. Tests replace it.
    package var time: any GatewayTime = SystemTime()

    /// A gateway without an origin, on a free port of 127.0.0.1.
    public init() {}
}

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
    /// Forwards requests over HTTP/2 for hosts without an origin, if ``Routes/allowsForwarding`` is set. False answers
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

/// The rules for tunnels made by CONNECT (RFC 9110 section 9.3.6).
public struct TunnelPolicy: Sendable, Hashable {
    /// Allows tunnels. Default: false. A gateway that tunnels for every client that can reach it is an open proxy.
    public var isAllowed: Bool
    /// The ports that tunnels may connect to. Default: 443.
    public var ports: Set<Int>
    /// The longest time that connecting may take. Default: 10 s.
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
/// `PURGE` of a URL removes everything stored for it. With a field `Purge-Prefix` (a URL, or a path on the request's
/// host) it removes everything whose URL starts with this prefix, with `Purge-Tag` everything that has one of the tags,
/// and with `Purge-Group` everything that belongs to a cache group (RFC 9875) of the request's host.
public struct PurgePolicy: Sendable, Hashable {
    /// Handles PURGE in the gateway. False forwards it like any other method. Default: true.
    public var isEnabled: Bool
    /// Allows clients on a loopback address. Set it to false if another proxy on this machine is in front. Default:
    /// true.
    public var allowsLoopback: Bool
    /// Allows clients with `Authorization: Bearer` and this token, from any address. Default: nil, none.
    public var token: String?

    /// Makes a policy. Each parameter sets the property of its name, and has the default that the property states.
    public init(isEnabled: Bool = true, allowsLoopback: Bool = true, token: String? = nil) {
        self.isEnabled = isEnabled
        self.allowsLoopback = allowsLoopback
        self.token = token
    }
}
