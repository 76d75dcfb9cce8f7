import HTTPWire
import LarderHTTP
import NIOCore
import NIOTLS

/// An HTTP/1.1 client's end of a connection: one exchange at a time.
// SAFETY: everything that changes is read and changed on `loop` only, the channel's: by the channel's events, and by
// what `Connection` executes there; the latter asserts it.
final class ConnectionHandler: ChannelInboundHandler, ExchangeHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let endpoint: NIOTransport.Endpoint
    /// Ends when the connection is established, TLS included.
    private let opening: Opening
    private let isSecured: Bool
    var connection: Connection?

    let pool: ConnectionPool
    let idleTimeout: Duration
    var context: ChannelHandlerContext?
    var isClosed = false
    /// What the channel reported before it closed.
    var fault: (any Error)?
    var exchange: Exchange?
    var scanner: HeadScanner
    let limits: HeadLimits
    /// What arrived and was not read yet.
    var input = ByteBuffer()
    /// Parts of the request that the system has not taken.
    var pendingWrites = 0
    private(set) lazy var timer = DeadlineTimer(loop) { [weak self] in self?.timeLimitPassed() }
    let loop: any EventLoop

    /// - Parameter isSecured: whether TLS is established, or there is none to wait for.
    init(
        _ opening: Opening, _ endpoint: NIOTransport.Endpoint, pool: ConnectionPool, limits: HeadLimits,
        idleTimeout: Duration, isSecured: Bool
    ) {
        self.opening = opening
        self.endpoint = endpoint
        self.pool = pool
        self.limits = limits
        self.idleTimeout = idleTimeout
        self.isSecured = isSecured
        loop = opening.result.eventLoop
        scanner = HeadScanner(limits: limits, isRequest: false)
    }

    // MARK: The channel's life

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
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
        connection = nil
        // A channel that lost the race of addresses never was active.
        becomeReady(ChannelError.alreadyClosed)
    }

    private func becomeReady(_ error: (any Error)? = nil) {
        if let error { return opening.fail(error) }
        if let connection { opening.succeed(.connection(connection)) }
    }

    func close() { context?.close(promise: nil) }

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
        exchange.headWaiter = waiter
        exchange.hasBegun = true
        exchange.isRequestComplete = exchange.message.stream == nil
        scanner.reset()
        write(exchange.message.start)
        if let body = exchange.message.stream, self.exchange === exchange {
            exchange.upload = Task { await Upload(body: body, exchange: exchange).run() }
        }
        setTimeLimit()
        readOn()
    }

    /// The message has ended: the connection is kept if nothing speaks against it.
    func finish(_ exchange: Exchange) {
        self.exchange = nil
        exchange.isEnded = true
        exchange.upload?.cancel()
        // Bytes behind the response belong to no request: "A client MUST NOT process, cache, or forward such extra data
        // as a separate response, since such behavior would be vulnerable to cache poisoning" (RFC 9112 section 6.3).
        guard exchange.persists, exchange.isRequestComplete, pendingWrites == 0, input.readableBytes == 0, !isClosed,
            fault == nil, idleTimeout > .zero, let connection
        else { return close() }
        // Nothing big is kept for an idle connection.
        input = ByteBuffer()
        timer.set(TimeAmount(idleTimeout))
        if !pool.keep(connection) { close() }
    }

    /// The exchange fails, and the connection with it.
    func fail(_ exchange: Exchange, _ error: TransportError) {
        guard self.exchange === exchange else { return }
        self.exchange = nil
        exchange.failure = error
        exchange.upload?.cancel()
        close()
        exchange.deliver()
    }

    /// Gives up an exchange from outside.
    func abort(_ exchange: Exchange, _ error: TransportError) {
        if exchange.hasBegun { fail(exchange, error) } else { exchange.abortion = error }
    }

    // MARK: Time

    /// Starts the time limit of what is waited for now.
    func setTimeLimit() {
        guard let exchange, !isClosed else { return }
        timer.set(exchange.timeLimit(isSending: pendingWrites > 0 && exchange.decoder == nil).map { TimeAmount($0) })
    }

    private func timeLimitPassed() {
        guard let exchange else { return close() }
        let what =
            pendingWrites > 0 && exchange.decoder == nil
            ? "did not take the request" : exchange.decoder == nil ? "did not answer" : "sent no more content"
        fail(
            exchange,
            TransportError(.timedOut, mayHaveBeenSeen: true, endpoint: "\(endpoint)", "\(endpoint) \(what) in time"))
    }
}
