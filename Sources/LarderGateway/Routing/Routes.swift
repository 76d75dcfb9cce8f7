/// Where a gateway sends requests, by the host that they are for.
///
/// The host decides, and nothing else: whatever is stored under a URL came from the server that the URL is routed to.
public struct Routes: Sendable, Hashable {
    /// Reverse proxy: origins by host, in lower case, with a port (`example.org:8080`) or without, for any port.
    public var hosts: [String: OriginServer]
    /// Reverse proxy: the origin for all other hosts. Default: nil.
    public var otherwise: OriginServer?
    /// Forward proxy: requests whose target is a whole URL, of a host that has no origin here, go where the URL says.
    /// Makes no sense together with ``otherwise``. Default: false.
    public var allowsForwarding: Bool
    /// Whether an origin gets the client's `Host`; false sends it the name it has here. Default: true.
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
