import NIOCore
import NIOPosix

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// A TCP connection of a test: sends any bytes, and takes answers apart without forgiving anything.
///
/// One task uses it at a time. What arrives waits in memory unless reading is paused.
public final class RawClient {
    private let channel: any Channel
    private var source: AsyncThrowingStream<[UInt8], any Error>.AsyncIterator
    private var held: [UInt8] = []
    private var hasEnded = false

    private init(_ channel: any Channel, _ source: AsyncThrowingStream<[UInt8], any Error>) {
        self.channel = channel
        self.source = source.makeAsyncIterator()
    }

    /// Connects to a port of 127.0.0.1.
    /// - Parameters:
    ///   - receiveBuffer: SO_RCVBUF, for a client that cannot take much. Default: the system's.
    ///   - prepare: adds handlers between the socket and this client, such as TLS. Default: none.
    public static func connect(
        to port: Int, receiveBuffer: Int? = nil, _ prepare: @escaping @Sendable (any Channel) throws -> Void = { _ in }
    ) async throws -> RawClient {
        let (stream, continuation) = AsyncThrowingStream.makeStream(of: [UInt8].self, throwing: (any Error).self)
        var bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try prepare(channel)
                    try channel.pipeline.syncOperations.addHandler(Feed(continuation))
                }
            }
        if let receiveBuffer { bootstrap = bootstrap.channelOption(.socketOption(.so_rcvbuf), value: receiveBuffer) }
        return RawClient(try await bootstrap.connect(host: "127.0.0.1", port: port).get(), stream)
    }

    /// Sends text.
    public func send(_ text: String) async throws { try await send(Array(text.utf8)) }

    /// Sends bytes; returns when the kernel has them.
    public func send(_ bytes: [UInt8]) async throws {
        try await channel.writeAndFlush(channel.allocator.buffer(bytes: bytes)).get()
    }

    /// Sends from another task than the one that reads.
    public var sender: Sender { Sender(channel: channel) }

    /// The sending half of a connection.
    public struct Sender: Sendable {
        fileprivate let channel: any Channel

        /// Sends bytes; returns when the kernel has them.
        public func send(_ bytes: [UInt8]) async throws {
            try await channel.writeAndFlush(channel.allocator.buffer(bytes: bytes)).get()
        }
    }

    /// Sends FIN; the other direction stays open.
    public func finishSending() async throws { try await channel.close(mode: .output).get() }

    /// Stops or continues taking bytes from the socket.
    public func setReading(_ isReading: Bool) async throws {
        try await channel.setOption(.autoRead, value: isReading).get()
    }

    /// Closes both directions.
    public func close() async throws { try await channel.close().get() }

    /// Closes with RST.
    public func reset() async throws {
        if let socket = channel as? any SocketOptionProvider {
            try await socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
        }
        try await channel.close().get()
    }

    /// Whatever arrives next; nil at the end of the connection.
    public func piece() async throws -> [UInt8]? {
        if !held.isEmpty {
            defer { held = [] }
            return held
        }
        return try await more() ? piece() : nil
    }

    /// All bytes up to the end of the connection.
    public func rest() async throws -> [UInt8] {
        while try await more() {}
        defer { held = [] }
        return held
    }

    /// The next `count` bytes. Throws ``ClosedEarly`` at the end of the connection.
    public func bytes(_ count: Int) async throws -> [UInt8] {
        while held.count < count {
            guard try await more() else { throw ClosedEarly(held) }
        }
        defer { held.removeFirst(count) }
        return Array(held[..<count])
    }

    /// A line, without CRLF; throws when it ends otherwise.
    func line() async throws -> String {
        var searched = 0
        while true {
            if let end = held[searched...].firstIndex(of: 10) {
                guard end > 0, held[end - 1] == 13 else { throw Malformed("a line without CR") }
                let line = String(decoding: held[..<(end - 1)], as: UTF8.self)
                held.removeFirst(end + 1)
                return line
            }
            searched = held.count
            guard try await more() else { throw ClosedEarly(held) }
        }
    }

    private func more() async throws -> Bool {
        if hasEnded { return false }
        guard let next = try await source.next() else {
            hasEnded = true
            return false
        }
        held += next
        return true
    }

    /// The connection ended before what was expected; with the bytes that came.
    public struct ClosedEarly: Error, CustomStringConvertible {
        /// What came.
        public let received: [UInt8]
        init(_ received: [UInt8]) { self.received = received }
        /// What came, as text.
        public var description: String { "closed early, after '\(String(decoding: received, as: UTF8.self))'" }
    }

    /// What came is not valid HTTP.
    public struct Malformed: Error, CustomStringConvertible {
        /// What is wrong.
        public let description: String
        init(_ description: String) { self.description = description }
    }
}

/// Hands on what arrives.
private final class Feed: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer
    private let continuation: AsyncThrowingStream<[UInt8], any Error>.Continuation

    init(_ continuation: AsyncThrowingStream<[UInt8], any Error>.Continuation) { self.continuation = continuation }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        continuation.yield(Array(unwrapInboundIn(data).readableBytesView))
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event { continuation.finish() }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { continuation.finish(throwing: error) }

    func channelInactive(context: ChannelHandlerContext) { continuation.finish() }
}
