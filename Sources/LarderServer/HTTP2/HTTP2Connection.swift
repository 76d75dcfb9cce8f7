import NIOCore
import NIOHTTP2
import NIOHTTPTypesHTTP2

/// A client connection that speaks HTTP/2: takes the events of its channel, keeps the table of its streams, and ends.
///
/// Each owner below keeps its own state: ``HTTP2Flow`` how far the content has come, ``HTTP2Scheduler`` who may send,
/// ``HTTP2Deadlines`` the limits in time. ``addStream(_:)`` wires those of a stream: ``HTTP2StreamHandler``.
final class HTTP2Connection: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    private let worker: Worker
    private let channel: any Channel
    private let flow: HTTP2Flow
    private let scheduler: HTTP2Scheduler
    private var deadlines: HTTP2Deadlines
    private var streams: [Int: HTTP2StreamHandler] = [:]
    /// It takes no new streams.
    private var isLeaving = false
    private var hasBegun = false
    /// A GOAWAY with an error was sent.
    private var hasFailed = false
    private var resets = ResetCount()
    private var requestCount = 0
    private var lastStream = HTTP2StreamID.rootStream

    init(_ worker: Worker, _ channel: any Channel) {
        self.worker = worker
        self.channel = channel
        flow = HTTP2Flow()
        scheduler = HTTP2Scheduler(worker, channel, flow)
        deadlines = HTTP2Deadlines(worker.core.time.now())
    }

    var client: String { remoteAddress?.ipAddress ?? "local" }
    var isLoopback: Bool { remoteAddress?.isLoopback ?? false }

    // MARK: Wiring

    /// Adds the handlers that answer the request of a new stream.
    func addStream(_ channel: any Channel) throws {
        let id = try? channel.syncOptions?.getOption(HTTP2StreamChannelOptions.streamID)
        let output = HTTP2StreamOutput(id.map { Int($0) } ?? 0, worker, flow, scheduler)
        let content = HTTP2RequestContent()
        let responder = HTTP2Responder(worker, output, scheduler, content)
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(HTTP2FramePayloadToHTTPServerCodec())
        try pipeline.addHandler(HTTP2StreamHandler(worker, self, scheduler, output, content, responder))
    }

    // MARK: Channel events

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

    func channelReadComplete(context: ChannelHandlerContext) {
        flow.forget(over: 2 * streams.count + 64) { streams[$0] != nil }
        scheduler.send()
        context.fireChannelReadComplete()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable { scheduler.send() }
        context.fireChannelWritabilityChanged()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // An error of one stream arrives here, too; swift-nio-http2 has reset the stream, and the others continue. If
        // the connection is at fault, it has sent a GOAWAY that says so.
        if error is any NIOHTTP2Error, !hasFailed { return }
        context.close(promise: nil)
    }

    /// A frame has come from the client.
    func received(_ frame: HTTP2FrameScanner.Frame) {
        if frame.type == .reset { return countReset() }
        flow.received(frame)
    }

    /// A request that is cancelled as soon as it is sent costs more than it takes from the client (RFC 9113 section
    /// 10.5). A client with very many is cut off, without a word about what was processed: see ``ListenerFactory``.
    private func countReset() {
        guard resets.isTooMany(at: worker.core.time.now()) else { return }
        worker.core.logger.warning(
            "a client cancels too many requests: its connection is cut off",
            metadata: ["category": "connections", "client": "\(client)", "limit": "\(ResetCount.limit) in 30 s"])
        reset()
    }

    /// A frame is on its way to the client.
    func wrote(_ frame: HTTP2FrameScanner.Frame) {
        switch frame.type {
        case .data:
            flow.sent(Int64(frame.length), on: frame.stream)
            streams[frame.stream]?.wroteFrame(Int64(frame.length), isLast: frame.flags & 1 == 1)
        case .headers: streams[frame.stream]?.wroteHead()
        case .goAway:
            // RFC 9113 section 6.8: behind the last stream, the error code.
            if frame.number(at: 4) != 0 { hasFailed = true }
        case .reset, .settings, .windowUpdate:
            break
        }
    }

    // MARK: Streams

    func began(_ stream: HTTP2StreamHandler) {
        lastStream = HTTP2StreamID(stream.id)
        streams[stream.id] = stream
        requestCount += 1
        if requestCount >= worker.core.configuration.limits.requestsPerConnection { drain() }
    }

    func ended(_ stream: HTTP2StreamHandler) {
        streams[stream.id] = nil
        flow.forget(stream.id)
        deadlines.restart(worker.core.time.now())
        if isLeaving, streams.isEmpty { closeWhenWritten() }
    }

    // MARK: Endings

    /// The last frame of all: when it is written, so is everything before. ``tick(_:)`` sees to it that a client that
    /// does not read cannot put this off.
    private func closeWhenWritten() {
        goAway(lastStream).assumeIsolated().whenComplete { _ in self.channel.close(promise: nil) }
    }

    private func goAway(_ last: HTTP2StreamID) -> EventLoopFuture<Void> {
        channel.writeAndFlush(
            HTTP2Frame(
                streamID: .rootStream, payload: .goAway(lastStreamID: last, errorCode: .noError, opaqueData: nil)))
    }
}

extension HTTP2Connection: SupervisedConnection {
    var remoteAddress: SocketAddress? { channel.remoteAddress }
    var heldBytes: Int { Int(scheduler.held) }
    var progress: Int64 { deadlines.progress(taken: flow.taken) }

    func footprint(progress: Int64) -> Int {
        streams.values.reduce(heldBytes) { $0 + $1.footprint(isMoving: progress > 0) }
    }

    func tick(_ now: NIODeadline) {
        let situation = HTTP2Deadlines.Situation(
            hasStreams: !streams.isEmpty, isAllTaken: flow.isAllTaken, isBlocked: isBlocked, taken: flow.taken,
            unacknowledged: SendQueue.unacknowledged(channel))
        switch deadlines.check(situation, now, worker.core.configuration.limits) {
        case .isTooSlow:
            worker.counters.timeouts += 1
            abort()
        case .isIdle: drain()
        case .inTime: tickStreams(now)
        }
    }

    /// Whether something is there for the client that it does not take, for another reason than a stream's own window.
    private var isBlocked: Bool { !flow.isAllTaken || SendQueue.pending(channel) > 0 || scheduler.isOutOfWindow }

    private func tickStreams(_ now: NIODeadline) {
        let isProgressing = streams.values.contains(where: \.isProgressing)
        var isStalled = false
        for stream in streams.values where stream.tick(now) { isStalled = true }
        // Not one of its streams gets on: what it asks for next would not either.
        if isStalled, !isProgressing { drain() }
    }

    /// No new streams; those that are open end as they would. RFC 9113 section 6.8: "a server that is attempting to
    /// gracefully shut down a connection SHOULD send an initial GOAWAY frame with the last stream identifier set to
    /// 2^31-1".
    func drain() {
        guard !isLeaving else { return }
        isLeaving = true
        deadlines.restart(worker.core.time.now())
        goAway(.maxID).assumeIsolated().whenComplete { _ in
            if self.streams.isEmpty { self.closeWhenWritten() }
        }
    }

    func abort() { reset() }

    /// What was not taken is lost to a client that is cut off in the middle.
    func reset() {
        scheduler.isCutOff = true
        channel.reset()
    }
}
