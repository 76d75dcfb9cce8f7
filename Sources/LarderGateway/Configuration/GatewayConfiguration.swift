import LarderServer

/// How a ``Gateway`` listens, where it sends requests, and what it allows.
///
/// The properties of ``server`` can be read and set without its name: `configuration.port = 8080`.
@dynamicMemberLookup
public struct GatewayConfiguration: Sendable {
    /// Addresses, TLS, limits, the access log and the admin server. Default: HTTP/1.1 on a free port of 127.0.0.1.
    public var server = ServerConfiguration()
    /// Where requests go.
    public var routes = Routes()
    /// The rules for CONNECT. Default: refused.
    public var tunnels = TunnelPolicy()
    /// The rules for PURGE. Default: allowed from loopback.
    public var purging = PurgePolicy()

    /// A gateway without an origin, on a free port of 127.0.0.1.
    public init() {}

    /// A property of ``server``.
    public subscript<Value>(dynamicMember path: WritableKeyPath<ServerConfiguration, Value>) -> Value {
        get { server[keyPath: path] }
        set { server[keyPath: path] = newValue }
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
