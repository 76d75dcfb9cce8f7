import NIOCore
import NIOTLS

/// Waits until TLS is established, and for the protocol that the server chose (ALPN, RFC 7301).
final class NegotiationHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let opening: ConnectionOpening
    private let choose: (any Channel, String?) throws -> Void
    private var isOver = false

    /// - Parameter choose: adds the handlers for a protocol; nil where the server chose none.
    init(_ opening: ConnectionOpening, choose: @escaping (any Channel, String?) throws -> Void) {
        self.opening = opening
        self.choose = choose
    }

    // TLS has to read before there is anything to read for.
    func handlerAdded(context: ChannelHandlerContext) {
        if context.channel.isActive { context.read() }
    }

    func channelActive(context: ChannelHandlerContext) {
        context.read()
        context.fireChannelActive()
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if !isOver { context.read() }
        context.fireChannelReadComplete()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case TLSUserEvent.handshakeCompleted(let name) = event, !isOver else {
            return context.fireUserInboundEventTriggered(event)
        }
        isOver = true
        do {
            // At once: what the server sends next is for them.
            try choose(context.channel, name)
        } catch {
            return errorCaught(context: context, error: error)
        }
        context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        opening.fail(error)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        opening.fail(ChannelError.eof)
        context.fireChannelInactive()
    }
}
