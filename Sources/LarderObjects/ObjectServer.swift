import Larder
import LarderHTTP
import LarderServer
import NIOCore

/// An HTTP server that keeps the objects of build tools in a store: Bazel's HTTP cache, ccache, sccache over WebDAV,
/// Gradle, Turborepo, Nx, and anything that gets and puts files.
///
/// ```swift
/// var configuration = ObjectServerConfiguration()
/// configuration.connections.port = 8080
/// let server = try await ObjectServer.start(configuration, store: store)
/// // …
/// await server.stop()
/// ```
///
/// It owns its sockets and threads, not the store. Safe to use from any thread.
public final class ObjectServer: Sendable {
    private let server: Server
    package let service: ObjectService

    private init(_ server: Server, _ service: ObjectService) {
        self.server = server
        self.service = service
    }

    /// The address for HTTP without TLS; nil if there is none.
    public var address: SocketAddress? { server.address }
    /// The address for TLS; nil if there is none.
    public var tlsAddress: SocketAddress? { server.tlsAddress }
    /// The address of the admin server; nil without one.
    public var adminAddress: SocketAddress? { server.adminAddress }

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - configuration: addresses, rights and limits; it cannot be changed later.
    ///   - store: keeps the objects; it stays the caller's to close, after ``stop(drain:)``.
    /// - Returns: the server, when connections are accepted.
    /// - Throws: `GatewayError`: `invalidArgument` for a configuration without an address or with a limit that makes no
    ///   sense, `cannotListen`, `tls` for a certificate or key that cannot be read, `io` for the access log.
    public static func start(
        _ configuration: ObjectServerConfiguration, store: Store
    ) async throws(GatewayError) -> ObjectServer {
        try await start(configuration, health(of: store, configuration))
    }

    package static func start(
        _ configuration: ObjectServerConfiguration, _ health: StoreHealth
    ) async throws(GatewayError) -> ObjectServer {
        let service = ObjectService(
            ObjectStore(
                health.store, promiseTime: configuration.promiseTime, replacesResults: configuration.replacesResults,
                configuration.connections.logger),
            health, configuration)
        return ObjectServer(try await Server.start(configuration.connections, service), service)
    }

    /// The health of a store, as the server reports it.
    package static func health(of store: Store, _ configuration: ObjectServerConfiguration) -> StoreHealth {
        StoreHealth(store, configuration.connections.logger)
    }

    /// Answers from a store that was opened again.
    package func use(_ health: StoreHealth) async {
        service.use(health)
        await server.use(service)
    }

    /// Stops the server: it accepts no new connections, closes idle ones and finishes requests in progress. When the
    /// time is up, it ends the remaining requests.
    ///
    /// - Parameter drain: how long requests may take to finish. Default: 10 s.
    public func stop(drain: Duration = .seconds(10)) async { await server.stop(drain: drain) }

    /// Reopens the access log, for programs that rotate it. Waits for the disk.
    @discardableResult
    public func reopenAccessLog() throws(GatewayError) -> Bool { try server.reopenAccessLog() }

    /// Reads the certificate again, for new connections. Waits for the disk.
    @discardableResult
    public func reloadCertificate() throws(GatewayError) -> Bool { try server.reloadCertificate() }

    /// The figures since the start.
    public var figures: Figures {
        Figures(
            hits: service.objects.counters.hits.load(ordering: .relaxed),
            misses: service.objects.counters.misses.load(ordering: .relaxed),
            incompleteResults: service.objects.counters.incompleteResults.load(ordering: .relaxed),
            uploads: service.objects.counters.uploads.load(ordering: .relaxed),
            uploadsWithoutRoom: service.objects.counters.uploadsWithoutRoom.load(ordering: .relaxed))
    }

    /// The figures of a server.
    public struct Figures: Sendable, Hashable {
        /// GET and HEAD requests that found an object.
        public var hits: Int
        /// GET and HEAD requests that did not find one.
        public var misses: Int
        /// Of the misses, results of actions that exist but lack some of their blobs.
        public var incompleteResults: Int
        /// Stored objects.
        public var uploads: Int
        /// Objects that were not stored because there was no room.
        public var uploadsWithoutRoom: Int
    }
}
