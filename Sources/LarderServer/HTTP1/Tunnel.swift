import NIOCore
import NIOPosix

/// The connection of the client that asked for a tunnel. On the tunnel's event loop only.
protocol TunnelClient: AnyObject {
    /// Whether the client takes more at once.
    var takesMore: Bool { get }
    /// The host cannot be reached.
    func tunnelFailed()
    /// The host is connected.
    func tunnelStands()
    /// The host has sent bytes.
    func tunnelReceived(_ bytes: ByteBuffer)
    /// The host sends no more.
    func tunnelPeerFinished()
    /// The host takes more.
    func tunnelTakesMore()
    /// The connection to the host has ended.
    func tunnelOver()
}

/// Bytes between a client and the host it asked for with CONNECT (RFC 9110 section 9.3.6). Each direction ends on its
/// own, and none is read faster than the other side takes.
///
/// Both connections are on one event loop, and everything here is used on it only.
final class Tunnel {
    private weak var client: (any TunnelClient)?
    private var peer: (any Channel)?
    private var resolver: TunnelResolver?
    private var isOver = false
    private var hasPeerFinished = false
    private var hasClientFinished = false

    init(_ client: any TunnelClient) { self.client = client }

    // MARK: From the client

    func connect(host: String, port: Int, timeout: Duration, on eventLoop: any EventLoop) {
        let tunnel = NIOLoopBound(self, eventLoop: eventLoop)
        let resolver = TunnelResolver(eventLoop)
        self.resolver = resolver
        ClientBootstrap(group: eventLoop)
            .resolver(resolver)
            .connectTimeout(TimeAmount(timeout))
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelOption(.autoRead, value: false)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard channel.hasDescriptor else { throw IOError(errnoCode: EMFILE, reason: "socket") }
                    try channel.pipeline.syncOperations.addHandler(TunnelPeerHandler(tunnel.value))
                }
            }
            .connect(host: host, port: port)
            .assumeIsolated()
            .whenComplete { result in
                self.resolver = nil
                switch result {
                case .failure: self.client?.tunnelFailed()
                case .success(let channel): self.connected(channel)
                }
            }
    }

    private func connected(_ channel: any Channel) {
        guard !isOver, let client else { return channel.close(promise: nil) }
        peer = channel
        client.tunnelStands()
        channel.setOption(.autoRead, value: true).whenFailure { _ in channel.close(promise: nil) }
    }

    /// Whether the host takes more.
    var takesMore: Bool { peer?.isWritable ?? false }

    func send(_ bytes: ByteBuffer) {
        guard let peer, bytes.readableBytes > 0 else { return }
        peer.writeAndFlush(bytes, promise: nil)
    }

    func clientFinished() {
        hasClientFinished = true
        guard let peer else { return }
        // When both directions have ended NIO closes at once, and what is still to be written is lost: so it is first
        // waited for.
        peer.writeAndFlush(ByteBuffer()).assumeIsolated().whenComplete { _ in
            peer.close(mode: .output, promise: nil)
            self.endIfFinished()
        }
    }

    func clientTakesMore() {
        // Reads that were held back are asked for again.
        peer?.read()
    }

    func clientLeft() {
        isOver = true
        client = nil
        resolver?.cancelQueries()
        resolver = nil
        peer?.close(promise: nil)
        peer = nil
    }

    // MARK: From the host

    fileprivate var clientTakes: Bool { client?.takesMore ?? true }

    fileprivate func received(_ bytes: ByteBuffer) { client?.tunnelReceived(bytes) }

    fileprivate func peerFinished() {
        hasPeerFinished = true
        client?.tunnelPeerFinished()
        endIfFinished()
    }

    fileprivate func peerTakesMore() { client?.tunnelTakesMore() }

    fileprivate func peerLeft() {
        guard !isOver else { return }
        isOver = true
        client?.tunnelOver()
    }

    private func endIfFinished() {
        if hasClientFinished && hasPeerFinished { peerLeft() }
    }
}

/// The connection to the host.
private final class TunnelPeerHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer

    private let tunnel: Tunnel

    init(_ tunnel: Tunnel) { self.tunnel = tunnel }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { tunnel.received(unwrapInboundIn(data)) }

    func read(context: ChannelHandlerContext) {
        if tunnel.clientTakes { context.read() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event { tunnel.peerFinished() }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable { tunnel.peerTakesMore() }
    }

    func channelInactive(context: ChannelHandlerContext) { tunnel.peerLeft() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
