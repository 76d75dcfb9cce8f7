import CachectlCore
import Larder
import LarderGateway
import LarderHTTP
import LarderNIOTransport
import Logging

/// The caching gateway as `serve` runs it: an HTTP cache over origins.
struct CachingService: ServedService {
    private let setup: ServeSetup
    private let transport: NIOTransport

    init(_ setup: ServeSetup) {
        self.setup = setup
        // The cache limits requests per host; the transport's own limit must not come first.
        transport = NIOTransport(
            NIOTransport.Configuration(
                connectionsPerHost: 1_024, maximumHeadBytes: setup.responseHead, http2: setup.usesHTTP2))
    }

    var logger: Logger { setup.gateway.logger }

    func user(of store: Store) -> HTTPCache {
        var configuration = HTTPCacheConfiguration()
        configuration.caching = setup.caching
        // The pseudonym distinguishes a loop from another gateway in front of this one.
        configuration.viaName = "larder-" + String(store.identifier.prefix(8))
        configuration.timeouts = setup.timeouts
        configuration.requestsPerHost = 1_024
        configuration.logger = setup.levels.logger(configuration.logger)
        configuration.foldedContentCodings = setup.foldedContentCodings
        configuration.sliceBytes = setup.sliceBytes
        configuration.compressesBodies = setup.compressesBodies
        let routed = RoutedTransport(
            setup.gateway.routes, over: OriginFailureLog(over: transport, setup.gateway.logger))
        return HTTPCache(store: store, transport: routed, configuration: configuration)
    }

    func start(_ cache: HTTPCache) async throws -> any RunningServer<HTTPCache> {
        do {
            return Running(
                gateway: try await Gateway.start(setup.gateway, cache: cache), transport: transport,
                origins: setup.destinations)
        } catch {
            throw CommandError(error)
        }
    }

    private struct Running: RunningServer {
        let gateway: Gateway
        let transport: NIOTransport
        let origins: [String]

        var addresses: Announcement.Addresses {
            Announcement.Addresses(
                plain: gateway.address, tls: gateway.tlsAddress, admin: gateway.adminAddress, origins: origins)
        }

        func recover(_ store: Store) async throws { try await CollectCommand.recoverPackages(store) }
        func use(_ cache: HTTPCache) async { await gateway.use(cache) }
        func reopenAccessLog() throws(GatewayError) -> Bool { try gateway.reopenAccessLog() }
        func reloadCertificate() throws(GatewayError) -> Bool { try gateway.reloadCertificate() }
        func stop(drain: Duration) async { await gateway.stop(drain: drain) }
        func closeOrigins() async { await transport.close() }
    }
}
