import LarderServer

/// The origins that a gateway sends requests to, by host.
///
/// Only the host decides: every response stored under a URL came from the server that the URL is routed to.
public struct Routes: Sendable, Hashable {
    /// Reverse proxy: origins by host, in lower case, with a port (`example.org:8080`) or without, for any port.
    public var hosts: [String: OriginServer]
    /// Reverse proxy: the origin for all other hosts. Default: nil.
    public var otherwise: OriginServer?
    /// Forward proxy: a request whose target is a whole URL goes to the host in that URL, if no origin is set for this
    /// host. Makes no sense together with ``otherwise``. Default: false.
    public var allowsForwarding: Bool
    /// Passes the client's `Host` on to an origin. False sends the name that the origin has here. Default: true.
    public var passesHost: Bool

    /// Makes routes. Each parameter sets the property of its name, and has the default that the property states.
    public init(
        hosts: [String: OriginServer] = [:], otherwise: OriginServer? = nil, allowsForwarding: Bool = false,
        passesHost: Bool = true
    ) {
        self.hosts = hosts
        self.otherwise = otherwise
        self.allowsForwarding = allowsForwarding
        self.passesHost = passesHost
    }

    /// The origin for a host; nil where the host has none.
    func origin(for authority: String) -> OriginServer? {
        if hosts.isEmpty { return otherwise }
        let name = authority.lowercased()
        if let origin = hosts[name] { return origin }
        if let host = Authority.split(name)?.host, let origin = hosts[host] { return origin }
        return otherwise
    }
}
