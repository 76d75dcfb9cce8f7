import HTTPTestSupport
import Larder
import LarderGateway
import LarderHTTP
import LarderNIOTransport
import NIOCore
import NIOPosix
import TestOrigin
import TestSupport
import Testing

@testable import LarderServer

/// Tasks that run on an event loop, and outlive it.
struct LoopExecutorTests {
    @Test func tasksRunOnTheEventLoopWhileThereIsOne() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let executor = LoopExecutor(loop)
        let gate = Gate()
        let task = Task(executorPreference: executor) { () -> [Bool] in
            var places = [loop.inEventLoop]
            await Task.yield()
            places.append(loop.inEventLoop)
            try? await gate.wait()
            return places + [loop.inEventLoop]
        }
        await gate.arrival()
        await executor.close()
        try await group.shutdownGracefully()
        gate.open()
        await #expect(task.value == [true, true, false])
    }

    @Test func loadsAreWaitedFor() async {
        let executor = LoopExecutor(MultiThreadedEventLoopGroup.singleton.next())
        #expect(!executor.hasLoads)
        await executor.loadsEnd()
        executor.loadBegan()
        executor.loadBegan()
        async let ended: Void = executor.loadsEnd()
        #expect(executor.hasLoads)
        executor.loadEnded()
        executor.loadEnded()
        await ended
        #expect(!executor.hasLoads)
    }

    /// A load that is nearly done continues for the store when its client and its gateway are gone, with a connection
    /// of the gateway's event loop.
    @Test func aLoadOutlivesItsGateway() async throws {
        let gate = Gate()
        let origin = try await TestOrigin.start { _ in
            .ok(String(repeating: "a", count: 200_000)).then(gate).then(String(repeating: "b", count: 100_000))
                .header("Cache-Control", "max-age=3600")
        }
        let transport = NIOTransport()
        try await withGateway(transport: transport) {
            $0.routes.otherwise = try OriginServer(origin.url)
        } _: { setting in
            let client = try await setting.connect()
            try await client.send(get("/a"))
            await gate.arrival()
            // Its connection is cut, and with it the last reader.
            await setting.gateway.stop(drain: .zero)
            try await client.close()
            gate.open()
            await setting.cache.drain()
            let stored = try await setting.store.perform { try $0.statistics().entryCount }
            #expect(stored == 1)
        }
        await transport.close()
        await origin.stop()
    }
}
