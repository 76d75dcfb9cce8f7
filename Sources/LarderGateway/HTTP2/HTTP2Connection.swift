import NIOCore
import NIOHTTP2

/// A client connection that speaks HTTP/2: watches over its streams, which have handlers of their own.
final class HTTP2Connection: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    private let worker: Worker
    private let channel: any Channel
    private var streams: [ObjectIdentifier: HTTP2StreamHandler] = [:]
    private var since: NIODeadline
    private var isLeaving = false
    private var hasBegun = false
    var requestCount = 0

    init(_ worker: Worker, _ channel: any Channel) {
        self.worker = worker
        self.channel = channel
        since = worker.core.time.now()
    }

    var client: String { channel.remoteAddress?.ipAddress ?? "local" }
    var isLoopback: Bool { channel.remoteAddress?.isLoopback ?? false }

    func handlerAdded(context: ChannelHandlerContext) {
        // Added when the handshake is over, on a connection that is active.
        guard !hasBegun else { return }
        hasBegun = true
        worker.add(self)
        if worker.isDraining { drain() }
    }

    func channelInactive(context: ChannelHandlerContext) {
        worker.remove(self)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    // MARK: Streams

    func began(_ stream: HTTP2StreamHandler) {
        streams[ObjectIdentifier(stream)] = stream
        requestCount += 1
        if requestCount >= worker.core.configuration.limits.requestsPerConnection { drain() }
    }

    func ended(_ stream: HTTP2StreamHandler) {
        streams[ObjectIdentifier(stream)] = nil
        since = worker.core.time.now()
        if isLeaving, streams.isEmpty { channel.close(promise: nil) }
    }
}

extension HTTP2Connection: SupervisedConnection {
    func tick(_ now: NIODeadline) {
        for stream in streams.values { stream.tick(now) }
        if streams.isEmpty, now - since > TimeAmount(worker.core.configuration.limits.idleTimeout) { drain() }
    }

    /// GOAWAY (RFC 9113 section 6.8): no new streams; those that are open end as they would.
    func drain() {
        guard !isLeaving else { return }
        isLeaving = true
        let frame = HTTP2Frame(
            streamID: .rootStream,
            payload: .goAway(lastStreamID: .maxID, errorCode: .noError, opaqueData: nil))
        channel.writeAndFlush(frame).assumeIsolated().whenComplete { _ in
            if self.streams.isEmpty { self.channel.close(promise: nil) }
        }
    }

    func abort() { channel.close(promise: nil) }
}
