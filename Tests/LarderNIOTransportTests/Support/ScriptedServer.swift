import LarderHTTP
import LarderNIOTransport
import NIOCore
import NIOPosix
import NIOSSL
import Locks
import TestSupport

/// A server that does with each connection what a script says.
struct ScriptedServer: Sendable {
    typealias Script = @Sendable (inout Peer) async throws -> Void

    let port: Int
    var authority: String { "127.0.0.1:\(port)" }
    private let connectionCount: Counter

    /// Connections that were accepted.
    var connections: Int { connectionCount.value }

    /// Runs a server while `body` runs. A connection closes when its script ends.
    static func run<Result: Sendable>(
        certificate: TestCertificate? = nil, tls change: (inout TLSConfiguration) -> Void = { _ in },
        script: @escaping Script, _ body: (ScriptedServer) async throws -> Result
    ) async throws -> Result {
        let tls = try certificate?.server(change)
        let counter = Counter()
        let connections = Mutex<[(channel: any Channel, task: Task<Void, Never>)]>([])
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 256)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls { try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls)) }
                    let handler = InboundHandler { channel, stream in
                        let task = Task { await serve(Peer(counter.increment() - 1, channel, stream), channel, script) }
                        connections.withLock { $0.append((channel, task)) }
                    }
                    try channel.pipeline.syncOperations.addHandler(handler)
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let server = ScriptedServer(port: listener.localAddress?.port ?? 0, connectionCount: counter)
        let result: Swift.Result<Result, any Error>
        do {
            result = .success(try await body(server))
        } catch {
            result = .failure(error)
        }
        try await listener.close()
        for connection in connections.withLock({ $0 }) {
            connection.task.cancel()
            connection.channel.close(promise: nil)
            // Once `body` has failed, a script may wait for what no longer comes.
            if case .success = result { await connection.task.value }
        }
        return try result.get()
    }

    private static func serve(_ peer: Peer, _ channel: any Channel, _ script: Script) async {
        var peer = peer
        // A script that meets the end of its connection is over.
        try? await script(&peer)
        try? await channel.close()
    }
}

/// Makes a stream of what arrives.
private final class InboundHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let stream: AsyncStream<ByteBuffer>
    private let continuation: AsyncStream<ByteBuffer>.Continuation
    private let start: (any Channel, AsyncStream<ByteBuffer>) -> Void

    init(_ start: @escaping (any Channel, AsyncStream<ByteBuffer>) -> Void) {
        (stream, continuation) = AsyncStream.makeStream()
        self.start = start
    }

    func channelActive(context: ChannelHandlerContext) { start(context.channel, stream) }
    func channelRead(context: ChannelHandlerContext, data: NIOAny) { continuation.yield(unwrapInboundIn(data)) }
    func channelInactive(context: ChannelHandlerContext) { continuation.finish() }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
