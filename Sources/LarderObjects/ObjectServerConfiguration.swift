import Larder
import LarderServer
import Logging

/// The addresses, access rights and promises of an ``ObjectServer``.
public struct ObjectServerConfiguration: Sendable {
    /// Addresses, TLS, limits, the access log and the admin server. Default: HTTP/1.1 on a free port of
    /// 127.0.0.1, and objects of up to 16 GiB.
    public var connections: ServerConfiguration
    /// The access rights. Default: every client may read and write everything.
    public var access = ObjectAccess()
    /// The time for which displacement does not remove a blob after the server has reported it: with a hit of an action
    /// result that names it, a HEAD, or an upload. The budget counts such blobs; if nothing else is left to displace,
    /// uploads fail with 507. Zero: blobs are not kept. 0 to 15 days; default: 3 hours, which Bazel and Buck2 rely on.
    public var promiseTime = Duration.seconds(10_800)
    /// Replaces the result of an action when a client uploads another one. Default: false, the first result stays as
    /// long as its blobs exist.
    public var replacesResults = false

    /// The defaults.
    public init() {
        connections = ServerConfiguration()
        connections.limits.bodyBytes = 16 << 30
        connections.logger = Logger(label: "larder.objects")
    }
}
