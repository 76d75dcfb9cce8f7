import NIOCore

/// A connection on its way to its first request: through a tunnel, TLS and the choice of a protocol, as it needs them.
/// Ends once.
// SAFETY: `isOver` is touched on the event loop of `promise` only; both methods assert that. The promise may be used
// from any thread.
final class ConnectionOpening: @unchecked Sendable {
    /// What there is in the end.
    enum Outcome: Sendable {
        case connection(Connection)
        case session(HTTP2Session)
    }

    private let promise: EventLoopPromise<Outcome>
    private var isOver = false

    init(_ loop: any EventLoop) { promise = loop.makePromise() }

    var result: EventLoopFuture<Outcome> { promise.futureResult }

    func succeed(_ outcome: Outcome) {
        promise.futureResult.eventLoop.assertInEventLoop()
        if !isOver { promise.succeed(outcome) }
        isOver = true
    }

    func fail(_ error: any Error) {
        promise.futureResult.eventLoop.assertInEventLoop()
        if !isOver { promise.fail(error) }
        isOver = true
    }
}

/// Holds the opening of a channel for who made the channel. A channel that lost the race of addresses ends it.
final class OpeningHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    let opening: ConnectionOpening

    init(_ opening: ConnectionOpening) { self.opening = opening }

    func handlerRemoved(context: ChannelHandlerContext) { opening.fail(ChannelError.alreadyClosed) }
}
