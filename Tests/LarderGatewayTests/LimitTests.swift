import HTTPTestSupport
import HTTPTypes
import LarderGateway
import LarderHTTP
import NIOCore
import TestOrigin
import TestSupport
import Testing

/// What a client may use up. Time passes when a test says so.
struct LimitTests {
    let transport = ScriptedTransport { _ in .text("hello", fresh) }

    @Test func aHeadThatDoesNotEndIsCutOff() async throws {
        try await withGateway(transport: transport) { setting in
            let client = try await setting.connect()
            try await client.send("GET / HTTP/1.1\r\nHost: a\r\nX: ")
            try await setting.waitForBytes(28)
            await setting.pass(seconds: 9)
            // A byte now and then does not help.
            try await client.send("y")
            try await setting.waitForBytes(29)
            await setting.pass(seconds: 2)
            let response = try await client.response()
            #expect(response.status == 408)
            #expect(response["Connection"] == "close")
            try await #expect(client.rest().isEmpty)
            await #expect(setting.gateway.readCounters().timeouts == 1)
            try await client.close()
        }
    }

    @Test func anIdleConnectionIsClosed() async throws {
        try await withGateway(transport: transport) { setting in
            let new = try await setting.connect()
            let used = try await setting.connect()
            try await setting.waitForConnections(2)
            await setting.pass(seconds: 70)
            _ = try await used.exchange(get("/"))
            await setting.pass(seconds: 10)
            try await #expect(new.rest().isEmpty)
            // Ten seconds after its last request this one stands.
            try await #expect(used.exchange(get("/")).text == "hello")
            await setting.pass(seconds: 80)
            // It is closed only when the client's system has acknowledged all of the response, which may be some time
            // after the client has read it.
            async let ticking: Void = setting.ticks(until: { await setting.gateway.readCounters().openConnections == 0 }
            )
            try await #expect(used.rest().isEmpty)
            await ticking
        }
    }

    @Test func aContentThatStallsIsCutOff() async throws {
        try await withGateway(transport: ScriptedTransport.takingContent()) { setting in
            let head = get("/", "Content-Length: 100000", method: "POST")
            let stalled = try await setting.connect()
            try await stalled.send(head + "abc")
            let slow = try await setting.connect()
            try await slow.send(head)
            let steady = try await setting.connect()
            try await steady.send(head)
            var count = head.utf8.count * 3 + 3
            try await setting.waitForBytes(count)
            await setting.pass(seconds: 1)
            for _ in 0..<2 {
                // A trickle is as good as nothing; 1,000 bytes a second are enough.
                try await slow.send(body(100))
                try await steady.send(body(20_000))
                count += 20_100
                try await setting.waitForBytes(count)
                await setting.pass(seconds: 20)
            }
            try await #expect(stalled.response().status == 408)
            try await #expect(slow.response().status == 408)
            try await steady.send(body(60_000))
            try await #expect(steady.response().text == "complete")
            for client in [stalled, slow, steady] { try await client.close() }
        }
    }

    @Test func aSlowOriginIsNotTheClientsFault() async throws {
        try await withRequestThatWaits { setting, client, gate in
            for _ in 0..<5 { await setting.pass(seconds: 100) }
            gate.open()
            try await #expect(client.response().text == "late")
            try await client.close()
        }
    }

    @Test(arguments: [true, false]) func aClientThatDoesNotReadIsCutOff(_ isStored: Bool) async throws {
        let content = [UInt8](repeating: 7, count: 24 << 20)
        let transport = ScriptedTransport { _ in
            .bytes(content, isStored ? fresh : [.cacheControl: "no-store"])
        }
        try await withGateway(transport: transport) { setting in
            if isStored {
                let first = try await setting.connect()
                try await #expect(first.exchange(get("/")).body.count == content.count)
                try await first.close()
            }
            let client = try await setting.connect()
            try await client.setReading(false)
            try await client.send(get("/"))
            // Until the system's buffers are full.
            await setting.settles()
            // Its system may be 96 KiB behind at 128 bytes a second.
            for _ in 0..<39 { await setting.pass(seconds: 20) }
            await #expect(setting.gateway.readCounters().timeouts == 0)
            // Two more, or as many again where a busy machine filled the buffers later.
            try await waitWhile {
                await setting.pass(seconds: 20)
                return await setting.gateway.readCounters().timeouts == 0
            }
            try await client.setReading(true)
            let head = try await client.head()
            #expect(head.status == 200)
            let rest = try? await client.rest()
            #expect(rest.map { $0.count < content.count } ?? true)
            await #expect(setting.gateway.readCounters().timeouts == 1)
        }
    }

