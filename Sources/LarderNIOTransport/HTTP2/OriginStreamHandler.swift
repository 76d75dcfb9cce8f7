import LarderHTTP
import NIOCore
import NIOHTTP2

/// One exchange on a stream of HTTP/2 (RFC 9113 section 8.1).
///
/// Each owner below keeps its own state: ``HTTP2ResponseReader`` the response as far as it has come, ``RequestWriter``
/// what goes out, ``DeadlineTimer`` the time limit, ``Exchange`` the request and what its task waits for.
// SAFETY: everything that changes is read and changed on `loop` only, the channel's: by the channel's events, and by
// what `Connection` executes there; the latter asserts it.
final class OriginStreamHandler: ChannelInboundHandler, ExchangeHandler, @unchecked Sendable {
    typealias InboundIn = HTTP2Frame.FramePayload
    typealias OutboundOut = HTTP2Frame.FramePayload

    /// Content that is read ahead of who takes it; as much again as the window waits in the stream.
    private static let readAheadBytes = 64 << 10
    let loop: any EventLoop
    private let endpoint: NIOTransport.Endpoint
    private weak var session: HTTP2SessionHandler?
    private var context: ChannelHandlerContext?
    private var isClosed = false
    /// What the stream reported before it closed.
    private var fault: (any Error)?
    /// The exchange that is under way.
    private var exchange: Exchange?
    private var began = NIODeadline.now()
    /// What arrived and was not read yet, as an interim response is waiting before it.
    private var arrived: [HTTP2Frame.FramePayload] = []
    private var reader: HTTP2ResponseReader
    private lazy var writer = RequestWriter(loop) { [weak self] in self?.setTimeLimit() }
    private lazy var timer = DeadlineTimer(loop) { [weak self] in self?.timeLimitPassed() }

    init(_ endpoint: NIOTransport.Endpoint, _ session: HTTP2SessionHandler, _ loop: any EventLoop) {
        self.endpoint = endpoint
        self.session = session
        self.loop = loop
        reader = HTTP2ResponseReader(endpoint)
    }

    // MARK: The stream's life

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        session?.heard = .now()
        arrived.append(unwrapInboundIn(data))
        process()
        if reader.hasHead { setTimeLimit() }
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
        exchange.begin(waiter)
        began = .now()
        let message = exchange.message
        let content = message.start[message.contentStart...]
        let head = HTTP2Frame.FramePayload.headers(
            .init(headers: message.head.hpack, endStream: message.stream == nil && content.isEmpty))
        let sent = loop.makePromise(of: Void.self)
        sent.futureResult.whenFailure { error in
            // The library would not send it: the session had ended. What the network did shows in the stream's end.
            if error is any NIOHTTP2Error { self.notSent(exchange) }
        }
        context.write(wrapOutboundOut(head), promise: sent)
        if !content.isEmpty { write(content, isLast: true) }
        context.flush()
        if self.exchange === exchange { exchange.startUpload() }
        setTimeLimit()
        readOn()
    }

    private func notSent(_ exchange: Exchange) {
        guard self.exchange === exchange, !reader.isAnswered, let waiter = exchange.withdraw() else { return }
        self.exchange = nil
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
        if exchange.hasBegun { fail(exchange, error) } else { exchange.giveUp(error) }
    }

    /// The exchange fails, and the stream is reset.
    private func fail(_ exchange: Exchange, _ error: TransportError) {
        guard self.exchange === exchange else { return }
        self.exchange = nil
        exchange.fail(error)
        close()
        exchange.deliver()
    }

    /// The response has ended.
    private func finish(_ exchange: Exchange) {
        self.exchange = nil
        exchange.end()
        timer.set(nil)
        // A stream whose request has ended closes by itself; any other is reset.
        if !exchange.isRequestComplete { close() }
    }

    // MARK: Reading

    /// Asks for more where there is use for it.
    func readOn() {
        guard !isClosed, let exchange else { return }
        let wants = reader.hasHead ? exchange.waitingBytes < Self.readAheadBytes : exchange.wantsHead
        if wants { context?.read() }
    }

    /// Reads what has arrived, and gives it to the task that waits.
    func process() {
        guard let exchange else { return }
        while self.exchange === exchange, !exchange.hasInterim, !arrived.isEmpty {
            do throws(TransportError) {
                if try reader.read(arrived.removeFirst(), into: exchange) { finish(exchange) }
            } catch {
                return fail(exchange, error)
            }
            // An interim response goes before what is behind it.
            if exchange.hasInterim { exchange.deliver() }
        }
        if self.exchange === exchange, isClosed, arrived.isEmpty {
            return fail(exchange, reader.failure(fault ?? session?.fault, isKept: exchange.isKept, session))
        }
        exchange.deliver()
    }

    // MARK: Writing

    func writeContent(_ bytes: [UInt8], _ exchange: Exchange, _ waiter: CheckedContinuation<Bool, Never>) {
        // A final head says that the server has read all it wants.
        guard self.exchange === exchange, !reader.hasHead, !isClosed else { return waiter.resume(returning: false) }
        write(bytes[...], isLast: false, waiter)
        context?.flush()
        setTimeLimit()
    }

    func endRequest(_ exchange: Exchange) {
        guard self.exchange === exchange, !reader.hasHead, !isClosed else { return }
        exchange.completeRequest()
        write([], isLast: true)
        context?.flush()
        setTimeLimit()
    }

    /// - Parameters:
    ///   - isLast: ends the request.
    ///   - waiter: resumed when the system has taken the last byte; with false if it will not.
    private func write(_ bytes: ArraySlice<UInt8>, isLast: Bool, _ waiter: CheckedContinuation<Bool, Never>? = nil) {
        writer.write(bytes, to: context, waiter) { slice, isEnd in
            wrapOutboundOut(.data(.init(data: .byteBuffer(slice), endStream: isLast && isEnd)))
        }
    }

    // MARK: Time

    /// Starts the time limit of what is waited for now.
    func setTimeLimit() {
        guard let exchange, !isClosed else { return }
        timer.set(exchange.timeLimit(isSending: isSending))
    }

    /// Whether the server has not taken all of the request, nor answered.
    private var isSending: Bool { writer.isPending && !reader.hasHead }

    private func timeLimitPassed() {
        guard let exchange else { return }
        let what =
            isSending ? "did not take the request" : reader.hasHead ? "sent no more content" : "did not answer"
        // Not a sign of life on the whole connection since: it may be dead, and would take every request with it.
        if let session, session.heard < began { session.leave() }
        fail(
            exchange,
            TransportError(.timedOut, mayHaveBeenSeen: true, endpoint: "\(endpoint)", "\(endpoint) \(what) in time"))
    }
}
