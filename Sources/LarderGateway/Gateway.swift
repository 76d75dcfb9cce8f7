import LarderHTTP
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// An HTTP server in front of an ``LarderHTTP/HTTPCache``: a caching reverse proxy, a forward proxy, or both.
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
/// It owns its sockets, its threads and the access log, not the cache. Give the cache a `viaName` that no other gateway
/// has: by it requests are known that come back (508). Safe to use from any thread.
public final class Gateway: Sendable {
    /// Where it listens for HTTP without TLS; nil if it does not.
    public let address: SocketAddress?
    /// Where it listens for TLS; nil if it does not.
    public let tlsAddress: SocketAddress?
    /// Where the admin server listens; nil without one.
    public let adminAddress: SocketAddress?

    let core: GatewayCore
    let workers: [Worker]
    private let listeners: [any Channel]
    private let group: MultiThreadedEventLoopGroup
    private let history: TrafficHistory?
    private let stopping = Mutex<Task<Void, Never>?>(nil)

    private init(
        _ core: GatewayCore, _ workers: [Worker], _ group: MultiThreadedEventLoopGroup, listeners: Listeners,
        history: TrafficHistory?
    ) {
        self.core = core
        self.workers = workers
        self.group = group
        self.listeners = [listeners.plain, listeners.tls, listeners.admin].compactMap { $0 }
        self.history = history
        address = listeners.plain?.localAddress
        tlsAddress = listeners.tls?.localAddress
        adminAddress = listeners.admin?.localAddress
    }

    struct Listeners {
        var plain: (any Channel)?
        var tls: (any Channel)?
        var admin: (any Channel)?

        func close() async {
            for channel in [plain, tls, admin] { try? await channel?.close().get() }
        }
    }

    /// Starts a gateway; when it returns, connections are accepted.
    ///
    /// Throws ``GatewayError``: `invalidArgument` for a configuration without an address or with routes that contradict
    /// each other, `cannotListen`, `tls` for a certificate or key that cannot be read, `io` for the access log.
    public static func start(
        _ configuration: GatewayConfiguration, cache: HTTPCache
    ) async throws(GatewayError) -> Gateway {
        try check(configuration)
        let tls = try configuration.tls.map { settings throws(GatewayError) in try TLS.context(settings) }
        let log = try configuration.accessLog.map { settings throws(GatewayError) in try AccessLogWriter(settings) }
        let core = GatewayCore(cache, configuration, accessLog: log)
        let count = configuration.eventLoops ?? System.coreCount
        let group = MultiThreadedEventLoopGroup(numberOfThreads: count)
        let workers = group.makeIterator().map {
            Worker($0, core, hotBodies: HotBodies(capacity: configuration.hotBodyBytes / count))
        }
        var listeners = Listeners()
        let history = configuration.adminPort.map { _ in TrafficHistory() }
        do throws(GatewayError) {
            let factory = ListenerFactory(core: core, group: group, workers: workers)
            if let port = configuration.port {
                listeners.plain = try await factory.plain(host: configuration.host, port: port)
            }
            if let settings = configuration.tls, let tls {
                listeners.tls = try await factory.tls(host: configuration.host, settings: settings, context: tls)
            }
            if let port = configuration.adminPort, let history {
                let reader = MetricsReader(workers: workers, core: core, history: history)
                listeners.admin = try await factory.admin(host: configuration.adminHost, port: port, reader: reader)
            }
        } catch {
            await listeners.close()
            try? await group.shutdownGracefully()
            log?.close()
            throw error
        }
        let gateway = Gateway(core, workers, group, listeners: listeners, history: history)
        if configuration.time.ticks { gateway.startTicking() }
        return gateway
    }

    private static func check(_ configuration: GatewayConfiguration) throws(GatewayError) {
        if configuration.port == nil, configuration.tls == nil {
            throw GatewayError(.invalidArgument, "the gateway has no port to listen on: set 'port' or 'tls'")
        }
        if configuration.routes.otherwise != nil, configuration.routes.allowsForwarding {
            throw GatewayError(
                .invalidArgument,
                "an origin for all hosts leaves none to forward to: name the hosts that it is for, or forward nothing")
        }
        if let count = configuration.eventLoops, count < 1 {
            throw GatewayError(.invalidArgument, "the gateway needs one event loop at least, not \(count)")
        }
    }

    private func startTicking() {
        let limits = core.configuration.limits
        let shortest = [limits.headTimeout, limits.idleTimeout, limits.stallTimeout].min() ?? .seconds(1)
        let interval = max(TimeAmount.milliseconds(10), min(.seconds(1), TimeAmount(shortest / 4)))
        for worker in workers { worker.eventLoop.execute { worker.startTicking(every: interval) } }
        if let history {
            history.start(on: group.next(), MetricsReader(workers: workers, core: core, history: history))
        }
    }

    /// Looks at all connections for limits in time, as happens every second or so.
    package func tick() async {
        for worker in workers { try? await worker.eventLoop.submit { worker.tick() }.get() }
    }

    /// Some of what has been counted.
    package struct Readings: Sendable {
        package var requests: UInt64
        package var openConnections: Int64
        package var timeouts: UInt64
        package var clientAborts: UInt64
        package var bytesIn: UInt64
        package var bytesOut: UInt64
        /// Responses in memory for HTTP/2 clients that have not taken them yet.
        package var bytesHeld: Int64
    }

    /// What has been counted so far.
    package func readCounters() async -> Readings {
        let sum = await MetricsReader.sum(workers)
        return Readings(
            requests: sum.total, openConnections: sum.connectionsOpen, timeouts: sum.timeouts,
            clientAborts: sum.clientAborts, bytesIn: sum.bytesIn, bytesOut: sum.bytesOut, bytesHeld: sum.bytesHeld)
    }

    /// Stops: no connection is accepted any more, idle ones are closed, responses under way are finished, with
    /// `Connection: close` where their head is not written yet. Ends what is left when time is up. Further calls wait for
    /// the first.
    /// - Parameter drain: how long responses may take to finish. Default: 10 s.
    public func stop(drain: Duration = .seconds(10)) async {
        let task = stopping.withLock { task in
            if let task { return task }
            let new = Task { await self.end(drain) }
            task = new
            return new
        }
        await task.value
    }

    private func end(_ drain: Duration) async {
        for listener in listeners { try? await listener.close().get() }
        let emptied = workers.map { worker in worker.eventLoop.flatSubmit { worker.drain() } }
        let all = EventLoopFuture.andAllComplete(emptied, on: group.any())
        let workers = workers
        let deadline = group.any().scheduleTask(in: TimeAmount(drain)) {
            for worker in workers { worker.eventLoop.execute { worker.closeAll() } }
        }
        try? await all.get()
        deadline.cancel()
        history?.stop()
        for worker in workers { try? await worker.eventLoop.submit { worker.stop() }.get() }
        try? await group.shutdownGracefully()
        core.accessLog?.close()
    }
}
