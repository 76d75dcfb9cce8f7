import Logging

/// How an HTTP server listens, and what it allows its clients.
public struct ServerConfiguration: Sendable {
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
    /// Limits on the resources that clients can use.
    public var limits = GatewayLimits()
    /// The access log. Default: nil, none.
    public var accessLog: AccessLogConfiguration?
    /// The number of event loops, each on its own thread. Default: nil, one for each core.
    public var eventLoops: Int?
    /// The logger for problems. Default: a logger labelled `larder.gateway`.
    public var logger = Logger(label: "larder.gateway")
    /// The clock for time limits. Tests replace it.
    package var time: any ServerTime = SystemTime()

    /// HTTP/1.1 on a free port of 127.0.0.1.
    public init() {}
}
