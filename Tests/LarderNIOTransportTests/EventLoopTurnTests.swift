import Locks
import NIOCore
import NIOPosix
import Testing

@testable import LarderNIOTransport

/// The order of work on an event loop.
struct EventLoopTurnTests {
    /// Notes what arrives at a socket.
    private final class Reader: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        let events = Mutex<[String]>([])
        func note(_ event: String) { events.withLock { $0.append(event) } }
        func channelRead(context: ChannelHandlerContext, data: NIOAny) { note("socket") }
    }

    /// What is there to read comes before what is left for the next turn, if not before what is to be done at once.
    /// Where the thread is interrupted in between, the turn may be over: not a hundred times in a row.
    @Test func whatIsReadComesBeforeTheNextTurn() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let reader = Reader()
        let server = try await ServerBootstrap(group: loop).childChannelInitializer { $0.pipeline.addHandler(reader) }
            .bind(host: "127.0.0.1", port: 0).get()
        let address = try #require(server.localAddress)
        let client = try await ClientBootstrap(group: loop).connect(to: address).get()
        var orders: Set<[String]> = []
        for _ in 0..<100 where !orders.contains(["at once", "socket", "next turn"]) {
            reader.events.withLock { $0 = [] }
            let ended = loop.makePromise(of: Void.self)
            loop.execute {
                client.writeAndFlush(ByteBuffer(bytes: [1]), promise: nil)
                loop.executeInNextTurn {
                    reader.note("next turn")
                    // After what is left to read.
                    loop.scheduleTask(in: .milliseconds(1)) { ended.succeed() }
                }
                loop.execute { reader.note("at once") }
            }
            try await ended.futureResult.get()
            orders.insert(reader.events.withLock { $0 })
        }
        #expect(orders.contains(["at once", "socket", "next turn"]))
        try await client.close()
        try await server.close()
    }
}
