import HTTPTestSupport
import HTTPTypes
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

/// Tasks that run on an event loop, and event loops that servers leave to others.
struct LoopExecutorTests {
    @Test func tasksRunOnTheEventLoop() async {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let gate = Gate()
        let task = Task(executorPreference: LoopExecutor(loop)) { () -> [Bool] in
            var places = [loop.inEventLoop]
            await Task.yield()
            places.append(loop.inEventLoop)
            try? await gate.wait()
            return places + [loop.inEventLoop]
        }
        await gate.arrival()
        gate.open()
        await #expect(task.value == [true, true, true])
    }

    @Test func groupsAreUsedAgain() {
        let groups = LoopGroups()
        let (first, second) = (groups.take(threads: 1), groups.take(threads: 1))
        #expect(first !== second)
        groups.giveBack(first, threads: 1)
        #expect(groups.take(threads: 2) !== first)
        #expect(groups.take(threads: 1) === first)
    }

    /// A connection to an origin that a gateway opened serves others after the gateway.
    @Test func aConnectionOutlivesItsGateway() async throws {
        let gate = Gate()
        let origin = try await TestOrigin.start { request in
            if request.path == "/a" { return .ok("a").header("Cache-Control", "no-store") }
            return .ok(String(repeating: "b", count: 200_000)).then(gate).then(String(repeating: "b", count: 100_000))
        }
        let transport = NIOTransport()
        try await withGateway(transport: transport) {
            $0.routes.otherwise = try OriginServer(origin.url)
        } _: { setting in
            let client = try await setting.connect()
            try await client.send(get("/a"))
            try await #expect(client.response().text == "a")
            let head = HTTPRequest(method: .get, scheme: "http", authority: origin.authority, path: "/b")
            let response = try await transport.send(TransportRequest(head: head))
            await gate.arrival()
            try await client.close()
            await setting.gateway.stop(drain: .zero)
            gate.open()
            var count = 0
            for try await piece in response.body { count += piece.count }
            #expect(count == 300_000)
            #expect(Set(origin.requests.map(\.connection)).count == 1)
        }
        await transport.close()
        await origin.stop()
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
