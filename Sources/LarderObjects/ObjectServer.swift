import Larder
import LarderGateway
import LarderHTTP
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
    private let gateway: Gateway
    package let service: ObjectService

    private init(_ gateway: Gateway, _ service: ObjectService) {
        self.gateway = gateway
        self.service = service
    }

    /// Where it listens for HTTP without TLS; nil if it does not.
    public var address: SocketAddress? { gateway.address }
    /// Where it listens for TLS; nil if it does not.
    public var tlsAddress: SocketAddress? { gateway.tlsAddress }
    /// Where the admin server listens; nil without one.
    public var adminAddress: SocketAddress? { gateway.adminAddress }

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - configuration: addresses, rights and limits; it cannot be changed later.
    ///   - store: keeps the objects; it stays the caller's to close, after ``stop(drain:)``.
    /// - Returns: the server, when connections are accepted.
    /// - Throws: `GatewayError`, as `Gateway.start(_:cache:)` does.
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
        return ObjectServer(try await Gateway.start(configuration.connections, service), service)
    }

    /// What tells how a store does.
    package static func health(of store: Store, _ configuration: ObjectServerConfiguration) -> StoreHealth {
        StoreHealth(store, configuration.connections.logger)
    }

    /// Answers from a store that was opened again.
    package func use(_ health: StoreHealth) async {
        service.use(health)
        await gateway.use(service)
    }

    /// Stops: no connection is accepted any more, idle ones are closed, requests under way are finished. Ends what is
    /// left when time is up.
    ///
    /// - Parameter drain: how long requests may take to finish. Default: 10 s.
    public func stop(drain: Duration = .seconds(10)) async { await gateway.stop(drain: drain) }

    /// Opens the access log again, for programs that rotate it; see `Gateway.reopenAccessLog()`.
    @discardableResult
    public func reopenAccessLog() throws(GatewayError) -> Bool { try gateway.reopenAccessLog() }

    /// Reads the certificate again, for new connections; see `Gateway.reloadCertificate()`.
    @discardableResult
    public func reloadCertificate() throws(GatewayError) -> Bool { try gateway.reloadCertificate() }

    /// What has been counted since the start.
    public var figures: Figures {
        Figures(
            hits: service.objects.counters.hits.load(ordering: .relaxed),
            misses: service.objects.counters.misses.load(ordering: .relaxed),
            incompleteResults: service.objects.counters.incompleteResults.load(ordering: .relaxed),
            uploads: service.objects.counters.uploads.load(ordering: .relaxed),
            uploadsWithoutRoom: service.objects.counters.uploadsWithoutRoom.load(ordering: .relaxed))
    }

    /// What a server has counted.
    public struct Figures: Sendable, Hashable {
        /// GET and HEAD that found an object.
        public var hits: Int
        /// GET and HEAD that did not.
        public var misses: Int
        /// Of the misses, results of actions that were there without all of their blobs.
        public var incompleteResults: Int
        /// Objects that were stored.
        public var uploads: Int
        /// Objects that were not, because there was no room.
        public var uploadsWithoutRoom: Int
    }
}
