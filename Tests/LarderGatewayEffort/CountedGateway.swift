import CGatewayEffort
import Foundation
import Larder
import LarderGateway
import LarderHTTP
import LarderNIOTransport
import NIOPosix
import Synchronization
import TestOrigin

/// The process whose work is counted: a gateway as `cachectl serve --threads 1` makes it, which does nothing but serve,
/// and a second one whose store commits nothing until it is closed. How many puts share a commit depends on how fast
/// the machine is; what they cost without it does not.
enum CountedGateway {
    /// Serves until `orders` ends.
    static func run(in directory: String, orders: FileHandle, answers: FileHandle) -> Never {
        // Names relative to it, because long names of files cost more than short ones.
        guard let origin = orders.line(), FileManager.default.changeCurrentDirectoryPath(directory) else { exit(2) }
        let running = Mutex<[Running]>([])
        LarderGatewayEffort.wait {
            let serving = try await start(origin, store: "store")
            let holding = try await start(origin, store: "holding", commitDelay: .seconds(3600))
            running.withLock { $0 = [serving, holding] }
            let ports = GatewayPorts(plain: serving.port, tls: serving.tlsPort, holding: holding.port)
            try answers.write(contentsOf: Data("\(ports.line)\n".utf8))
        }
        // Blocks this thread, which has no other work.
        while orders.line() != nil {}
        LarderGatewayEffort.wait {
            for each in running.withLock({ $0 }) {
                await each.gateway.stop(drain: .zero)
                await each.cache.drain()
                await each.transport.close()
                try await each.store.close()
            }
        }
        exit(0)
    }

    private struct Running {
        let gateway: Gateway
        let cache: HTTPCache
        let transport: NIOTransport
        let store: Store

        var port: Int { gateway.address?.port ?? 0 }
        var tlsPort: Int { gateway.tlsAddress?.port ?? 0 }
    }

    private static func start(
        _ origin: String, store name: String, commitDelay: Duration? = nil
    ) async throws -> Running {
        var storing = Larder.Configuration()
        storing.commitDelay = commitDelay ?? storing.commitDelay
        storing.logger.logLevel = .critical
        let store = try Store(at: name, storing)
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

/// Where the gateways listen.
struct GatewayPorts {
    let plain: Int
    let tls: Int
    /// Of the one whose store holds what is put.
    let holding: Int

    var line: String { "\(plain) \(tls) \(holding)" }
}

extension GatewayPorts {
    /// Reads ``line``.
    init?(_ line: String?) {
        let numbers = line?.split(separator: " ").compactMap { Int($0) } ?? []
        guard numbers.count == 3 else { return nil }
        self.init(plain: numbers[0], tls: numbers[1], holding: numbers[2])
    }
}
