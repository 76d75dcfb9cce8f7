import HTTPWire
import LarderHTTP
import LarderSockets
import NIOCore
import NIOTLS

/// An HTTP/1.1 client's end of a connection: one exchange at a time.
///
/// Each owner below keeps its own state: ``ResponseReader`` what has arrived, ``RequestWriter`` what goes out,
/// ``DeadlineTimer`` the time limit, ``Exchange`` the request and what its task waits for.
// SAFETY: everything that changes is read and changed on `loop` only, the channel's: by the channel's events, and by
// what `Connection` executes there; the latter asserts it.
final class ConnectionHandler: ChannelInboundHandler, ExchangeHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Content that is read ahead of who takes it.
    private static let readAheadBytes = 64 << 10

    let loop: any EventLoop
    private let endpoint: NIOTransport.Endpoint
    /// Ends when the connection is established, TLS included. The channel holds it; its outcome leads back here.
    private weak var opening: ConnectionOpening?
    private let isSecured: Bool
    private let pool: ConnectionPool
    private let idleTimeout: Duration
    private var context: ChannelHandlerContext?
    private var connection: Connection?
    private var isClosed = false
    /// What the channel reported before it closed.
    private var fault: (any Error)?
    /// The exchange that is under way.
    private var exchange: Exchange?
    private var reader: ResponseReader
    private lazy var writer = RequestWriter(loop) { [weak self] in self?.setTimeLimit() }
    private lazy var timer = DeadlineTimer(loop) { [weak self] in self?.timeLimitPassed() }

    /// - Parameter isSecured: whether TLS is established, or there is none to wait for.
    init(
        _ opening: ConnectionOpening, _ endpoint: NIOTransport.Endpoint, pool: ConnectionPool, limits: HeadLimits,
        idleTimeout: Duration, isSecured: Bool
    ) {
        self.opening = opening
        self.endpoint = endpoint
        self.pool = pool
        self.idleTimeout = idleTimeout
        self.isSecured = isSecured
        loop = opening.result.eventLoop
        reader = ResponseReader(limits)
    }

    // MARK: The channel's life

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        // A proxy may have answered before it has read all of CONNECT.
        let isEmpty = (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) == 0
        if !endpoint.isTLS, isEmpty { writer.socket = SocketWriter(context.channel) }
        connection = Connection(context.channel, self, endpoint)
        if context.channel.isActive { channelActive(context: context) }
    }

    func channelActive(context: ChannelHandlerContext) {
        // TLS has to read before there is anything to read for.
        if isSecured { becomeReady() } else { readOn() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case TLSUserEvent.handshakeCompleted = event { becomeReady() }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if fault == nil { fault = error }
        becomeReady(error)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        isClosed = true
        timer.cancel()
        becomeReady(fault ?? ChannelError.eof)
        process()
        readOn()
        connection = nil
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        writer.socket = nil
        connection = nil
        // A channel that lost the race of addresses never was active.
        becomeReady(ChannelError.alreadyClosed)
    }

    private func becomeReady(_ error: (any Error)? = nil) {
        if let error {
            opening?.fail(error)
        } else if let connection {
            opening?.succeed(.connection(connection))
        }
    }

    private func close() { context?.close(promise: nil) }

    // MARK: Exchanges

    /// Begins an exchange, unless the connection has gone meanwhile.
    func start(_ exchange: Exchange, _ waiter: Exchange.Waiter<Exchange.HeadEvent>) {
        loop.assertInEventLoop()
        if let error = exchange.abortion {
            // Cancelled between taking the connection and now.
            close()
            return waiter.resume(returning: .failure(error))
        }
        guard !isClosed, self.exchange == nil, context?.channel.isActive == true else {
            return waiter.resume(returning: .success(.stale))
        }
        self.exchange = exchange
        exchange.begin(waiter)
        reader.begin()
        writer.begin(exchange.message.start, to: context) { slice, _ in wrapOutboundOut(slice) }
        if self.exchange === exchange { exchange.startUpload() }
        setTimeLimit()
        readOn()
    }

    func isCurrent(_ exchange: Exchange) -> Bool { self.exchange === exchange }

    /// The message has ended: the connection is kept if nothing speaks against it.
    private func finish(_ exchange: Exchange) {
        self.exchange = nil
        exchange.end()
        // Bytes behind the response belong to no request: "A client MUST NOT process, cache, or forward such extra data
        // as a separate response, since such behavior would be vulnerable to cache poisoning" (RFC 9112 section 6.3).
        guard reader.persists, exchange.isRequestComplete, !writer.isPending, reader.isEmpty, !isClosed, fault == nil,
            idleTimeout > .zero, let connection
        else { return close() }
        reader.release()
        timer.set(TimeAmount(idleTimeout))
        if !pool.keep(connection) { close() }
    }

    /// The exchange fails, and the connection with it.
    private func fail(_ exchange: Exchange, _ error: TransportError) {
        guard self.exchange === exchange else { return }
        self.exchange = nil
        exchange.fail(error)
        close()
        exchange.deliver()
    }

    /// Gives up an exchange from outside.
    func abort(_ exchange: Exchange, _ error: TransportError) {
        if exchange.hasBegun { fail(exchange, error) } else { exchange.giveUp(error) }
    }

    // MARK: Reading

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        // Without an exchange it was not asked for.
        guard exchange != nil else { return close() }
        reader.receive(&buffer)
        let isContent = reader.hasHead
        process()
        // Each piece of content starts the limit again; of a head, only the whole.
        if isContent { setTimeLimit() }
    }

    func channelReadComplete(context: ChannelHandlerContext) { readOn() }

    /// Asks for more where there is use for it. An idle connection reads to hear of its end.
    func readOn() {
        guard !isClosed else { return }
        if let exchange {
            let wants = reader.hasHead ? exchange.waitingBytes < Self.readAheadBytes : exchange.wantsHead
            guard wants else { return }
        }
        context?.read()
    }

    /// Reads what has arrived, and gives it to the task that waits.
    func process() {
        guard let exchange else { return }
        do throws(WireError) {
            if !reader.hasHead { try readHead(exchange) }
            if reader.hasHead, try reader.readContent({ exchange.append($0) }) { finish(exchange) }
        } catch {
            return fail(exchange, .malformed(endpoint, error))
        }
        if isClosed { endOfInput(exchange) }
        exchange.deliver()
    }

    /// Reads one head, if it is there and wanted.
    private func readHead(_ exchange: Exchange) throws(WireError) {
        guard exchange.wantsHead, !exchange.hasInterim else { return }
        switch try reader.nextHead(answering: exchange.message.method) {
        case nil: break
        case .final(let head, let length)?:
            exchange.receive(head, length: length)
            timer.set(nil)
        case .interim(let head)?:
            guard exchange.receive(interim: head) else {
                let what =
                    head.status.code == 101
                    ? "changed to a protocol that was not asked for" : "sent interim responses without end"
                return fail(
                    exchange,
                    TransportError(
                        .malformedResponse, mayHaveBeenSeen: true, endpoint: "\(endpoint)", "\(endpoint) \(what)"))
            }
            timer.set(nil)
        }
    }

    /// The connection has ended; what that means for the response (RFC 9112 section 8).
    private func endOfInput(_ exchange: Exchange) {
        guard self.exchange === exchange else { return }
        let why = fault.map { ": \(TransportError.describe($0))" } ?? ""
        guard reader.hasHead else {
            // A head may be waiting behind an interim one.
            if !exchange.wantsHead || exchange.hasInterim { return }
            let isUnanswered = reader.isEmpty
            return fail(
                exchange,
                TransportError(
                    isUnanswered ? .closed : .incompleteResponse, mayHaveBeenSeen: true,
                    lostKeptConnection: exchange.isKept && isUnanswered && !exchange.hasHadInterim,
                    endpoint: "\(endpoint)", "\(endpoint) closed the connection before it answered\(why)"))
        }
        // A reset, or TLS without its closure alert, may have cut off what the end of the connection ends (section
        // 9.8).
        if reader.isCompleteAtEnd, fault == nil { return finish(exchange) }
        fail(
            exchange,
            TransportError(
                .incompleteResponse, mayHaveBeenSeen: true, endpoint: "\(endpoint)",
                "\(endpoint) closed the connection within the content\(why)"
            ))
    }

    // MARK: Writing

    /// Content of the request, from its source.
    func writeContent(_ bytes: [UInt8], _ exchange: Exchange, _ waiter: CheckedContinuation<Bool, Never>) {
        // A final head says that the server has read all it wants.
        guard self.exchange === exchange, !reader.hasHead, !isClosed else { return waiter.resume(returning: false) }
        exchange.countSent(bytes.count)
        if exchange.message.isChunked {
            var start: [UInt8] = []
            MessageWriter.appendChunkStart(count: bytes.count, to: &start)
            write(start[...])
            write(bytes[...])
            write(MessageWriter.chunkEnd[...], waiter)
        } else {
            write(bytes[...], waiter)
        }
        flush()
    }

    /// All the content has been sent.
    func endRequest(_ exchange: Exchange) {
        guard self.exchange === exchange, !reader.hasHead, !isClosed else { return }
        exchange.completeRequest()
        if exchange.message.isChunked {
            write(MessageWriter.lastChunk[...])
            flush()
        } else {
            setTimeLimit()
        }
    }

    private func write(_ bytes: ArraySlice<UInt8>, _ waiter: CheckedContinuation<Bool, Never>? = nil) {
        writer.write(bytes, to: context, waiter) { slice, _ in wrapOutboundOut(slice) }
    }

    private func flush() {
        context?.flush()
        setTimeLimit()
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
        guard let exchange else { return close() }
        let what =
            isSending ? "did not take the request" : reader.hasHead ? "sent no more content" : "did not answer"
        fail(
            exchange,
            TransportError(.timedOut, mayHaveBeenSeen: true, endpoint: "\(endpoint)", "\(endpoint) \(what) in time"))
    }
}
