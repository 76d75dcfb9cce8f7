import HTTPWire
import NIOCore
import NIOPosix

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The server's end of one connection, for a script: bytes as they come and go.
struct Peer: Sendable {
    struct Ended: Error {}

    /// Which connection of the server this is, from 0.
    let index: Int
    private let channel: any Channel
    private let inbound: AsyncStream<ByteBuffer>
    private var buffer: [UInt8] = []

    init(_ index: Int, _ channel: any Channel, _ inbound: AsyncStream<ByteBuffer>) {
        self.index = index
        self.channel = channel
        self.inbound = inbound
    }

    /// The next head, its empty line included.
    mutating func head() async throws -> String {
        var scanner = HeadScanner(isRequest: true)
        while true {
            if let range = try buffer.withBytes({ try scanner.scan($0) }) {
                defer { buffer.removeFirst(range.upperBound) }
                return String(decoding: buffer[range], as: UTF8.self)
            }
            try await fill()
        }
    }

    /// The next bytes.
    mutating func read(_ count: Int) async throws -> [UInt8] {
        while buffer.count < count { try await fill() }
        defer { buffer.removeFirst(count) }
        return Array(buffer[..<count])
    }

    /// Everything until the other end closes.
    mutating func readToEnd() async -> [UInt8] {
        while (try? await fill()) != nil {}
        return buffer
    }

    func write(_ text: String) async throws { try await write(text.unicodeScalars.map { UInt8($0.value) }) }

    /// Returns when the system has taken the bytes.
    func write(_ bytes: [UInt8]) async throws { try await channel.writeAndFlush(ByteBuffer(bytes: bytes)) }

    /// Passes bytes between this connection and a new one, in both directions, until either ends.
    mutating func join(port: Int) async throws {
        let (stream, continuation) = AsyncStream.makeStream(of: ByteBuffer.self)
        let other = try await ClientBootstrap(group: channel.eventLoop)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Yielding(continuation))
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        try await other.writeAndFlush(ByteBuffer(bytes: buffer))
        await withTaskGroup { [channel, inbound] group in
            group.addTask {
                for await bytes in inbound { other.writeAndFlush(bytes, promise: nil) }
                other.close(promise: nil)
            }
            group.addTask {
                for await bytes in stream { channel.writeAndFlush(bytes, promise: nil) }
                channel.close(promise: nil)
            }
        }
    }

    private final class Yielding: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let continuation: AsyncStream<ByteBuffer>.Continuation
        init(_ continuation: AsyncStream<ByteBuffer>.Continuation) { self.continuation = continuation }
        func channelRead(context: ChannelHandlerContext, data: NIOAny) { continuation.yield(unwrapInboundIn(data)) }
        func channelInactive(context: ChannelHandlerContext) { continuation.finish() }
    }

    /// Says good-bye with RST.
    func reset() async throws {
        try await (channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
        try await channel.close()
    }

    private mutating func fill() async throws {
        // The stream has one reader, whose place is the stream's.
        var iterator = inbound.makeAsyncIterator()
        guard let next = await iterator.next() else { throw Ended() }
        buffer += next.readableBytesView
    }
}
