import LarderSockets
import NIOCore

/// Writes the records of TLS to the socket past the channel, as ``SocketWriter`` does: stands between TLS, which
/// flushes with each write, and the channel. What the system does not take at once goes through the channel.
final class TLSRecordWriter: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var socket: SocketWriter?
    /// Whether the channel may hold something that the system has not taken.
    private var mayHold = false

    func handlerAdded(context: ChannelHandlerContext) { socket = SocketWriter(context.channel) }

    func handlerRemoved(context: ChannelHandlerContext) { socket = nil }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if mayHold { mayHold = SendQueue.pending(context.channel) > 0 }
        guard !mayHold, let socket else {
            mayHold = true
            return context.write(data, promise: promise)
        }
        var records = unwrapOutboundIn(data)
        records.moveReaderIndex(forwardBy: records.withUnsafeReadableBytes { socket.write($0) })
        if records.readableBytes == 0 {
            promise?.succeed()
        } else {
            mayHold = true
            context.write(wrapOutboundOut(records), promise: promise)
        }
    }

    func flush(context: ChannelHandlerContext) {
        if mayHold { context.flush() }
    }
}
