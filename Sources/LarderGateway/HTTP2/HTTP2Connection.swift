import NIOCore
import NIOHTTP2

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// A client connection that speaks HTTP/2: watches over its streams, which have handlers of their own, and says which
/// of them may send.
final class HTTP2Connection: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    let worker: Worker
    let channel: any Channel
    var windows = HTTP2Windows()
    private(set) var streams: [Int: HTTP2StreamHandler] = [:]
    /// The gateway ends the connection, not the client.
    private(set) var isCutOff = false
    /// Streams whose answer has begun and not ended, in turn.
    var sending = CircularBuffer<HTTP2StreamHandler>()
    var isSending = false
    /// Something changed while ``send()`` was at it.
    var hasChanged = false
    /// Something waits for memory.
    var lacksMemory = false
    /// Streams whose requests wait for memory.
    var waiting = CircularBuffer<HTTP2StreamHandler>()
    /// Content that swift-nio-http2 has and has not put into frames yet, in bytes.
    var queued: Int64 = 0
    /// Content that is in memory for the client, from the store or the origin to the kernel, in bytes.
    private(set) var held: Int64 = 0
    /// What open files count as.
    private(set) var files: Int64 = 0
    /// Content that has been handed over, and what of it the kernel has taken, in bytes.
    var handedOver: Int64 = 0
    var taken: Int64 = 0

    var since: NIODeadline
    /// How fast the client takes what is sent.
    var outboundWatch = AcknowledgementWatch()
    /// What the client took between the last two looks, and by the last, in bytes.
    var lastProgress: Int64 = 0
    var takenAtLastLook: Int64 = 0
    private(set) var isLeaving = false
    private var hasBegun = false
    /// A GOAWAY with an error was sent.
    private var hasFailed = false
    private var requestCount = 0
    private var lastStream = HTTP2StreamID.rootStream

    init(_ worker: Worker, _ channel: any Channel) {
        self.worker = worker
        self.channel = channel
        since = worker.core.time.now()
    }

    /// What is in memory for the client, in bytes.
    var heldBytes: Int { Int(held) }
    var progress: Int64 { lastProgress + taken - takenAtLastLook }
    func footprint(progress: Int64) -> Int {
        streams.values.reduce(heldBytes) { sum, stream in
            sum + (stream.inlet?.heldBytes ?? 0) + (stream.delivery?.loadBytes(isMoving: progress > 0) ?? 0)
        }
    }
    var remoteAddress: SocketAddress? { channel.remoteAddress }
    var client: String { remoteAddress?.ipAddress ?? "local" }
    var isLoopback: Bool { remoteAddress?.isLoopback ?? false }

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
        windows.forget(over: 2 * streams.count + 64) { streams[$0] != nil }
        send()
        context.fireChannelReadComplete()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable { send() }
        context.fireChannelWritabilityChanged()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // An error of one stream arrives here, too; swift-nio-http2 has reset the stream, and the others continue. If
        // the connection is at fault, it has sent a GOAWAY that says so.
        if error is any NIOHTTP2Error, !hasFailed { return }
        context.close(promise: nil)
    }

    /// A frame is on its way to the client.
    func wrote(_ frame: HTTP2FrameScanner.Frame) {
        switch frame.type {
        case .data:
            windows.sent(Int64(frame.length), on: frame.stream)
            streams[frame.stream]?.wroteFrame(Int64(frame.length), isLast: frame.flags & 1 == 1)
        case .goAway:
            // RFC 9113 section 6.8: behind the last stream, the error code.
            if frame.number(at: 4) != 0 { hasFailed = true }
        case .settings, .windowUpdate:
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
        windows.forget(stream.id)
        sending.removeAll { $0 === stream }
        waiting.removeAll { $0 === stream }
        since = worker.core.time.now()
        if isLeaving, streams.isEmpty { closeWhenWritten() }
    }

    /// More or less is in memory for the client, and open.
    func hold(_ bytes: Int64, files count: Int64) {
        held += bytes
        files += count
        worker.counters.bytesHeld += bytes
        worker.core.memory.add(Int(bytes))
        guard lacksMemory, bytes < 0 || count < 0 else { return }
        lacksMemory = false
        send()
    }

    // MARK: Endings

    /// No new streams; those that are open end as they would. RFC 9113 section 6.8: "a server that is attempting to
    /// gracefully shut down a connection SHOULD send an initial GOAWAY frame with the last stream identifier set to
    /// 2^31-1".
    func drain() {
        guard !isLeaving else { return }
        isLeaving = true
        since = worker.core.time.now()
        goAway(.maxID).assumeIsolated().whenComplete { _ in
            if self.streams.isEmpty { self.closeWhenWritten() }
        }
    }

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

    func abort() { reset() }

    /// What was not taken is lost to a client that is cut off in the middle.
    func reset() {
        isCutOff = true
        channel.reset()
    }
}
