import LarderHTTP
import NIOCore
import NIOHTTP2

/// Watches over an HTTP/2 connection: what the server allows, when it is over, and how long it is kept unused.
// SAFETY: everything that changes is read and changed on `loop` only, the channel's: by the channel's events, and by
// what `HTTP2Session` executes there.
final class HTTP2SessionHandler: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    /// "It is recommended that this value be no smaller than 100" (RFC 9113 section 6.5.2); without it there is no
    /// limit, and one of our own keeps a single connection from carrying everything.
    private static let usualStreams = 256

    private let endpoint: NIOTransport.Endpoint
    /// The channel holds it; its outcome leads back here.
    private weak var opening: ConnectionOpening?
    private let multiplexer: NIOHTTP2Handler.StreamMultiplexer
    private let pool: ConnectionPool
    private let idleTimeout: Duration
    private let loop: any EventLoop
    private lazy var timer = DeadlineTimer(loop) { [weak self] in self?.idleTimePassed() }
    private var context: ChannelHandlerContext?
    private var session: HTTP2Session?
    /// What is wrong with the connection.
    private(set) var fault: (any Error)?
    /// When the server last sent something.
    var heard = NIODeadline.now()
    private var streams = 0
    private var isLeaving = false
    /// What GOAWAY said (RFC 9113 section 6.8).
    private var lastProcessed: HTTP2StreamID?
    /// It had an error. Some servers say then that they processed nothing, whatever they did, so it does not tell what
    /// may be sent again whatever its method.
    private(set) var hasFailed = false

    init(
        _ endpoint: NIOTransport.Endpoint, _ opening: ConnectionOpening,
        _ multiplexer: NIOHTTP2Handler.StreamMultiplexer,
        pool: ConnectionPool, idleTimeout: Duration
    ) {
        self.endpoint = endpoint
        self.opening = opening
        self.multiplexer = multiplexer
        self.pool = pool
        self.idleTimeout = idleTimeout
        loop = opening.result.eventLoop
    }

    // MARK: The channel's life

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        heard = .now()
        switch unwrapInboundIn(data).payload {
        case .settings(.settings(let settings)): take(settings, context.channel)
        // The library ends the streams after that one, later than this; the others continue.
        case .goAway(let last, let code, _):
            lastProcessed = last
            hasFailed = code != .noError
            leave()
        default: break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fault = fault ?? error
        opening?.fail(error)
        leave()
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        timer.cancel()
        leave()
        opening?.fail(ChannelError.eof)
        session = nil
        context.fireChannelInactive()
    }

    /// The server's first word is what it allows (RFC 9113 section 3.4): the session counts from there.
    private func take(_ settings: HTTP2Settings, _ channel: any Channel) {
        let given = settings.last { $0.parameter == .maxConcurrentStreams }?.value
        if let session {
            if let given { pool.setLimit(min(given, Self.usualStreams), session) }
            return
        }
        let session = HTTP2Session(channel, self, endpoint, limit: min(given ?? Self.usualStreams, Self.usualStreams))
        self.session = session
        timer.set(TimeAmount(max(idleTimeout, .seconds(1))))
        opening?.succeed(.session(session))
    }

    /// Whether the server said that it did not process a stream.
    func hasGone(before stream: HTTP2StreamID) -> Bool { lastProcessed.map { stream > $0 } ?? false }

    // MARK: Streams

    /// Opens a stream, whose place the pool gets back when it ends.
    func open(_ session: HTTP2Session, then body: @escaping @Sendable (Connection?) -> Void) {
        guard !isLeaving, let context, context.channel.isActive else {
            pool.endStream(session)
            return body(nil)
        }
        streams += 1
        timer.set(nil)
        let promise = loop.makePromise(of: (any Channel).self)
        let endpoint = endpoint
        multiplexer.createStreamChannel(promise: promise) { stream in
            stream.eventLoop.makeCompletedFuture {
                try stream.syncOptions?.setOption(.autoRead, value: false)
                try stream.pipeline.syncOperations.addHandler(OriginStreamHandler(endpoint, self, stream.eventLoop))
            }
        }
        promise.futureResult.whenComplete { result in
            do {
                let stream = try result.get()
                let handler = try stream.pipeline.syncOperations.handler(type: OriginStreamHandler.self)
                stream.closeFuture.whenComplete { _ in self.ended(session) }
                body(Connection(stream, handler, endpoint))
            } catch {
                self.ended(session)
                body(nil)
            }
        }
    }

    private func ended(_ session: HTTP2Session) {
        streams -= 1
        pool.endStream(session)
        guard streams == 0 else { return }
        if isLeaving || idleTimeout <= .zero { leave() } else { timer.set(TimeAmount(idleTimeout)) }
    }

    // MARK: The end

    private func idleTimePassed() {
        // Who got leave for a stream a moment ago still gets it.
        guard let session, streams == 0 else { return }
        if pool.retire(session, ifUnused: true) { leave() } else { timer.set(TimeAmount(idleTimeout)) }
    }

    /// Takes no more streams, and closes when the last has ended.
    func leave() {
        isLeaving = true
        if let session { pool.retire(session) }
        guard streams == 0, let context, context.channel.isActive else { return }
        let end = HTTP2Frame(
            streamID: .rootStream, payload: .goAway(lastStreamID: .rootStream, errorCode: .noError, opaqueData: nil))
        let channel = context.channel
        context.writeAndFlush(wrapOutboundOut(end)).whenComplete { _ in channel.close(promise: nil) }
    }
}
