import NIOCore
import NIOPosix
import NIOSSL
import Locks

/// Opens the ports.
struct ListenerFactory {
    let core: ServerCore
    let group: MultiThreadedEventLoopGroup
    let workers: [Worker]

    /// What waits for a client of HTTP/1.1 in its channel: about this much, and what was written last.
    private static let waterMark = ChannelOptions.Types.WriteBufferWaterMark(low: 16 << 10, high: 32 << 10)

    func plain(host: String, port: Int) async throws(GatewayError) -> any Channel {
        let find = finder()
        return try await bind(host, port) { channel in
            channel.eventLoop.makeCompletedFuture {
                try channel.syncOptions?.setOption(.writeBufferWaterMark, value: Self.waterMark)
                guard let worker = find(channel.eventLoop) else { throw ChannelError.operationUnsupported }
                let isWelcome = admit(channel, worker)
                let handler: any ChannelHandler = isWelcome ? HTTP1Handler(worker, isPlaintext: true) : BusyHandler()
                try channel.pipeline.syncOperations.addHandler(handler)
            }
        }
    }

    func admin(host: String, port: Int, reader: MetricsReader) async throws(GatewayError) -> any Channel {
        let count = SharedCount()
        return try await bind(host, port) { channel in
            channel.eventLoop.makeCompletedFuture {
                // Some may have descriptors that are kept for others: the figures are wanted when there are no more.
                let number = count.add(1)
                channel.closeFuture.whenComplete { _ in count.add(-1) }
                guard number <= Self.urgentAdmins || number <= Self.admins && channel.hasDescriptor else {
                    throw ChannelError.eof
                }
                try channel.pipeline.syncOperations.addHandler(AdminHandler(reader))
            }
        }
    }

    /// The most connections of the admin port.
    private static let admins = 128
    /// Of these, those that may have the last descriptors.
    private static let urgentAdmins = 8

    private final class SharedCount: Sendable {
        private let value = Atomic<Int>(0)

        @discardableResult
        func add(_ number: Int) -> Int { value.wrappingAdd(number, ordering: .relaxed).newValue }
    }

    /// The worker of an event loop.
    func finder() -> @Sendable (any EventLoop) -> Worker? {
        let table = Dictionary(uniqueKeysWithValues: workers.map { (ObjectIdentifier($0.eventLoop), $0) })
        return { table[ObjectIdentifier($0)] }
    }

    /// Counts a connection. Returns false for one that is too many.
    func admit(_ channel: any Channel, _ worker: Worker) -> Bool {
        let count = core.connectionCount.add(1, ordering: .relaxed).newValue
        let core = core
        channel.closeFuture.whenComplete { _ in core.connectionCount.subtract(1, ordering: .relaxed) }
        if count > core.connectionLimit || !channel.hasDescriptor {
            core.tellOfRefusal()
        } else if admitClient(channel) {
            return true
        }
        worker.counters.connectionsRefused += 1
        return false
    }

    private func admitClient(_ channel: any Channel) -> Bool {
        let address = channel.remoteAddress
        let isExempt = address?.isLoopback == true && !core.configuration.limits.limitsLoopback
        guard !isExempt, let client = ClientAddress(address) else { return true }
        guard core.clients.admit(client) else { return false }
        let core = core
        channel.closeFuture.whenComplete { _ in core.clients.left(client) }
        return true
    }

    func bind(
        _ host: String, _ port: Int, allowsHalfClosure: Bool = true,
        _ initializer: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) async throws(GatewayError) -> any Channel {
        let core = core
        do {
            return try await ServerBootstrap(group: group)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .serverChannelOption(.backlog, value: 4_096)
                .serverChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let acceptGuard = AcceptGuard(core.logger) {
                            core.acceptFailures.add(1, ordering: .relaxed)
                        }
                        try channel.pipeline.syncOperations.addHandler(acceptGuard)
                    }
                }
                .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
                .childChannelOption(.allowRemoteHalfClosure, value: allowsHalfClosure)
                // Otherwise each request costs another read(2) that finds nothing.
                .childChannelOption(.maxMessagesPerRead, value: 1)
                .childChannelInitializer(initializer)
                .bind(host: host, port: port).get()
        } catch {
            throw .cannotListen(host, port, error)
        }
    }
}

/// Tells a client that there are too many, and closes.
private final class BusyHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    func channelActive(context: ChannelHandlerContext) {
        let text = "Too many connections; try again later.\n"
        let answer =
            "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nRetry-After: 1\r\n"
            + "Connection: close\r\nContent-Length: \(text.utf8.count)\r\n\r\n" + text
        context.writeAndFlush(wrapOutboundOut(context.channel.allocator.buffer(string: answer)))
            .assumeIsolated().whenComplete { _ in context.close(promise: nil) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {}
}
