import Larder
import LarderGateway
import Logging

/// How an ``ObjectServer`` listens, what it allows, and what it keeps.
public struct ObjectServerConfiguration: Sendable {
    /// Addresses, TLS, limits, the access log and the admin server. Its routes, tunnels and purging have no effect.
    /// Default: HTTP/1.1 on a free port of 127.0.0.1, and objects of up to 16 GiB.
    public var connections: GatewayConfiguration
    /// Who may read and write what. Default: every client everything.
    public var access = ObjectAccess()
    /// How long a blob is kept out of displacement once the server has said that it has it: with a hit of an action
    /// result that names it, a HEAD, or an upload. The budget counts such blobs; where nothing else is left to
    /// displace, uploads fail with 507. Zero: blobs are not kept. 0 to 15 days; default: 3 hours, which is what Bazel
    /// and Buck2 count on.
    public var promiseTime = Duration.seconds(10_800)
    /// Whether a later upload of the result of an action replaces the first. Default: false: the first one stays for as
    /// long as its blobs are there.
    public var replacesResults = false

    /// The defaults.
    public init() {
        connections = GatewayConfiguration()
        connections.limits.bodyBytes = 16 << 30
        connections.logger = Logger(label: "larder.objects")
    }
}
