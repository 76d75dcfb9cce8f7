import HTTPTypes
import HTTPWire
import LarderHTTP
import NIOCore

/// A client connection that speaks HTTP/1.1.
///
/// Requests are read, answered and followed by the next in order; what is in the store is answered before the read
/// returns. Everything that came in one read goes out in one write, as far as it is in memory.
final class HTTP1Handler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    enum Phase {
        /// Waiting for a head, or in the middle of one.
        case head
        /// A request is being read or answered.
        case exchange
        /// All is said; the client is given time to read it before the connection is closed.
        case lingering
        /// Bytes go to and fro.
        case tunnel
        case over
    }

    /// The request that is being read or answered. Apart from the handler, so that idle connections have no room for it.
    final class Current {
        var record: RequestRecord
        let method: HTTPRequest.Method
        let version: HTTPVersion
        /// The connection is closed after the answer.
        var closes: Bool
        /// Reads the content; nil when the request is complete.
        var content: BodyDecoder?
        var contentReceived: Int64 = 0
        var inlet: BodyInlet?
        /// The client waits for 100 before it sends content.
        var owesContinue: Bool
        /// The head of the final answer is written.
        var hasBegun = false
        /// The final answer is written.
        var isAnswered = false
        var isChunked = false

        init(
            _ record: RequestRecord, method: HTTPRequest.Method, version: HTTPVersion, closes: Bool,
            content: BodyDecoder?, owesContinue: Bool
        ) {
            self.record = record
            self.method = method
            self.version = version
            self.closes = closes
            self.content = content
            self.owesContinue = owesContinue
        }
    }

    let worker: Worker
    let scheme: String
    /// TLS takes no files.
    let isPlaintext: Bool
    var phase = Phase.head
    var input = ByteBuffer()
    var scanner: HeadScanner
    var current: Current?
    var delivery: Delivery?
    var tunnel: Tunnel?
    var context: ChannelHandlerContext?
    var requestCount = 0
    var client = "-"
    var isLoopback = false
    private var hasPendingRead = false
    var isAdvancing = false
    /// Something was handed to the channel that has not been flushed.
    var hasUnflushed = false
    var hasInputEnded = false

    /// Since when the phase lasts, as far as limits in time need it.
    var since: NIODeadline
    /// When the first byte of an incomplete head was seen.
    var headBegan: NIODeadline?
    /// Bytes handed to the channel.
    var bytesQueued: Int64 = 0
    /// Bytes received by the time of the last look.
    var bytesReceived: Int64 = 0
    /// Of ``bytesQueued``, those that the system is known to have.
    var bytesTaken: Int64 = 0
    /// Of these, those that the client's system is known to have.
    var bytesAcknowledged: Int64 = 0
    /// Answers that wait for the system, in order.
    var unsent: [UnsentAnswer] = []
    /// Of the content that arrives, what the channel has no room for.
    var rest: ArraySlice<UInt8> = []
    /// Writes under way that cost this connection no memory: of files, and of bodies that are shared.
    var bulkWrites = 0
    /// Of these, bytes of bodies that are shared.
    var lentBytes = 0
    /// What the memory budget counts for this connection, in bytes.
    var heldBytes = 0
    /// Bytes that the client took and sent between the last two looks, and by the last.
    var lastProgress: Int64 = 0
    var movedAtLastLook: Int64 = 0
    /// Until when the client has done its part, by the bytes it has taken.
    var outboundMark: RateMark?
    var inboundMark: RateMark?
    var lingered = 0

    init(_ worker: Worker, isPlaintext: Bool) {
        self.worker = worker
        self.isPlaintext = isPlaintext
        scheme = isPlaintext ? "http" : "https"
        scanner = HeadScanner(limits: worker.core.headLimits, isRequest: true)
        since = worker.core.time.now()
    }

    // MARK: Channel events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { begin(context) }
    }

    func channelActive(context: ChannelHandlerContext) {
        begin(context)
        context.fireChannelActive()
    }

    private func begin(_ context: ChannelHandlerContext) {
        guard client == "-" else { return }
        client = context.remoteAddress?.ipAddress ?? "local"
        isLoopback = context.remoteAddress?.isLoopback ?? false
        worker.add(self)
        if worker.isDraining { close(context) }
    }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelInactive(context: ChannelHandlerContext) {
        leave()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        enter()
        // What is held goes to this channel before anything else can happen on the event loop.
        defer { append(to: context) }
        var bytes = unwrapInboundIn(data)
        worker.counters.bytesIn += UInt64(bytes.readableBytes)
        bytesReceived += Int64(bytes.readableBytes)
        switch phase {
        case .tunnel:
            tunnel?.send(bytes)
        case .lingering:
            lingered += bytes.readableBytes
            if lingered > Self.lingeringLimit { close(context) }
        case .head, .exchange:
            if input.readableBytes == 0 { input = bytes } else { input.writeBuffer(&bytes) }
            advance(context)
        case .over:
            break
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        flush(context)
        context.fireChannelReadComplete()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable {
            writeRest(context)
            delivery?.resume()
            tunnel?.clientTakesMore()
            advance(context)
            flush(context)
            resumeReading(context)
        }
        context.fireChannelWritabilityChanged()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case ChannelEvent.inputClosed = event else { return context.fireUserInboundEventTriggered(event) }
        inputEnded(context)
    }

    /// The client sends no more. Between requests it has left; while it waits for an answer, too, as far as can be told:
    /// a client that closes its socket sends the same packet as one that only closes one direction of it.
    private func inputEnded(_ context: ChannelHandlerContext) {
        hasInputEnded = true
        if !unsent.isEmpty || current != nil { noteTaken(context) }
        switch phase {
        case .head: closeWhenWritten(context)
        case .exchange:
            if let current, current.isAnswered || (current.hasBegun && current.content == nil) { return }
            close(context)
        case .lingering: close(context)
        case .tunnel: tunnel?.clientFinished()
        case .over: break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // Of the connection or of TLS: there is nobody to tell.
        close(context)
    }

    // MARK: Reading no faster than needed

    func read(context: ChannelHandlerContext) {
        if wantsToRead(context) { context.read() } else { hasPendingRead = true }
    }

    func resumeReading(_ context: ChannelHandlerContext) {
        guard hasPendingRead, wantsToRead(context) else { return }
        hasPendingRead = false
        context.read()
    }

    private func wantsToRead(_ context: ChannelHandlerContext) -> Bool {
        switch phase {
        case .head: context.channel.isWritable
        case .exchange:
            if let current, current.content != nil {
                current.inlet?.takesMore ?? true
            } else {
                // To see the client leave; what it sends meanwhile waits, up to a limit.
                input.readableBytes < Self.pipelineLimit
            }
        case .tunnel: tunnel?.takesMore ?? true
        case .lingering, .over: true
        }
    }

    private static let pipelineLimit = 64 << 10
    private static let lingeringLimit = 1 << 20

    // MARK: Endings

    /// Writes what is held, tells the client that nothing follows, and closes when it has had time to read.
    ///
    /// RFC 9112 section 9.6: a server that closes while the client is still sending makes the client's system throw away
    /// what it has received; so "servers typically close a connection in stages".
    func closeInStages(_ context: ChannelHandlerContext) {
        guard phase != .lingering, phase != .over else { return }
        phase = .lingering
        current = nil
        since = worker.core.time.now()
        input.clear()
        guard isPlaintext, !hasInputEnded else { return closeWhenWritten(context) }
        flush(context)
        context.close(mode: .output, promise: nil)
        resumeReading(context)
    }

    /// Closes when everything is with the kernel.
    func closeWhenWritten(_ context: ChannelHandlerContext) {
        guard phase != .over else { return }
        phase = .lingering
        since = worker.core.time.now()
        append(to: context)
        context.writeAndFlush(wrapOutboundOut(.byteBuffer(ByteBuffer()))).assumeIsolated().whenComplete { _ in
            self.close(context)
        }
    }

    func close(_ context: ChannelHandlerContext) {
        leave()
        context.close(promise: nil)
    }

    /// Everything that ends with the connection.
    func leave() {
        guard phase != .over else { return }
        if !unsent.isEmpty || current != nil, let context { noteTaken(context) }
        phase = .over
        rest = []
        delivery?.cancel()
        delivery = nil
        tunnel?.clientLeft()
        tunnel = nil
        if let current {
            current.inlet?.fail()
            if !current.isAnswered {
                worker.counters.clientAborts += 1
                logCut(current.record, end: bytesQueued)
            }
        }
        current = nil
        logUnsent()
        setHeld(0)
        worker.remove(self)
    }
}

extension SocketAddress {
    /// 127.0.0.0/8, ::1, and the former written as IPv6.
    var isLoopback: Bool {
        guard let text = ipAddress else { return false }
        return text == "::1" || text.hasPrefix("127.") || text.hasPrefix("::ffff:127.")
    }
}
