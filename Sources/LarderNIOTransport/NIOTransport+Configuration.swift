import HTTPWire
import NIOCore
import NIOPosix
import NIOSSL

extension NIOTransport {
    /// The settings of a transport.
    public struct Configuration: Sendable {
        /// The event loops of the connections. Default: the process's own, which never end.
        public var eventLoopGroup: any EventLoopGroup
        /// Connections to one endpoint at the same time, idle ones included. 1 or more; default: 64. Further requests
        /// wait in order for one of them, no longer than `Timeouts.connect`.
        public var connectionsPerHost: Int
        /// Requests that may wait for a connection to one endpoint. Default: 1,024. A request beyond that fails
        /// immediately with `TransportError.Code.overloaded`.
        public var waitingPerHost: Int
        /// How long a connection is kept for the next request. Zero: connections are never used again. Default: 4 s,
        /// less than the 5 s after which common servers close theirs.
        public var idleTimeout: Duration
        /// Largest head of a response in bytes. The head may have one field for each 256 of them, and 256 in any case.
        /// Default: 64 KiB. A larger one fails with `TransportError.Code.responseTooLarge`.
        public var maximumHeadBytes: Int
        /// Trust roots, verification, versions, a client certificate. Default: ``defaultTLS``.
        public var tls: TLSConfiguration
        /// True offers HTTP/2 (RFC 9113) to servers on connections with TLS. One connection to such a server carries as
        /// many requests at the same time as the server allows; see ``http2ConnectionsPerHost``. Default: false.
        public var http2: Bool
        /// Connections to one server that speaks HTTP/2. Another one is opened when all streams of the others are
        /// taken, so that a few slow answers do not hold up all others; further requests wait as for a connection. 1 or
        /// more; default: 8. RFC 9113 section 9.1 recommends one, for clients of a single user.
        public var http2ConnectionsPerHost: Int
        /// The proxy that connections are made through; nil for none. Default: nil.
        public var proxy: Proxy?
        /// Chooses the endpoint of a request; nil for the one that its scheme and authority name. Default: nil. A
        /// reverse proxy sends all requests to its origin, and `Host` stays as in the request. A request's own
        /// `TransportRequest.destination` takes precedence.
        public var route: (@Sendable (_ scheme: String, _ authority: String) -> Endpoint)?

        /// Makes a configuration. Each parameter sets the property of its name, and has the default that the property
        /// states.
        public init(
            eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton,
            connectionsPerHost: Int = 64, waitingPerHost: Int = 1024, idleTimeout: Duration = .seconds(4),
            maximumHeadBytes: Int = 64 << 10, tls: TLSConfiguration = Configuration.defaultTLS, http2: Bool = false,
            http2ConnectionsPerHost: Int = 8, proxy: Proxy? = nil,
            route: (@Sendable (_ scheme: String, _ authority: String) -> Endpoint)? = nil
        ) {
            self.eventLoopGroup = eventLoopGroup
            self.connectionsPerHost = connectionsPerHost
            self.waitingPerHost = waitingPerHost
            self.idleTimeout = idleTimeout
            self.maximumHeadBytes = maximumHeadBytes
            self.tls = tls
            self.http2 = http2
            self.http2ConnectionsPerHost = http2ConnectionsPerHost
            self.proxy = proxy
            self.route = route
        }

        /// The system's trust roots, certificate and name verified, TLS 1.2 or later: older versions are deprecated
        /// (RFC 8996). A start for custom settings.
        public static var defaultTLS: TLSConfiguration {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.minimumTLSVersion = .tlsv12
            return tls
        }
    }

    /// The other end of a connection.
    public struct Endpoint: Hashable, Sendable, CustomStringConvertible {
        /// A name, or an IPv4 or IPv6 address without brackets.
        public var host: String
        /// The port, from 0 to 65535.
        public var port: Int
        /// True if the connection is encrypted.
        public var isTLS: Bool
        /// The name that the certificate must be valid for; nil for the host's. Default: nil.
        public var serverName: String?

        /// Makes an endpoint. Each parameter sets the property of its name.
        public init(host: String, port: Int, isTLS: Bool = false, serverName: String? = nil) {
            self.host = host
            self.port = port
            self.isTLS = isTLS
            self.serverName = serverName
        }

        /// The form in a URL: `example.com:80`, `[::1]:443`.
        public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
    }
}
