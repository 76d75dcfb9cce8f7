import HTTPWire
import NIOCore
import NIOPosix
import NIOSSL

extension NIOTransport {
    /// How a transport connects.
    public struct Configuration: Sendable {
        /// Where connections live. Default: the process's own, which never ends.
        public var eventLoopGroup: any EventLoopGroup
        /// Connections to one endpoint at the same time, idle ones included. 1 or more; default: 64. Further requests wait
        /// in order for one of them, no longer than ``Timeouts/connect``.
        public var connectionsPerHost: Int
        /// Requests that may wait for a connection to one endpoint. Default: 1,024. A request beyond that fails at once
        /// with ``TransportError/Kind/cannotConnect``.
        public var waitingPerHost: Int
        /// How long a connection is kept for the next request. Zero: connections are never used again. Default: 4 s, less
        /// than the 5 s after which common servers close theirs.
        public var idleTimeout: Duration
        /// Bytes of a response's head. Default: 64 KiB. A greater one fails with
        /// ``TransportError/Kind/responseTooLarge``.
        public var maximumHeadBytes: Int
        /// Trust roots, verification, versions, a certificate of our own. Default: the system's trust roots, certificate and
        /// name verified.
        public var tls: TLSConfiguration
        /// Where requests go; nil for where their scheme and authority say. Default: nil. A reverse proxy sends all to
        /// its origin, and `Host` stays as the request has it. A request's own ``TransportRequest/destination`` goes before.
        public var route: (@Sendable (_ scheme: String, _ authority: String) -> Endpoint)?

        /// Makes a configuration; each part has a default.
        public init(
            eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton,
            connectionsPerHost: Int = 64, waitingPerHost: Int = 1024, idleTimeout: Duration = .seconds(4),
            maximumHeadBytes: Int = 64 << 10, tls: TLSConfiguration = .makeClientConfiguration(),
            route: (@Sendable (_ scheme: String, _ authority: String) -> Endpoint)? = nil
        ) {
            self.eventLoopGroup = eventLoopGroup
            self.connectionsPerHost = connectionsPerHost
            self.waitingPerHost = waitingPerHost
            self.idleTimeout = idleTimeout
            self.maximumHeadBytes = maximumHeadBytes
            self.tls = tls
            self.route = route
        }
    }

    /// The other end of a connection.
    public struct Endpoint: Hashable, Sendable, CustomStringConvertible {
        /// A name, or an IPv4 or IPv6 address without brackets.
        public var host: String
        /// The port, from 0 to 65535.
        public var port: Int
        /// Whether the connection is encrypted.
        public var isTLS: Bool
        /// The name that the certificate has to be for; nil for the host's. Default: nil.
        public var serverName: String?

        /// Makes an endpoint.
        public init(host: String, port: Int, isTLS: Bool = false, serverName: String? = nil) {
            self.host = host
            self.port = port
            self.isTLS = isTLS
            self.serverName = serverName
        }

        /// As a URL has it: `example.com:80`, `[::1]:443`.
        public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
    }
}