    @Test func connectionsOverTheLimitAreRefused() async throws {
        try await withGateway(transport: transport) {
            $0.limits.connections = 2
        } _: { setting in
            let first = try await setting.connect()
            let second = try await setting.connect()
            _ = try await first.exchange(get("/"))
            _ = try await second.exchange(get("/"))
            let third = try await setting.connect()
            let refusal = try await third.response()
            #expect(refusal.status == 503)
            #expect(refusal["Retry-After"] == "1")
            try await #expect(third.rest().isEmpty)
            try await first.close()
            try await setting.waitForConnections(1)
            let fourth = try await setting.connect()
            try await #expect(fourth.exchange(get("/")).text == "hello")
            try await second.close()
            try await fourth.close()
        }
    }

    @Test func requestsOnOneConnectionAreLimited() async throws {
        try await withGateway(transport: transport) {
            $0.limits.requestsPerConnection = 3
        } _: { setting in
            let client = try await setting.connect()
            for number in 1...3 {
                let response = try await client.exchange(get("/"))
                #expect(response["Connection"] == (number == 3 ? "close" : nil))
            }
            try await #expect(client.rest().isEmpty)
        }
    }

    @Test func limitsOfTheHeadAreTheConfigurations() async throws {
        try await withGateway(transport: transport) {
            $0.limits.headBytes = 1_000
            $0.limits.requestLineBytes = 200
            $0.limits.fieldCount = 5
        } _: { setting in
            for (text, status) in [
                (get("/" + String(repeating: "a", count: 150)), 200),
                (get("/" + String(repeating: "a", count: 250)), 414),
                (get("/", "A: " + String(repeating: "a", count: 1_000)), 431),
                (get("/", "A: 1", "B: 2", "C: 3", "D: 4"), 200),
                (get("/", "A: 1", "B: 2", "C: 3", "D: 4", "E: 5"), 431),
            ] {
                let client = try await setting.connect()
                try await #expect(client.exchange(text).status == status)
                try await client.close()
            }
        }
    }
}

extension Setting {
    /// Time passes, and the gateway looks.
    func pass(seconds: Int) async {
        await gateway.tick()
        time.advance(seconds: seconds)
        await gateway.tick()
    }

    /// Lets the gateway look at its connections, as it does every second or so, until something holds.
    func ticks(until isDone: () async -> Bool) async {
        try? await waitWhile {
            if await isDone() { return false }
            await gateway.tick()
            return true
        }
    }

    /// Waits until the gateway has read this many bytes in all.
    func waitForBytes(_ count: Int) async throws {
        try await waitWhile { await gateway.readCounters().bytesIn < UInt64(count) }
    }

    /// Waits until this many connections are open.
    func waitForConnections(_ count: Int) async throws {
        try await waitWhile { await gateway.readCounters().openConnections != Int64(count) }
    }

    /// Waits until the gateway sends no more. There is no event for a socket that stays full, so this returns when
    /// nothing has been sent for a while, which is longer on a busy machine. It may still be too early: what a test
    /// does next has to allow for more that is sent.
    func settles() async {
        var last = UInt64.max
        while case let sent = await gateway.readCounters().bytesOut, sent != last || sent == 0 {
            last = sent
            for _ in 0..<20 { try? await Task.sleep(for: .milliseconds(5)) }
        }
    }
}
