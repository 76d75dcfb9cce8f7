import HTTPTypes
import LarderHTTP
import NIOCore
import NIOHTTP2

/// One exchange on a stream of HTTP/2 (RFC 9113 section 8.1).
// SAFETY: everything that changes is read and changed on `loop` only, the channel's: by the channel's events, and by
// what `Connection` executes there; the latter asserts it.
final class HTTP2StreamHandler: ChannelInboundHandler, ExchangeHandler, @unchecked Sendable {
    typealias InboundIn = HTTP2Frame.FramePayload
    typealias OutboundOut = HTTP2Frame.FramePayload

    /// Content that is read ahead of who takes it; as much again as the window waits in the stream.
    private static let readAheadBytes = 64 << 10
    /// What is handed to the stream at once, so that its progress can be seen.
    private static let sliceBytes = 64 << 10

    let endpoint: NIOTransport.Endpoint
    private(set) weak var session: HTTP2SessionHandler?
    var exchange: Exchange?
    /// Content that the final head declared, or that the response cannot have; nil where nothing says.
    var expected: Int64?
    var received: Int64 = 0
    /// Whether the final head has come.
    var hasHead = false
    /// Whether anything has come.
    var isAnswered = false
    private var context: ChannelHandlerContext?
    private var isClosed = false
    private var fault: (any Error)?
    /// What arrived and was not read yet, as an interim response is waiting before it.
    private var arrived: [HTTP2Frame.FramePayload] = []
    var pendingWrites = 0
    private var began = NIODeadline.now()
    let loop: any EventLoop
    private lazy var timer = DeadlineTimer(loop) { [weak self] in self?.timeLimitPassed() }

    init(_ endpoint: NIOTransport.Endpoint, _ session: HTTP2SessionHandler, _ loop: any EventLoop) {
        self.endpoint = endpoint
        self.session = session
        self.loop = loop
    }

