/// A server to connect to in place of the one that a request's target names.
public struct TransportDestination: Sendable, Hashable {
    /// `http` or `https`.
    public var scheme: String
    /// Name or address; IPv6 addresses in brackets.
    public var host: String
    /// The port.
    public var port: Int

    /// Names a server.
    ///
    /// - Parameters:
    ///   - scheme: `http` or `https`.
    ///   - host: a name or an address; IPv6 addresses in brackets.
    ///   - port: 1...65535.
    public init(scheme: String, host: String, port: Int) {
        self.scheme = scheme
        self.host = host
        self.port = port
    }
}
