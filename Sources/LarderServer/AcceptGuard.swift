import Logging
import NIOCore

/// Stops a listener for a while when no connection can be accepted because descriptors or memory run short.
///
/// A connection that waits to be accepted keeps the listener's socket readable, so going on at once would only fail
/// again, as fast as a core can. NIO's own back-off holds reads back and leaves the socket registered, which spins all
/// the same; turning automatic reading off takes it out of the selector.
final class AcceptGuard: ChannelInboundHandler {
    typealias InboundIn = Channel

    /// The same trouble is logged once in this time.
    private static let silence = TimeAmount.seconds(60)

    private let logger: Logger
    private let pause: TimeAmount
    private let onFailure: @Sendable () -> Void
    private var isPaused = false
    private var told: [CInt: NIODeadline] = [:]

    /// - Parameters:
    ///   - pause: how long nothing is accepted. Default: 1 s.
    ///   - onFailure: called each time a connection could not be accepted.
    init(_ logger: Logger, pause: TimeAmount = .seconds(1), onFailure: @escaping @Sendable () -> Void) {
        self.logger = logger
        self.pause = pause
        self.onFailure = onFailure
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let error = error as? IOError {
            onFailure()
            tell(error)
            pause(context.channel)
        }
        context.fireErrorCaught(error)
    }

    private func tell(_ error: IOError) {
        let now = NIODeadline.now()
        if let last = told[error.errnoCode], now - last < Self.silence { return }
        told[error.errnoCode] = now
        logger.error(
            """
            cannot accept connections; trying again every second. Raise the limit of open files or lower 'connections'
            """,
            metadata: ["category": "connections", "error": "\(error)"])
    }

    private func pause(_ channel: any Channel) {
        guard !isPaused else { return }
        isPaused = true
        channel.setOption(.autoRead, value: false).whenComplete { _ in }
        channel.eventLoop.assumeIsolated().scheduleTask(in: pause) {
            self.isPaused = false
            channel.setOption(.autoRead, value: true).whenComplete { _ in }
        }
    }
}
