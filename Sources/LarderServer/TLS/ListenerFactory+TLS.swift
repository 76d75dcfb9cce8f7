import NIOCore
import NIOHTTP2
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
                try pipeline.addHandler(NIOSSLServerHandler(context: context.current))
                // A handshake has as much time as the head of a request.
                try pipeline.addHandler(HandshakeTimer(worker))
                try pipeline.addHandler(
                    ApplicationProtocolNegotiationHandler { result, channel in
                        channel.eventLoop.makeCompletedFuture {
                            if case .negotiated("h2") = result {
                                try Self.addHTTP2(channel, worker)
                            } else {
                                try channel.pipeline.syncOperations.addHandler(HTTP1Handler(worker, isPlaintext: false))
                            }
                        }
                    })
            }
        }
    }

    private static func addHTTP2(_ channel: any Channel, _ worker: Worker) throws {
        let limits = worker.core.configuration.limits
        let connection = HTTP2Connection(worker, channel)
        let bound = NIOLoopBound(connection, eventLoop: channel.eventLoop)
        var http2 = NIOHTTP2Handler.ConnectionConfiguration()
        // swift-nio-http2 ends the whole connection for a head over what it announces. So it announces more than the
        // gateway takes, and a head in between is answered with 431.
        let announced = min(max(4 * limits.headBytes, 256 << 10), 64 << 20)
        http2.initialSettings = [
            HTTP2Setting(parameter: .maxConcurrentStreams, value: limits.streams),
            HTTP2Setting(parameter: .maxHeaderListSize, value: announced),
        ]
        // As many frames as such a head has, with room for clients that do not fill them.
        http2.maximumSequentialContinuationFrames = max(5, 2 * announced / (16 << 10))
        // `ResetCount` is the limit: the library's ends the connection with a GOAWAY that says that no stream was
        // processed, and clients would send requests again that were.
        var streams = NIOHTTP2Handler.StreamConfiguration()
        streams.streamResetFrameRateLimit.maximumCount = 2 * ResetCount.limit
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(HTTP2FrameObserver(connection))
        _ = try pipeline.configureHTTP2Pipeline(
            mode: .server, connectionConfiguration: http2, streamConfiguration: streams
        ) { channel in
            channel.eventLoop.makeCompletedFuture { try bound.value.addStream(channel) }
        }
        try pipeline.addHandler(connection)
    }
}

/// Closes a connection that does not get through its handshake.
private final class HandshakeTimer: ChannelInboundHandler {
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
        if case TLSUserEvent.handshakeCompleted = event { timeout?.cancel() }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        timeout?.cancel()
        context.fireChannelInactive()
    }
}
