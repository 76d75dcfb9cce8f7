import NIOCore
import NIOHPACK
import NIOHTTP2
import Locks

/// Keeps clients within limits that the transport does not have: connections, memory, and calls that stall.
final class CallGuards: Sendable {
    private let connectionLimit: Int
    private let memoryLimit: Int
    private let stallTimeout: TimeAmount
    private let firstCallTimeout: TimeAmount
    private struct Connection {
        let channel: any Channel
        var hasCalled = false
    }
    private let connections = Mutex<[ObjectIdentifier: Connection]>([:])
    /// Bytes of messages that have arrived, and may not have been worked on.
    private let held = Atomic<Int>(0)

    init(_ configuration: GRPCObjectServerConfiguration) {
        connectionLimit = configuration.connections
        memoryLimit = configuration.memoryBytes
        stallTimeout = TimeAmount(configuration.stallTimeout)
        firstCallTimeout = TimeAmount(configuration.firstCallTimeout)
    }

    /// Counts a connection, or closes it.
    func admit(_ channel: any Channel) -> EventLoopFuture<Void> {
        let isAdmitted = connections.withLock { connections in
            guard connections.count < connectionLimit else { return false }
            connections[ObjectIdentifier(channel)] = Connection(channel: channel)
            return true
        }
        guard isAdmitted else { return channel.close() }
        let timer = channel.eventLoop.scheduleTask(in: firstCallTimeout) { [self] in
            let hasCalled = connections.withLock { $0[ObjectIdentifier(channel)]?.hasCalled ?? true }
            if !hasCalled { channel.close(promise: nil) }
        }
        channel.closeFuture.whenComplete { [self] _ in
            timer.cancel()
            connections.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(channel)) }
        }
        return channel.eventLoop.makeSucceededVoidFuture()
    }

    /// Watches a call.
    func watch(_ stream: any Channel) -> EventLoopFuture<Void> {
        if let connection = stream.parent {
            connections.withLock { $0[ObjectIdentifier(connection)]?.hasCalled = true }
        }
        return stream.eventLoop.makeCompletedFuture {
            try stream.pipeline.syncOperations.addHandler(CallGuard(self, stallTimeout), position: .first)
        }
    }

    func closeAll() {
        for connection in connections.withLock({ Array($0.values) }) { connection.channel.close(promise: nil) }
    }

    /// Takes memory into account.
    /// - Returns: false if there is no more.
    func hold(_ count: Int) -> Bool { held.add(count, ordering: .relaxed).newValue <= memoryLimit }

    func release(_ count: Int) { held.subtract(count, ordering: .relaxed) }
}

/// Ends a call whose client does not send what it began, or does not read what it asked for, and one that needs memory
/// that is not there.
private final class CallGuard: ChannelDuplexHandler {
    typealias InboundIn = HTTP2Frame.FramePayload
    typealias InboundOut = HTTP2Frame.FramePayload
    typealias OutboundIn = HTTP2Frame.FramePayload
    typealias OutboundOut = HTTP2Frame.FramePayload

    /// Messages that the transport takes ahead of the one that is worked on.
    private static let messagesAhead = 12

    private let guards: CallGuards
    private let stallTimeout: TimeAmount
    private var timer: Scheduled<Void>?
    /// gRPC's framing: a byte, a length of four bytes, and the message.
    private var prefix: [UInt8] = []
    /// Of the message that arrives.
    private var missing = 0
    private var lengths: [Int] = []
    private var next = 0
    private var held = 0
    private var hasEnded = false
    /// The client has sent all that it will.
    private var isComplete = false
    /// Bytes of the answer that the client has no room for yet.
    private var unread = 0

    init(_ guards: CallGuards, _ stallTimeout: TimeAmount) {
        self.guards = guards
        self.stallTimeout = stallTimeout
    }

    func handlerAdded(context: ChannelHandlerContext) { restart(context) }

    func handlerRemoved(context: ChannelHandlerContext) { end() }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .data(let content):
            if case .byteBuffer(let buffer) = content.data, let refusal = take(buffer.readableBytesView) {
                return refuse(context, refusal)
            }
            received(context, isLast: content.endStream)
        case .headers(let headers): received(context, isLast: headers.endStream)
        default: break
        }
        context.fireChannelRead(data)
    }

    private func received(_ context: ChannelHandlerContext, isLast: Bool) {
        if isLast { isComplete = true }
        restart(context)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .data(let content) = unwrapOutboundIn(data), case .byteBuffer(let buffer) = content.data,
            buffer.readableBytes > 0
        else { return context.write(data, promise: promise) }
        let count = buffer.readableBytes
        guard guards.hold(count) else {
            guards.release(count)
            promise?.fail(ChannelError.ioOnClosedChannel)
            // What was written of the answer cannot be taken back.
            return context.close(promise: nil)
        }
        unread += count
        if timer == nil { restart(context) }
        let written = promise ?? context.eventLoop.makePromise()
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        written.futureResult.whenComplete { _ in
            let (handler, context) = bound.value
            handler.guards.release(count)
            handler.unread -= count
            if !handler.hasEnded { handler.restart(context) }
        }
        context.write(data, promise: written)
    }

    /// Accounts for what a client sent, message by message.
    /// - Returns: why the message that begins is not taken.
    private func take(_ bytes: ByteBufferView) -> String? {
        var rest = bytes[...]
        while !rest.isEmpty {
            if missing > 0 {
                let count = min(missing, rest.count)
                missing -= count
                rest = rest.dropFirst(count)
                continue
            }
            prefix.append(rest[rest.startIndex])
            rest = rest.dropFirst()
            guard prefix.count == 5 else { continue }
            missing = prefix[1...].reduce(0) { $0 << 8 | Int($1) }
            prefix.removeAll(keepingCapacity: true)
            guard missing <= Limits.message else { return "a message has at most \(Limits.message) bytes" }
            guard begin(missing) else { return "the server is short of memory" }
        }
        return nil
    }

    /// A message begins. The one that came `messagesAhead` before has been worked on.
    private func begin(_ length: Int) -> Bool {
        var change = length
        if lengths.count < Self.messagesAhead {
            lengths.append(length)
        } else {
            change -= lengths[next]
            lengths[next] = length
            next = (next + 1) % Self.messagesAhead
        }
        held += change
        return guards.hold(change)
    }

    /// The client gets a status, and nothing more is read of it.
    ///
    /// RFC 9113 section 8.1: NO_ERROR asks a client to stop sending after a complete answer. With CANCEL, which closing
    /// the stream sends, clients take the call for cancelled, whatever the answer was.
    private func refuse(_ context: ChannelHandlerContext, _ message: String) {
        let trailers: HPACKHeaders = [
            ":status": "200", "content-type": "application/grpc", "grpc-status": "8",
            "grpc-message": message,
        ]
        context.write(wrapOutboundOut(.headers(.init(headers: trailers, endStream: true))), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.rstStream(.noError)), promise: nil)
        context.close(promise: nil)
    }

    private func restart(_ context: ChannelHandlerContext) {
        timer?.cancel()
        timer = nil
        // Neither side has to do anything but the server.
        if isComplete, unread == 0 { return }
        let channel = context.channel
        timer = context.eventLoop.scheduleTask(in: stallTimeout) { channel.close(promise: nil) }
    }

    private func end() {
        guard !hasEnded else { return }
        hasEnded = true
        timer?.cancel()
        guards.release(held)
    }
}
