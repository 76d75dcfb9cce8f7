import Larder
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import Locks
import SystemPackage

/// An HTTP server: connections over HTTP/1.1, HTTP/2 and TLS with their limits, the access log, the figures and the
/// admin server. A service answers the requests.
///
/// It owns its sockets and the access log, but not the service; until it stops it has its threads to itself. Safe to
/// use from any thread.
package final class Server: Sendable {
    /// The address for HTTP without TLS; nil if there is none.
    package let address: SocketAddress?
    /// The address for TLS; nil if there is none.
    package let tlsAddress: SocketAddress?
    /// The address of the admin server; nil without one.
    package let adminAddress: SocketAddress?

    let tls: ServerTLS?
    let core: ServerCore
    let workers: [Worker]
    private let shedding: Shedding
    private let listeners: [any Channel]
    private let group: MultiThreadedEventLoopGroup
    private let history: TrafficHistory?
    private let stopping = Mutex(Stopping())

    private init(
        _ core: ServerCore, _ workers: [Worker], _ group: MultiThreadedEventLoopGroup, listeners: Listeners,
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
        /// Another server may have the event loops.
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

    /// Starts a server. Raises the process's soft limit of open files to the hard one: see ``DescriptorLimit``.
    ///
    /// - Parameters:
    ///   - configuration: addresses and limits; it cannot be changed later.
    ///   - service: answers the requests; its store stays the caller's to close, after ``stop(drain:)``.
    /// - Returns: the server, when connections are accepted.
    /// - Throws: ``GatewayError``: `invalidArgument` for a configuration without an address or with a limit that makes
    ///   no sense, `cannotListen`, `tls` for a certificate or key that cannot be read, `io` for the access log.
    package static func start(
        _ configuration: ServerConfiguration, _ service: any HTTPService
    ) async throws(GatewayError) -> Server {
        let tls = try checked(configuration)
        let log = try configuration.accessLog.map { settings throws(GatewayError) in try AccessLogWriter(settings) }
        let descriptors = try descriptorsOfServer()
        let core = ServerCore(service, configuration, accessLog: log, descriptors: descriptors)
        let count = configuration.eventLoops ?? System.coreCount
        let group = LoopGroups.shared.take(threads: count)
        let workers = group.makeIterator().map { Worker($0, core) }
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
            LoopGroups.shared.giveBack(group, threads: count)
            log?.close()
            throw error
        }
        core.tellOfFewerConnections(descriptors: descriptors)
        let server = Server(core, workers, group, listeners: listeners, history: history, tls: tls)
        if configuration.time.ticks { server.startTicking() }
        return server
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

    /// Checks a configuration as ``start(_:_:)`` does, certificate and key included, without opening a port.
    package static func check(_ configuration: ServerConfiguration) throws(GatewayError) {
        _ = try checked(configuration)
    }

    private static func checked(_ configuration: ServerConfiguration) throws(GatewayError) -> ServerTLS? {
        if configuration.port == nil, configuration.tls == nil {
            throw GatewayError(.invalidArgument, "the gateway has no port to listen on: set 'port' or 'tls'")
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

    /// Replaces the service from now on, or uses the same one over another store.
    package func use(_ service: any HTTPService) async {
        core.service = service
        for worker in workers { try? await worker.eventLoop.submit { worker.service = service }.get() }
    }

    /// Some of the server's figures.
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

    /// Stops the server: it accepts no new connections, closes idle ones, and finishes responses in progress, with
    /// `Connection: close` if their head has not been written yet. When the time is up, it ends the remaining
    /// responses. When this method returns, every connection is closed and the server has stopped completely.
    ///
    /// A further call also waits for the end, and can only bring it forward.
    /// - Parameter drain: how long responses may take to finish.
    package func stop(drain: Duration) async {
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
        // With its connection each was cancelled.
        await core.tasks.close()
        shedding.stop()
        for worker in workers { try? await worker.eventLoop.submit { worker.stop() }.get() }
        core.accessLog?.close()
        LoopGroups.shared.giveBack(group, threads: workers.count)
    }
}
