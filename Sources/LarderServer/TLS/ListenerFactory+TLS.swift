import NIOCore
import NIOSSL
import NIOTLS

/// The port with TLS: HTTP/2 or HTTP/1.1, as the client chooses (ALPN, RFC 7301).
extension ListenerFactory {
    func tls(
        host: String, settings: GatewayTLS, context: ServerTLS
    ) async throws(GatewayError) -> any Channel {
        let find = finder()
        // TLS ends a connection as a whole.
        return try await bind(host, settings.port, allowsHalfClosure: false) { channel in
            channel.eventLoop.makeCompletedFuture {
                guard let worker = find(channel.eventLoop) else { throw ChannelError.operationUnsupported }
                // To say more would take a handshake, which is what a gateway that is busy has no time for.
                guard admit(channel, worker) else { throw ChannelError.eof }
                let pipeline = channel.pipeline.syncOperations
                try pipeline.addHandler(TLSRecordWriter())
                try pipeline.addHandler(NIOSSLServerHandler(context: context.current))
                // A handshake has as much time as the head of a request.
                try pipeline.addHandler(HandshakeTimer(worker))
                try pipeline.addHandler(
                    ApplicationProtocolNegotiationHandler { result, channel in
                        channel.eventLoop.makeCompletedFuture {
                            if case .negotiated("h2") = result {
                                try channel.pipeline.syncOperations.addHandler(HTTP2Connection(worker, channel))
                            } else {
                                try channel.pipeline.syncOperations.addHandler(HTTP1Handler(worker, isPlaintext: false))
                            }
                        }
                    })
            }
        }
    }
}

/// Closes a connection that does not get through its handshake.
private final class HandshakeTimer: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private let worker: Worker
    private var timeout: Scheduled<Void>?

    init(_ worker: Worker) { self.worker = worker }

    func channelActive(context: ChannelHandlerContext) {
        let limit = TimeAmount(worker.core.configuration.limits.headTimeout)
        timeout = context.eventLoop.assumeIsolated().scheduleTask(in: limit) {
            self.worker.counters.timeouts += 1
            context.close(promise: nil)
        }
        context.fireChannelActive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        context.fireUserInboundEventTriggered(event)
        guard case TLSUserEvent.handshakeCompleted = event else { return }
        timeout?.cancel()
        // Each event of the connection would pass through here.
        context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        timeout?.cancel()
        context.fireChannelInactive()
    }
}
