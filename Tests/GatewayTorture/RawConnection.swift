import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// A connection of an attacker: sends bytes, and reads only if it is told to.
final class RawConnection: Sendable {
    private let channel: any Channel
    private let counter: Counter

    private final class Counter: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        let bytes = Atomic<Int>(0)
        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            bytes.add(unwrapInboundIn(data).readableBytes, ordering: .relaxed)
        }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    private init(_ channel: any Channel, _ counter: Counter) {
        self.channel = channel
        self.counter = counter
    }

    #if os(Linux)
        /// Another address of this machine than that of the good client.
        private static let otherAddress: String? = "127.0.0.2"
        /// What makes the gateway tell the two apart.
        static let flags = ["--limit-loopback"]
    #else
        /// Other systems have 127.0.0.1 alone.
        private static let otherAddress: String? = nil
        static let flags: [String] = []
    #endif

    /// - Parameters:
    ///   - isOtherClient: comes from an address of its own, where there is one.
    ///   - protocols: those of TLS to offer; nil for a connection without TLS.
    ///   - reads: false leaves what comes in the socket.
    static func connect(
        _ port: Int, protocols: [String]? = nil, reads: Bool = false, receiveBuffer: Int? = 4_096,
        isOtherClient: Bool = false
    ) async throws -> RawConnection {
        let counter = Counter()
        let context = try protocols.map { protocols in
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.certificateVerification = .none
            tls.applicationProtocols = protocols
            return try NIOSSLContext(configuration: tls)
        }
        // TLS has to read to get anywhere.
        var bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.autoRead, value: reads || context != nil)
            .connectTimeout(.seconds(5))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    if let context {
                        try pipeline.addHandler(try NIOSSLClientHandler(context: context, serverHostname: nil))
                    }
                    try pipeline.addHandler(counter)
                }
            }
        if let receiveBuffer, !reads {
            bootstrap = bootstrap.channelOption(.socketOption(.so_rcvbuf), value: receiveBuffer)
        }
        if isOtherClient, let address = Self.otherAddress {
            bootstrap = bootstrap.bind(to: try SocketAddress(ipAddress: address, port: 0))
        }
        return RawConnection(try await bootstrap.connect(host: "127.0.0.1", port: port).get(), counter)
    }

    func send(_ text: String) async throws { try await send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) async throws {
        try await channel.writeAndFlush(channel.allocator.buffer(bytes: bytes)).get()
    }

    /// Stops or continues reading.
    func setReading(_ reads: Bool) async throws { try await channel.setOption(.autoRead, value: reads).get() }

    var isOpen: Bool { channel.isActive }
    var received: Int { counter.bytes.load(ordering: .relaxed) }

    func close() { channel.close(promise: nil) }
}
