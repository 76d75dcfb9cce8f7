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
    private var requestCount = 0
    private var lastStream = HTTP2StreamID.rootStream

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

    func began(_ stream: HTTP2StreamHandler, id: HTTP2StreamID?) {
        lastStream = id ?? lastStream
        streams[ObjectIdentifier(stream)] = stream
        requestCount += 1
        if requestCount >= worker.core.configuration.limits.requestsPerConnection { drain() }
    }

    func ended(_ stream: HTTP2StreamHandler) {
        streams[ObjectIdentifier(stream)] = nil
        since = worker.core.time.now()
        if isLeaving, streams.isEmpty { closeWhenWritten() }
    }
}

extension HTTP2Connection: SupervisedConnection {
    func tick(_ now: NIODeadline) {
        for stream in streams.values { stream.tick(now) }
        if streams.isEmpty, now - since > TimeAmount(worker.core.configuration.limits.idleTimeout) { drain() }
    }

    /// No new streams; those that are open end as they would. RFC 9113 section 6.8: "a server that is attempting to
    /// gracefully shut down a connection SHOULD send an initial GOAWAY frame with the last stream identifier set to
    /// 2^31-1".
    func drain() {
        guard !isLeaving else { return }
        isLeaving = true
        goAway(.maxID).assumeIsolated().whenComplete { _ in
            if self.streams.isEmpty { self.closeWhenWritten() }
        }
    }

    /// The last frame of all: when it is written, so is everything before.
    private func closeWhenWritten() {
        goAway(lastStream).assumeIsolated().whenComplete { _ in self.channel.close(promise: nil) }
    }

    private func goAway(_ last: HTTP2StreamID) -> EventLoopFuture<Void> {
        channel.writeAndFlush(
            HTTP2Frame(
                streamID: .rootStream, payload: .goAway(lastStreamID: last, errorCode: .noError, opaqueData: nil)))
    }

    func abort() { channel.close(promise: nil) }
}
