import LarderHTTP
import LarderServer
import NIOCore

/// An HTTP server in front of an `HTTPCache`: a caching reverse proxy, a forward proxy, or both.
///
/// ```swift
/// var configuration = GatewayConfiguration()
/// configuration.port = 8080
/// configuration.routes.otherwise = try OriginServer("http://127.0.0.1:3000")
/// var caching = HTTPCacheConfiguration()
/// caching.caching = .gateway
/// caching.viaName = "gateway-1"
/// let cache = HTTPCache(
///     store: store, transport: RoutedTransport(configuration.routes, over: NIOTransport()), configuration: caching)
/// let gateway = try await Gateway.start(configuration, cache: cache)
/// // …
/// await gateway.stop(drain: .seconds(10))
/// ```
///
/// It owns its sockets, its threads and the access log, but not the cache. Give the cache a `viaName` that no other
/// gateway has: it identifies requests that come back to the gateway (508). Safe to use from any thread.
public final class Gateway: Sendable {
    /// The address for HTTP without TLS; nil if there is none.
    public var address: SocketAddress? { server.address }
    /// The address for TLS; nil if there is none.
    public var tlsAddress: SocketAddress? { server.tlsAddress }
    /// The address of the admin server; nil without one.
    public var adminAddress: SocketAddress? { server.adminAddress }

    /// The connections. What answers on them is a ``CacheService``.
    package let server: Server
    private let configuration: GatewayConfiguration

    private init(_ server: Server, _ configuration: GatewayConfiguration) {
        self.server = server
        self.configuration = configuration
    }

    /// Starts a gateway. Raises the process's soft limit of open files to the hard one: see ``DescriptorLimit``.
    ///
    /// - Parameters:
    ///   - configuration: addresses, routes and limits; it cannot be changed later.
    ///   - cache: answers the requests; it and its store stay the caller's to drain and close, after ``stop(drain:)``.
    /// - Returns: the gateway, when connections are accepted.
    /// - Throws: ``GatewayError``: `invalidArgument` for a configuration without an address, with routes that
    ///   contradict each other or with a limit that makes no sense, `cannotListen`, `tls` for a certificate or key that
    ///   cannot be read, `io` for the access log.
    public static func start(
        _ configuration: GatewayConfiguration, cache: HTTPCache
    ) async throws(GatewayError) -> Gateway {
        try checkRoutes(configuration)
        let service = CacheService(cache, configuration)
        return Gateway(try await Server.start(configuration.server, service), configuration)
    }

    /// Checks a configuration as ``start(_:cache:)`` does, certificate and key included, without opening a port.
    package static func check(_ configuration: GatewayConfiguration) throws(GatewayError) {
        try checkRoutes(configuration)
        try Server.check(configuration.server)
    }

    private static func checkRoutes(_ configuration: GatewayConfiguration) throws(GatewayError) {
        if configuration.routes.otherwise != nil, configuration.routes.allowsForwarding {
            throw GatewayError(
                .invalidArgument,
                "an origin for all hosts leaves none to forward to: name the hosts it is for, or turn forwarding off"
            )
        }
    }

    /// Looks at all connections for limits in time, as happens every second or so.
    package func tick() async { await server.tick() }

    /// Replaces the cache, from now on, by one with the same configuration over another store. Requests in progress
    /// keep the cache that they began with.
    package func use(_ cache: HTTPCache) async { await server.use(CacheService(cache, configuration)) }

    /// The figures so far.
    package func readCounters() async -> Server.Readings { await server.readCounters() }

    /// Stops the gateway: it accepts no new connections, closes idle ones, and finishes responses in progress, with
    /// `Connection: close` if their head has not been written yet. When the time is up, it ends the remaining
    /// responses. When this method returns, every connection is closed and the gateway has stopped completely.
    ///
    /// A further call also waits for the end, and can only bring it forward: `stop(drain: .zero)` cuts responses
    /// immediately while another call gives them time.
    /// - Parameter drain: how long responses may take to finish. Default: 10 s.
    public func stop(drain: Duration = .seconds(10)) async { await server.stop(drain: drain) }
}
