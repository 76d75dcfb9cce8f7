import LarderHTTP
import NIOCore

/// Carries exchanges over a connection, or one over a stream of HTTP/2. On its event loop only.
protocol ExchangeHandler: AnyObject, Sendable {
    /// Sends the head of a request, and begins to send its content; `waiter` gets the first head that answers it.
    func start(_ exchange: Exchange, _ waiter: Exchange.Waiter<Exchange.HeadEvent>)
    /// `waiter` gets the next head after an interim response.
    func nextHead(_ exchange: Exchange, _ waiter: Exchange.Waiter<Exchange.HeadEvent>)
    /// `waiter` gets content.
    func nextPiece(_ exchange: Exchange, _ waiter: Exchange.Waiter<Exchange.Piece>)
    /// Sends content; `waiter` hears when the system has taken it, or that no more is wanted.
    func writeContent(_ bytes: [UInt8], _ exchange: Exchange, _ waiter: CheckedContinuation<Bool, Never>)
    /// All the content has been sent.
    func endRequest(_ exchange: Exchange)
    /// Gives an exchange up.
    func abort(_ exchange: Exchange, _ error: TransportError)
    /// The channel's; everything here is called on it.
    var loop: any EventLoop { get }
    /// Whether an exchange is the one that is under way.
    func isCurrent(_ exchange: Exchange) -> Bool
    /// Begins to measure the time that the origin has for what is waited for.
    func setTimeLimit()
    /// Reads what has arrived, and gives it to the task that waits.
    func process()
    /// Asks for more where there is use for it.
    func readOn()
}

extension ExchangeHandler {
    func nextHead(_ exchange: Exchange, _ waiter: Exchange.Waiter<Exchange.HeadEvent>) {
        loop.assertInEventLoop()
        exchange.wait(waiter)
        guard isCurrent(exchange) else { return exchange.deliver() }
        setTimeLimit()
        process()
        readOn()
    }

    func nextPiece(_ exchange: Exchange, _ waiter: Exchange.Waiter<Exchange.Piece>) {
        loop.assertInEventLoop()
        exchange.wait(waiter)
        exchange.deliver()
        guard isCurrent(exchange) else { return }
        setTimeLimit()
        readOn()
    }
}

/// A connection, or a stream of one, as the tasks see it: what they want of it is done on its event loop.
final class Connection: Sendable {
    let endpoint: NIOTransport.Endpoint
    let channel: any Channel
    let handler: any ExchangeHandler

    init(_ channel: any Channel, _ handler: any ExchangeHandler, _ endpoint: NIOTransport.Endpoint) {
        self.channel = channel
        self.handler = handler
        self.endpoint = endpoint
    }

    /// Sends the head of a request, begins to send its content and waits for the first head that answers it.
    func start(_ exchange: Exchange) async throws(TransportError) -> Exchange.HeadEvent {
        try await whileNotCancelled(exchange) { handler, waiter in handler.start(exchange, waiter) }
    }

    /// Waits for the next head after an interim response.
    func nextHead(_ exchange: Exchange) async throws(TransportError) -> Exchange.HeadEvent {
        try await whileNotCancelled(exchange) { handler, waiter in handler.nextHead(exchange, waiter) }
    }

    /// Waits for content.
    func nextPiece(_ exchange: Exchange) async throws(TransportError) -> Exchange.Piece {
        try await whileNotCancelled(exchange) { handler, waiter in handler.nextPiece(exchange, waiter) }
    }

    /// Sends content; returns when the system has taken it.
    /// - Returns: false when no more is wanted.
    func write(_ bytes: [UInt8], _ exchange: Exchange) async -> Bool {
        await withCheckedContinuation { waiter in
            onLoop { [handler] in handler.writeContent(bytes, exchange, waiter) }
        }
    }

    /// Says that all the content has been sent.
    func endRequest(_ exchange: Exchange) {
        onLoop { [handler] in handler.endRequest(exchange) }
    }

    /// Gives an exchange up, if it has not ended: the connection is closed.
    func abort(_ exchange: Exchange, _ error: TransportError) {
        channel.eventLoop.execute { [handler] in handler.abort(exchange, error) }
    }

    /// Closes without waiting for it.
    func closeSoon() { channel.close(promise: nil) }

    func close() async {
        channel.close(promise: nil)
        // Fails only where the event loop is gone, and the connection with it.
        try? await channel.closeFuture.get()
    }

    /// Does something on the event loop: at once where that is this thread.
    private func onLoop(_ body: @escaping @Sendable () -> Void) {
        if channel.eventLoop.inEventLoop { body() } else { channel.eventLoop.execute(body) }
    }

    /// Does something on the event loop, and waits for the result.
    private func whileNotCancelled<Value: Sendable>(
        _ exchange: Exchange,
        _ body:
            @escaping @Sendable (any ExchangeHandler, Exchange.Waiter<Value>) -> Void
    ) async throws(TransportError) -> Value {
        try await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                onLoop { [handler] in body(handler, .task(waiter)) }
            }
        } onCancel: {
            channel.eventLoop.execute { [handler] in
                handler.abort(exchange, .cancelled(exchange.endpoint, mayHaveBeenSeen: exchange.hasBegun))
            }
        }.get()
    }
}
