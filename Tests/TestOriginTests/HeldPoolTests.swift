import Foundation
import HTTPTestSupport
import NIOCore
import NIOPosix
import TestOrigin
import Testing

/// Tests that block their threads, as those do that wait for a process, do not stop an origin.
struct HeldPoolTests {
    @Test func answersWhileEveryThreadOfThePoolIsHeld() async throws {
        try await withOrigin { _ in
            .ok("hello").closing()
        } _: { origin in
            let port = origin.port
            let answer = try await whileThePoolIsHeld { try Self.exchange(port) }
            #expect(answer.hasSuffix("hello"))
        }
    }

    /// Runs `body` on a thread of its own, while a task waits on every thread that the pool has.
    private func whileThePoolIsHeld<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        let count = ProcessInfo.processInfo.activeProcessorCount
        let (held, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        for _ in 0..<count { Task.detached { Self.hold(held, until: done) } }
        return try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                for _ in 0..<count { held.wait() }
                let result = Result { try body() }
                for _ in 0..<count { done.signal() }
                continuation.resume(with: result)
            }
        }
    }

    private static func hold(_ held: DispatchSemaphore, until done: DispatchSemaphore) {
        held.signal()
        done.wait()
    }

    /// All that a connection says to a request; without a task.
    private static func exchange(_ port: Int) throws -> String {
        let all = MultiThreadedEventLoopGroup.singleton.any().makePromise(of: String.self)
        let channel = try ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Collector(all))
                }
            }
            .connect(host: "127.0.0.1", port: port).wait()
        try channel.writeAndFlush(ByteBuffer(string: get("/"))).wait()
        // Far above what an answer takes, far below what the run allows a test that hangs.
        let limit = channel.eventLoop.scheduleTask(in: .seconds(60)) { channel.close(promise: nil) }
        defer { limit.cancel() }
        return try all.futureResult.wait()
    }

    private final class Collector: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let all: EventLoopPromise<String>
        private var text = ""

        init(_ all: EventLoopPromise<String>) { self.all = all }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { text += String(buffer: unwrapInboundIn(data)) }
        func channelInactive(context: ChannelHandlerContext) { all.succeed(text) }
    }
}