    // MARK: The stream's life

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        session?.heard = .now()
        arrived.append(unwrapInboundIn(data))
        process()
        if hasHead { setTimeLimit() }
    }

    func channelReadComplete(context: ChannelHandlerContext) { readOn() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if fault == nil { fault = error }
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        isClosed = true
        timer.cancel()
        process()
    }

    private func close() { context?.close(promise: nil) }

    // MARK: The exchange

    func start(_ exchange: Exchange, _ waiter: Exchange.Waiter<Exchange.HeadEvent>) {
        loop.assertInEventLoop()
        if let error = exchange.abortion {
            close()
            return waiter.resume(returning: .failure(error))
        }
        guard !isClosed, let context else { return waiter.resume(returning: .success(.stale)) }
        self.exchange = exchange
        exchange.headWaiter = waiter
        exchange.hasBegun = true
        began = .now()
        let message = exchange.message
        let content = message.start[message.contentStart...]
        exchange.isRequestComplete = message.stream == nil
        let head = HTTP2Frame.FramePayload.headers(
            .init(headers: message.head.hpack, endStream: message.stream == nil && content.isEmpty))
        let sent = loop.makePromise(of: Void.self)
        sent.futureResult.whenFailure { error in
            // The library would not send it: the session had ended. What the network did shows in the stream's end.
            if error is any NIOHTTP2Error { self.notSent(exchange) }
        }
        context.write(wrapOutboundOut(head), promise: sent)
        if !content.isEmpty { enqueue(content, isLast: true, nil) }
        context.flush()
        if let body = message.stream, self.exchange === exchange {
            exchange.upload = Task { await Upload(body: body, exchange: exchange).run() }
        }
        setTimeLimit()
        readOn()
    }

    private func notSent(_ exchange: Exchange) {
        guard self.exchange === exchange, !isAnswered, let waiter = exchange.headWaiter else { return }
        self.exchange = nil
        exchange.headWaiter = nil
        exchange.upload?.cancel()
        close()
        // Content that was taken from its source is gone.
        guard exchange.message.isReplayable else {
            return waiter.resume(
                returning: .failure(
                    TransportError(
                        .closed, mayHaveBeenSeen: false, endpoint: "\(endpoint)",
                        "\(endpoint) closed the connection at once")))
        }
        waiter.resume(returning: .success(.stale))
    }

    func isCurrent(_ exchange: Exchange) -> Bool { self.exchange === exchange }

    func abort(_ exchange: Exchange, _ error: TransportError) {
        if exchange.hasBegun { fail(exchange, error) } else { exchange.abortion = error }
    }

    /// The exchange fails, and the stream is reset.
    func fail(_ exchange: Exchange, _ error: TransportError) {
        guard self.exchange === exchange else { return }
        self.exchange = nil
        exchange.failure = error
        exchange.upload?.cancel()
        close()
        exchange.deliver()
    }

    /// The response has ended.
    func finish(_ exchange: Exchange) {
        self.exchange = nil
        exchange.isEnded = true
        exchange.upload?.cancel()
        timer.set(nil)
        // A stream whose request has ended closes by itself; any other is reset.
        if !exchange.isRequestComplete { close() }
    }

    // MARK: Reading

    /// Asks for more where there is use for it.
    func readOn() {
        guard !isClosed, let exchange else { return }
        let wants = hasHead ? exchange.waitingBytes < Self.readAheadBytes : exchange.headWaiter != nil
        if wants { context?.read() }
    }

    /// Reads what has arrived, and gives it to the task that waits.
    func process() {
        guard let exchange else { return }
        while self.exchange === exchange, exchange.interim == nil, !arrived.isEmpty {
            do throws(TransportError) {
                try take(arrived.removeFirst(), exchange)
            } catch {
                return fail(exchange, error)
            }
            // An interim response goes before what is behind it.
            if exchange.interim != nil { exchange.deliver() }
        }
        if self.exchange === exchange, isClosed, arrived.isEmpty {
            return fail(exchange, ending(fault ?? session?.fault))
        }
        exchange.deliver()
    }

    // MARK: Writing

    func writeContent(_ bytes: [UInt8], _ exchange: Exchange, _ waiter: CheckedContinuation<Bool, Never>) {
        // A final head says that the server has read all it wants.
        guard self.exchange === exchange, !hasHead, !isClosed else { return waiter.resume(returning: false) }
        exchange.sent += Int64(bytes.count)
        enqueue(bytes[...], isLast: false, waiter)
        context?.flush()
        setTimeLimit()
    }

    func endRequest(_ exchange: Exchange) {
        guard self.exchange === exchange, !hasHead, !isClosed else { return }
        exchange.isRequestComplete = true
        enqueue([], isLast: true, nil)
        context?.flush()
        setTimeLimit()
    }

    /// - Parameters:
    ///   - isLast: ends the request.
    ///   - waiter: resumed when the system has taken the last byte; with false if it will not.
    private func enqueue(_ bytes: ArraySlice<UInt8>, isLast: Bool, _ waiter: CheckedContinuation<Bool, Never>?) {
        guard let context else {
            waiter?.resume(returning: false)
            return
        }
        var rest = bytes
        repeat {
            let slice = rest.prefix(Self.sliceBytes)
            rest = rest.dropFirst(slice.count)
            let isEnd = rest.isEmpty
            let promise = loop.makePromise(of: Void.self)
            follow(promise, isEnd ? waiter : nil)
            let data = HTTP2Frame.FramePayload.Data(
                data: .byteBuffer(context.channel.allocator.buffer(bytes: slice)), endStream: isLast && isEnd)
            context.write(wrapOutboundOut(.data(data)), promise: promise)
        } while !rest.isEmpty
    }

    // MARK: Time

    /// Starts the time limit of what is waited for now.
    func setTimeLimit() {
        guard let exchange, !isClosed else { return }
        timer.set(exchange.timeLimit(isSending: pendingWrites > 0 && !hasHead).map { TimeAmount($0) })
    }

    private func timeLimitPassed() {
        guard let exchange else { return }
        let what =
            pendingWrites > 0 && !hasHead
            ? "did not take the request" : hasHead ? "sent no more content" : "did not answer"
        // Not a sign of life on the whole connection since: it may be dead, and would take every request with it.
        if let session, session.heard < began { session.leave() }
        fail(
            exchange,
            TransportError(.timedOut, mayHaveBeenSeen: true, endpoint: "\(endpoint)", "\(endpoint) \(what) in time"))
    }
}
