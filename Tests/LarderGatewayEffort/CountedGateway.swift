import CGatewayEffort
import Foundation
import Larder
import LarderGateway
import LarderHTTP
import LarderNIOTransport
import NIOPosix
import Synchronization
import TestOrigin

/// The process whose work is counted: a gateway as `cachectl serve --threads 1` makes it, which does nothing but serve.
enum CountedGateway {
    /// Serves until `orders` ends.
    static func run(in directory: String, orders: FileHandle, answers: FileHandle) -> Never {
        // Names relative to it, because long names of files cost more than short ones.
        guard let origin = orders.line(), FileManager.default.changeCurrentDirectoryPath(directory) else { exit(2) }
        let running = Mutex<Running?>(nil)
        LarderGatewayEffort.wait {
            let started = try await start(origin)
            running.withLock { $0 = started }
            try answers.write(contentsOf: Data("\(started.ports)\n".utf8))
        }
        // Blocks this thread, which has no other work.
        while orders.line() != nil {}
        LarderGatewayEffort.wait {
            guard let running = running.withLock({ $0 }) else { return }
            await running.gateway.stop(drain: .zero)
            await running.cache.drain()
            await running.transport.close()
            try await running.store.close()
        }
        exit(0)
    }

    private struct Running {
        let gateway: Gateway
        let cache: HTTPCache
        let transport: NIOTransport
        let store: Store

        var ports: String { "\(gateway.address?.port ?? 0) \(gateway.tlsAddress?.port ?? 0)" }
    }

    private static func start(_ origin: String) async throws -> Running {
        var storing = Larder.Configuration()
        storing.logger.logLevel = .critical
        let store = try Store(at: "store", storing)
        var configuration = GatewayConfiguration()
        configuration.eventLoops = 1
        configuration.logger.logLevel = .critical
        configuration.routes.otherwise = try OriginServer(origin)
        configuration.tls = try certificate()
        var caching = HTTPCacheConfiguration()
        caching.caching = .gateway
        caching.viaName = "effort"
        caching.logger.logLevel = .critical
        // One event loop here, too: how many there are by default depends on the machine.
        let transport = NIOTransport(
            NIOTransport.Configuration(eventLoopGroup: MultiThreadedEventLoopGroup(numberOfThreads: 1)))
        let cache = HTTPCache(
            store: store, transport: RoutedTransport(configuration.routes, over: transport), configuration: caching)
        let gateway = try await Gateway.start(configuration, cache: cache)
        return Running(gateway: gateway, cache: cache, transport: transport, store: store)
    }

    private static func certificate() throws -> GatewayTLS {
        let (chain, key) = ("certificate.pem", "key.pem")
        try OriginCertificate.local.certificatePEM.write(toFile: chain, atomically: false, encoding: .utf8)
        try OriginCertificate.local.keyPEM.write(toFile: key, atomically: false, encoding: .utf8)
        return GatewayTLS(certificateFile: chain, keyFile: key)
    }
}
