import Dispatch
import HTTPTestSupport
import Logging
import NIOCore
import NIOPosix
import Locks
import TestOrigin
import TestSupport
import Testing

@testable import LarderServer

/// Closes a connection that was accepted.
private final class Closer: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    func channelActive(context: ChannelHandlerContext) { context.close(promise: nil) }
}

/// What the system refuses, and what it answers too late.
struct ListenerTests {
    /// No descriptor is left; the selector must not tell of the waiting connection again and again.
    @Test func aListenerThatCannotAcceptPauses() async throws {
        let failures = Counter()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let listener = try await ServerBootstrap(group: group)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    var logger = Logger(label: "test")
                    logger.logLevel = .critical
                    let handler = AcceptGuard(logger, pause: .milliseconds(50)) { failures.increment() }
                    try channel.pipeline.syncOperations.addHandler(handler)
                }
            }
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Closer()) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let isReading = try await listener.eventLoop.submit {
            listener.pipeline.fireErrorCaught(IOError(errnoCode: 24, reason: "accept"))
            return try listener.syncOptions?.getOption(.autoRead)
        }.get()
        #expect(isReading == false)
        #expect(failures.value == 1)
        // It continues by itself.
        let client = try await RawClient.connect(to: listener.localAddress?.port ?? 0)
        try await #expect(client.rest().isEmpty)
        try await listener.close()
        try await group.shutdownGracefully()
    }

    /// Name servers that answer when the client has left, and the gateway too.
    @Test func addressesThatComeTooLateAreDropped() async throws {
        let asked = DispatchSemaphore(value: 0)
        let answered = DispatchSemaphore(value: 0)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let resolver = TunnelResolver(group.any()) { _, _, _ in
            asked.wait()
            defer { answered.signal() }
            return .success([])
        }
        let loop = group.any()
        let futures = try await loop.submit {
            [resolver.initiateAAAAQuery(host: "a", port: 1), resolver.initiateAQuery(host: "a", port: 1)]
        }.get()
        try await loop.submit { resolver.cancelQueries() }.get()
        for future in futures {
            await #expect(throws: CancellationError.self) { _ = try await future.get() }
        }
        try await group.shutdownGracefully()
        for _ in futures { asked.signal() }
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                for _ in 0..<2 { answered.wait() }
                continuation.resume()
            }
        }
    }

    @Test func addressesAreFound() async throws {
        let group = MultiThreadedEventLoopGroup.singleton
        let resolver = TunnelResolver(group.any())
        let found = try await resolver.initiateAQuery(host: "127.0.0.1", port: 80).get()
        #expect(found.map(\.ipAddress) == ["127.0.0.1"])
        #expect(found.first?.port == 80)
        let others = try await resolver.initiateAAAAQuery(host: "::1", port: 80).get()
        #expect(others.map(\.ipAddress) == ["::1"])
    }
}
