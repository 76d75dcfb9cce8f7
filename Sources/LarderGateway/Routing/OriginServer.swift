import LarderServer

/// A server that requests are sent to.
public struct OriginServer: Sendable, Hashable {
    /// `http` or `https`.
    public let scheme: String
    /// Name or address; IPv6 addresses in brackets.
    public let host: String
    /// The port.
    public let port: Int

    /// Reads a URL.
    ///
    /// - Parameter url: such as `http://host` or `https://host:port`.
    /// - Throws: ``GatewayError/Code/invalidArgument`` for anything else, a path, a query or user information included.
    public init(_ url: String) throws(GatewayError) {
        func invalid(_ why: String) -> GatewayError {
            GatewayError(.invalidArgument, "the origin '\(url)' \(why): give a URL such as http://127.0.0.1:8080")
        }
        guard let colon = url.firstRange(of: "://") else { throw invalid("has no scheme") }
        scheme = url[..<colon.lowerBound].lowercased()
        guard scheme == "http" || scheme == "https" else { throw invalid("is neither http nor https") }
        var authority = url[colon.upperBound...]
        if authority.hasSuffix("/") { authority.removeLast() }
        guard !authority.contains(where: { "/?#@ ".contains($0) }) else { throw invalid("has more than host and port") }
        guard let parts = Authority.split(authority) else { throw invalid("has no valid host or port") }
        host = parts.host
        port = parts.port ?? (scheme == "https" ? 443 : 80)
    }

    /// Host, and port unless it is the scheme's own.
    var authority: String { port == (scheme == "https" ? 443 : 80) ? host : "\(host):\(port)" }
}
