import Larder
import LarderHTTP
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import Locks
import SystemPackage

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
    public let address: SocketAddress?
    /// The address for TLS; nil if there is none.
    public let tlsAddress: SocketAddress?
    /// The address of the admin server; nil without one.
    public let adminAddress: SocketAddress?

    let tls: ServerTLS?
    let core: GatewayCore
    let workers: [Worker]
    private let shedding: Shedding
    private let listeners: [any Channel]
    private let group: MultiThreadedEventLoopGroup
    private let history: TrafficHistory?
    private let stopping = Mutex(Stopping())

    private init(
        _ core: GatewayCore, _ workers: [Worker], _ group: MultiThreadedEventLoopGroup, listeners: Listeners,
        history: TrafficHistory?, tls: ServerTLS?
    ) {
        self.tls = tls
        self.core = core
        self.workers = workers
        shedding = Shedding(workers, core.memory)
        self.group = group
        self.listeners = [listeners.plain, listeners.tls, listeners.admin].compactMap { $0 }
        self.history = history
        address = listeners.plain?.localAddress
        tlsAddress = listeners.tls?.localAddress
        adminAddress = listeners.admin?.localAddress
    }

    private struct Stopping {
        var task: Task<Void, Never>?
        /// When connections are cut.
        var deadlines: [Scheduled<Void>] = []
        /// The event loops are about to go.
        var isOver = false
    }

    struct Listeners {
        var plain: (any Channel)?
        var tls: (any Channel)?
        var admin: (any Channel)?

        func close() async {
            for channel in [plain, tls, admin] { try? await channel?.close().get() }
        }
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
        try await start(configuration, CacheService(cache, configuration))
    }

    /// As above, with something else that answers the requests.
    package static func start(
        _ configuration: GatewayConfiguration, _ service: any GatewayService
    ) async throws(GatewayError) -> Gateway {
        let tls = try checked(configuration)
        let log = try configuration.accessLog.map { settings throws(GatewayError) in try AccessLogWriter(settings) }
        let descriptors = try descriptorsOfServer()
        let core = GatewayCore(service, configuration, accessLog: log, descriptors: descriptors)
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
        core.tellOfFewerConnections(descriptors: descriptors)
        let gateway = Gateway(core, workers, group, listeners: listeners, history: history, tls: tls)
        if configuration.time.ticks { gateway.startTicking() }
        return gateway
    }

    /// How many descriptors the process may have; keeps some of them free.
    private static func descriptorsOfServer() throws(GatewayError) -> Int {
        let count = DescriptorLimit.raise()
        guard count >= DescriptorLimit.least else {
            throw GatewayError(
                .io,
                "\(count) files may be open, and a server needs \(DescriptorLimit.least): raise the limit (ulimit -n)",
                cause: Errno.tooManyOpenFiles)
        }
        DescriptorReserve.keep(of: count)
        return count
    }

    /// Checks a configuration as ``start(_:cache:)`` does, certificate and key included, without opening a port.
    package static func check(_ configuration: GatewayConfiguration) throws(GatewayError) {
        _ = try checked(configuration)
    }

    private static func checked(_ configuration: GatewayConfiguration) throws(GatewayError) -> ServerTLS? {
        if configuration.port == nil, configuration.tls == nil {
            throw GatewayError(.invalidArgument, "the gateway has no port to listen on: set 'port' or 'tls'")
        }
        if configuration.routes.otherwise != nil, configuration.routes.allowsForwarding {
            throw GatewayError(
                .invalidArgument,
                "an origin for all hosts leaves none to forward to: name the hosts it is for, or turn forwarding off"
            )
        }
        if configuration.limits.memoryBytes < 1 << 20 {
            throw GatewayError(
                .invalidArgument,
                "'memoryBytes' is \(configuration.limits.memoryBytes): the gateway needs at least 1 MiB")
        }
        if let count = configuration.eventLoops, count < 1 {
            throw GatewayError(.invalidArgument, "the gateway needs at least one event loop, not \(count)")
        }
        return try configuration.tls.map { settings throws(GatewayError) in try ServerTLS(settings) }
    }

    private func startTicking() {
        let limits = core.configuration.limits
        let shortest = [limits.headTimeout, limits.idleTimeout, limits.stallTimeout].min() ?? .seconds(1)
        let interval = max(TimeAmount.milliseconds(10), min(.seconds(1), TimeAmount(shortest / 4)))
        let shedding = shedding
        for worker in workers { worker.eventLoop.execute { worker.startTicking(every: interval, shedding) } }
        if let history {
            history.start(on: group.next(), MetricsReader(workers: workers, core: core, history: history))
        }
    }

    /// Looks at all connections for limits in time, as happens every second or so.
    package func tick() async {
        for worker in workers { try? await worker.eventLoop.submit { worker.tick() }.get() }
        try? await shedding.run().get()
    }

    /// Replaces the cache, from now on, by one with the same configuration over another store. Requests in progress
    /// keep the cache that they began with.
    package func use(_ cache: HTTPCache) async { await use(CacheService(cache, core.configuration)) }

    /// Replaces the service from now on, or uses the same one over another store.
    package func use(_ service: any GatewayService) async {
        core.service = service
        // An event loop that is gone serves nothing any more.
        for worker in workers { try? await worker.eventLoop.submit { worker.service = service }.get() }
    }

    /// Some of the gateway's figures.
    package struct Readings: Sendable {
        package var requests: UInt64
        package var openConnections: Int64
        package var timeouts: UInt64
        package var clientAborts: UInt64
        package var bytesIn: UInt64
        package var bytesOut: UInt64
        /// Memory that waits for clients and origins.
        package var heldBytes: Int
        /// The part of this memory in responses that HTTP/2 clients have not read yet.
        package var heldForHTTP2: Int64
        /// Requests refused because memory ran short, or because their client had too many.
        package var refusedRequests: Int
        /// Connections closed because memory ran short.
        package var shedConnections: UInt64
    }

    /// The figures so far.
    package func readCounters() async -> Readings {
        let sum = await MetricsReader.sum(workers)
        return Readings(
            requests: sum.total, openConnections: sum.connectionsOpen, timeouts: sum.timeouts,
            clientAborts: sum.clientAborts, bytesIn: sum.bytesIn, bytesOut: sum.bytesOut,
            heldBytes: core.memory.held, heldForHTTP2: sum.bytesHeld,
            refusedRequests: core.memory.refusedRequests + core.clients.refusedRequests,
            shedConnections: sum.connectionsShed)
    }

    /// Stops the gateway: it accepts no new connections, closes idle ones, and finishes responses in progress, with
    /// `Connection: close` if their head has not been written yet. When the time is up, it ends the remaining
    /// responses. When this method returns, every connection is closed and the gateway has stopped completely.
    ///
    /// A further call also waits for the end, and can only bring it forward: `stop(drain: .zero)` cuts responses
    /// immediately while another call gives them time.
    /// - Parameter drain: how long responses may take to finish. Default: 10 s.
    public func stop(drain: Duration = .seconds(10)) async {
        let task = stopping.withLock { state in
            if let task = state.task { return task }
            let new = Task { await self.end() }
            state.task = new
            return new
        }
        closeAll(after: drain)
        await task.value
    }

    private func closeAll(after drain: Duration) {
        let workers = workers
        stopping.withLock { state in
            guard !state.isOver else { return }
            state.deadlines.append(
                group.any().scheduleTask(in: TimeAmount(drain)) {
                    for worker in workers { worker.eventLoop.execute { worker.closeAll() } }
                })
        }
    }

    private func end() async {
        for listener in listeners { try? await listener.close().get() }
        let emptied = workers.map { worker in worker.eventLoop.flatSubmit { worker.drain() } }
        let all = EventLoopFuture.andAllComplete(emptied, on: group.any())
        try? await all.get()
        stopping.withLock { state in
            state.isOver = true
            for deadline in state.deadlines { deadline.cancel() }
        }
        history?.stop()
        // With its connection each was cancelled; what it still does must not find the event loop gone.
        await core.tasks.close()
        shedding.stop()
        for worker in workers { try? await worker.eventLoop.submit { worker.stop() }.get() }
        try? await group.shutdownGracefully()
        core.accessLog?.close()
    }
}
