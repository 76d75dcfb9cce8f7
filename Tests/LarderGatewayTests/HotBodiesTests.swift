import HTTPTestSupport
import HTTPTypes
import Larder
import NIOCore
import TestOrigin
import TestSupport
import Testing

@testable import LarderServer

/// Large bodies in memory.
struct HotBodiesTests {
    /// Asks for the body under a key.
    private func ask(_ number: Int, _ bodies: inout HotBodies, _ store: Store) throws -> [UInt8]? {
        let entry = try #require(try store.get(Key("\(number)")))
        return try bodies.bytes(of: entry.body, entry.digest).map { Array(buffer: $0) }
    }

    private func withBodies(_ capacity: Int, _ run: (inout HotBodies, Store) throws -> Void) throws {
        try withStore { store in
            for number in 0..<40 { try store.put(body(1_000, number), for: Key("\(number)")) }
            var bodies = HotBodies(capacity: capacity)
            try run(&bodies, store)
        }
    }

    @Test func aBodyIsTakenInTheSecondTime() throws {
        try withBodies(4_000) { bodies, store in
            try #expect(ask(1, &bodies, store) == nil)
            try #expect(ask(1, &bodies, store) == body(1_000, 1))
            try #expect(ask(1, &bodies, store) == body(1_000, 1))
            #expect(bodies.byteCount == 1_000)
        }
    }

    @Test func whatIsKeptStaysWithinItsBytes() throws {
        try withBodies(5_500) { bodies, store in
            for round in 0..<5 {
                for number in 0..<40 {
                    // One is asked for all the time.
                    _ = try ask(0, &bodies, store)
                    if let bytes = try ask(number, &bodies, store) { #expect(bytes == body(1_000, number)) }
                    if let bytes = try ask(number, &bodies, store) { #expect(bytes == body(1_000, number)) }
                    #expect(bodies.byteCount <= 5_500, "round \(round)")
                }
            }
            #expect(bodies.byteCount == 5_000)
            try #expect(ask(0, &bodies, store) == body(1_000, 0))
        }
    }

    @Test(arguments: [0, 3_999]) func aBodyThatIsTooLargeIsNotKept(_ capacity: Int) throws {
        try withBodies(capacity) { bodies, store in
            for _ in 0..<3 { try #expect(ask(1, &bodies, store) == nil) }
            #expect(bodies.byteCount == 0)
        }
    }

    @Test func whatIsNotAskedForGoes() throws {
        try withBodies(100_000) { bodies, store in
            var now = NIODeadline.uptimeNanoseconds(1_000_000_000)
            for number in [1, 1, 2, 2, 3, 3] { _ = try ask(number, &bodies, store) }
            bodies.sweep(now)
            #expect(bodies.byteCount == 3_000)
            _ = try ask(2, &bodies, store)
            bodies.sweep(now + .seconds(1))
            #expect(bodies.byteCount == 3_000, "swept too early")
            now = now + HotBodies.sweepInterval
            bodies.sweep(now)
            #expect(bodies.byteCount == 1_000)
            try #expect(ask(2, &bodies, store) == body(1_000, 2))
            try #expect(ask(1, &bodies, store) == body(1_000, 1), "it was asked for lately")
            bodies.sweep(now + HotBodies.sweepInterval)
            bodies.sweep(now + HotBodies.sweepInterval * 2)
            #expect(bodies.byteCount == 0)
        }
    }

    /// More than the channel takes at once is flushed between two requests of one read, which finds it writable again.
    @Test func answersStayInOrderWhenTheyAreFlushedOnTheWay() async throws {
        let gate = Gate()
        let transport = ScriptedTransport { request in
            guard request.head.path == "/late" else {
                return .bytes(body(40_000, 1), [.cacheControl: "max-age=60"])
            }
            try? await gate.wait()
            return .text("late")
        }
        try await withGateway(transport: transport, { $0.hotBodyBytes = 0 }) { setting in
            let client = try await setting.connect()
            for path in ["/1", "/2"] { _ = try await client.exchange(get(path)) }
            try await client.send(["/1", "/2", "/late", "/1"].map { get($0) }.joined())
            for _ in 0..<2 { try await #expect(client.response().body.count == 40_000) }
            gate.open()
            try await #expect(client.response().text == "late")
            try await #expect(client.response().body.count == 40_000)
            try await client.close()
        }
    }

    @Test func aClientGetsTheBytesThatAreCurrent() async throws {
        let first = body(700_000, 1)
        let second = body(600_000, 2)
        let transport = ScriptedTransport { request in
            let answers = request.head.path == "/first" ? first : second
            return .bytes(answers, [.cacheControl: "max-age=60"])
        }
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            // In turn, and several at once: answers from memory and from the file follow each other.
            for round in 0..<4 {
                let paths = ["/first", "/second", "/first", "/first", "/second"]
                try await client.send(paths.map { get($0) }.joined())
                for path in paths {
                    let response = try await client.response()
                    #expect(response.body == (path == "/first" ? first : second), "round \(round), \(path)")
                }
            }
            #expect(transport.requests.count == 2)
            try await client.send(get("/first", method: "PURGE"))
            try await #expect(client.response().status == 200)
            try await client.send(get("/first"))
            let response = try await client.response()
            #expect(response.body == first && transport.requests.count == 3)
            try await client.close()
        }
    }
}
