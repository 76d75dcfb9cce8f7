import HTTPTestSupport
import HTTPTypes
import LarderGateway
import LarderHTTP
import LarderNIOTransport
import SystemPackage
import TestOrigin
import TestSupport
import Testing

/// What a client does not take stays where it is: in the store, or with the origin (RFC 9113 section 5.2).
struct HTTP2WindowTests {
    /// Answers with as many bytes as the path says, `/n/COUNT` not to be stored.
    let transport = ScriptedTransport { request in
        let words = (request.head.path ?? "").split(separator: "/")
        let isStored = words.count == 1
        return .bytes(
            body(Int(words.last ?? "") ?? 0), isStored ? fresh : [.cacheControl: "no-store"],
            declaresLength: words.first != "u")
    }

    private func store(_ path: String, _ port: Int) async throws {
        let client = try await HTTP2Client.connect(to: port)
        _ = try await client.get(path)
        await client.close()
    }

    @Test(arguments: [4_000, 64 << 10, 1 << 20]) func clientsWithoutAWindowCostNoMemory(_ size: Int) async throws {
        try await withTLS(transport, { $0.limits.heldBytes = 64 << 10 }) { setting, port in
            try await store("/\(size)", port)
            let client = try await RawHTTP2Client.connect(to: port, window: 0)
            for stream in 0..<100 {
                try await client.send(RawHTTP2Client.request(2 * stream + 1, "GET", "/\(size)"))
            }
            try await client.settle()
            let held = await setting.gateway.readCounters().heldForHTTP2
            // What is in memory already, as small bodies are when they have been looked up; of files nothing.
            #expect(size > 4_000 ? held == 0 : held > 0 && held <= (64 << 10) + 4_000)
            // Not one of the streams gets on, so all are reset, and the connection ends.
            await setting.pass(seconds: 31)
            let frames = try await client.rest()
            #expect(frames.count { $0.type == RawHTTP2Client.reset } == 100)
            #expect(frames.contains { $0.type == RawHTTP2Client.goAway && $0.code == 0 })
            #expect(!frames.contains { $0.type == RawHTTP2Client.data })
            try await setting.waitForConnections(0)
            await #expect(setting.gateway.readCounters().heldForHTTP2 == 0)
            await #expect(setting.gateway.readCounters().timeouts == 100)
        }
    }

    /// A client that leaves many answers, and waits for one.
    @Test func cancelledRequestsLeaveOthersAlone() async throws {
        let gate = Gate()
        let transport = ScriptedTransport { request throws(TransportError) in
            if request.head.path == "/held" { try? await gate.wait() }
            return .text("done")
        }
        try await withTLS(transport) { setting, port in
            let client = try await RawHTTP2Client.connect(to: port, window: 1 << 20)
            func cancel(_ streams: StrideThrough<Int>) async throws {
                for stream in streams {
                    try await client.send(
                        RawHTTP2Client.request(stream, "GET", "/x"),
                        RawHTTP2Client.frame(RawHTTP2Client.reset, 0, stream, [0, 0, 0, 8]))
                }
            }
            try await client.send(RawHTTP2Client.request(1, "GET", "/held"))
            await gate.arrival()
            try await cancel(stride(from: 3, through: 1_001, by: 2))
            gate.open()
            try await #expect(client.answer(1)?.status == 200)
            // Very many end the connection, and nothing says that they were not processed.
            try? await cancel(stride(from: 1_003, through: 5_001, by: 2))
            #expect(try await !client.rest().contains { $0.type == RawHTTP2Client.goAway })
            try await setting.waitForConnections(0)
        }
    }

    @Test(arguments: ["/60000", "/1000000", "/n/100000", "/u/100000"])
    func asMuchIsSentAsTheWindowsAllow(_ path: String) async throws {
        try await withTLS(transport) { setting, port in
            if path.dropFirst().allSatisfy(\.isNumber) { try await store(path, port) }
            let count = Int(path.split(separator: "/").last ?? "") ?? 0
            let client = try await RawHTTP2Client.connect(to: port, window: 0)
            try await client.send(RawHTTP2Client.request(1, "GET", path))
            try await #expect(client.answer(1)?.status == 200)
            try await client.settle()
            var received: [UInt8] = []
            try await client.send(RawHTTP2Client.grow(1, by: 10))
            received += try await client.data(10)
            // A larger initial window enlarges all; the connection's stays at 65,535.
            try await client.send(
                RawHTTP2Client.frame(RawHTTP2Client.settings, 0, 0, [0, 4, 0, 0, 0xAB, 0xCD]))
            received += try await client.data(43_981)
            try await client.send(RawHTTP2Client.grow(1, by: 1 << 20))
            received += try await client.data(min(count, 65_535) - received.count)
            try await client.settle()
            if count > 65_535 {
                try await client.send(RawHTTP2Client.grow(0, by: 1 << 20))
                received += try await client.data(count - received.count)
            }
            #expect(received == body(count))
            await client.close()
        }
    }

    /// A client need not open a window for an end.
    @Test(arguments: ["/5000", "/n/5000", "/u/5000", "/n/0"]) func theEndNeedsNoWindow(_ path: String) async throws {
        try await withTLS(transport) { setting, port in
            let count = path.hasSuffix("5000") ? 5_000 : 0
            let client = try await RawHTTP2Client.connect(to: port, window: count)
            for stream in [1, 3] {
                try await client.send(RawHTTP2Client.request(stream, "GET", path))
                try await #expect(client.content(stream)?.count == count)
            }
            await client.close()
        }
    }

    @Test func contentOfTheOriginStaysThereUntilThereIsAWindow() async throws {
        let pulls = Counter()
        let transport = ScriptedTransport { _ in
            TransportResponse(
                head: HTTPResponse(status: .ok, headerFields: [.cacheControl: "no-store"]),
                body: TransportBody(length: 8 << 20) { () throws(TransportError) in
                    pulls.increment() > 128 ? nil : body(65_536)
                })
        }
        try await withTLS(transport) { setting, port in
            let client = try await RawHTTP2Client.connect(to: port, window: 0)
            for stream in 0..<20 { try await client.send(RawHTTP2Client.request(2 * stream + 1, "GET", "/\(stream)")) }
            for stream in 0..<20 { try await #expect(client.answer(2 * stream + 1)?.type == RawHTTP2Client.headers) }
            await #expect(setting.gateway.readCounters().heldForHTTP2 == 0)
            // One byte brings one piece of it here.
            try await client.send(RawHTTP2Client.grow(1, by: 1))
            let data = try await client.next { $0.type == RawHTTP2Client.data }
            #expect(data?.payload.count == 1)
            await #expect(setting.gateway.readCounters().heldForHTTP2 <= 64 << 10)
            await client.close()
        }
    }

    /// A load whose content was never asked for ends with its client, too.
    @Test func aClientThatLeavesWithoutAWindowCancelsItsLoad() async throws {
        let origin = try await TestOrigin.start { _ in
            .ok().then(GeneratedBytes(count: 64 << 20)).header("Cache-Control", "no-store")
        }
        let transport = NIOTransport()
        try await withTLS(transport) {
            $0.routes.otherwise = try OriginServer(origin.url)
        } _: { setting, port in
            let client = try await RawHTTP2Client.connect(to: port, window: 0)
            try await client.send(RawHTTP2Client.request(1))
            try await #expect(client.answer(1)?.status == 200)
            try await client.send(RawHTTP2Client.frame(RawHTTP2Client.reset, 0, 1, [0, 0, 0, 8]))
            await origin.wait { $0.connectionsOpen == 0 }
            await client.close()
        }
        await transport.close()
        await origin.stop()
    }

    /// A gateway that stops does not wait for a client that does not read, nor for its goodbye.
    @Test func stoppingEndsWhatIsNotTaken() async throws {
        try await withTLS(transport) { setting, port in
            let client = try await RawHTTP2Client.connect(to: port, window: 1 << 30)
            try await client.send(RawHTTP2Client.grow(0, by: 1 << 30))
            try await client.settle()
            try await client.setReading(false)
            try await client.send(RawHTTP2Client.request(1, "GET", "/n/\(24 << 20)"))
            await setting.settles()
            await setting.gateway.stop(drain: .zero)
            await client.close()
        }
    }

    @Test func streamsThatWaitForMemoryAreAllAnswered() async throws {
        try await withTLS(transport) { setting, port in
            let sizes = [70_000, 200_000, 400_000, 5_000]
            for size in sizes { try await store("/\(size)", port) }
            let client = try await HTTP2Client.connect(to: port)
            try await withThrowingTaskGroup { group in
                for number in 0..<100 {
                    group.addTask {
                        let size = sizes[number % sizes.count]
                        let isWhole = try await client.get("/\(size)").body == body(size)
                        #expect(isWhole)
                    }
                }
                try await group.waitForAll()
            }
            await #expect(setting.gateway.readCounters().heldForHTTP2 == 0)
            await client.close()
        }
    }

    /// A stream that stalls is reset; one that gets on keeps the connection.
    @Test func oneStalledStreamIsResetAlone() async throws {
        try await withTLS(transport) { setting, port in
            try await store("/60000", port)
            let client = try await RawHTTP2Client.connect(to: port, window: 0)
            try await client.send(
                RawHTTP2Client.request(1, "GET", "/60000"), RawHTTP2Client.request(3, "GET", "/60000"))
            try await client.settle()
            await setting.pass(seconds: 1)
            var received: [UInt8] = []
            for _ in 0..<2 {
                try await client.send(RawHTTP2Client.grow(3, by: 20_000))
                received += try await client.data(20_000)
                await setting.pass(seconds: 20)
            }
            try await client.send(RawHTTP2Client.grow(3, by: 20_000))
            received += try await client.content(3) ?? []
            #expect(received == body(60_000))
            try await #expect(client.content(1) == nil)
            try await client.send(RawHTTP2Client.request(5, "HEAD", "/60000"))
            try await #expect(client.next { $0.stream == 5 } != nil)
            await client.close()
        }
    }

    /// A client that does not read holds up neither the end of the connection nor that of the gateway.
    @Test(arguments: [false, true]) func aConnectionThatIsNotReadIsClosed(_ hasStreams: Bool) async throws {
        try await withTLS(transport) { setting, port in
            let size = hasStreams ? 24 << 20 : 200_000
            try await store("/\(size)", port)
            let client = try await RawHTTP2Client.connect(to: port, window: 1 << 30)
            try await client.send(RawHTTP2Client.grow(0, by: 1 << 30))
            try await client.settle()
            try await client.setReading(false)
            if hasStreams {
                try await client.send(RawHTTP2Client.request(1, "GET", "/\(size)"))
            } else {
                // Until the system's buffers are full, all of it complete as far as HTTP/2 is concerned.
                for stream in 0..<90 {
                    try await client.send(RawHTTP2Client.request(2 * stream + 1, "GET", "/\(size)"))
                }
            }
            await setting.settles()
            try await waitWhile {
                await setting.pass(seconds: 300)
                return await setting.gateway.readCounters().openConnections > 0
            }
            await #expect(setting.gateway.readCounters().heldForHTTP2 == 0)
            await #expect(setting.gateway.readCounters().timeouts > 0)
            await #expect(setting.gateway.readCounters().clientAborts == 0, "the gateway ended it")
            await client.close()
        }
    }

    /// Its system tells of what it reads in large steps only: docs/gateway.md, "Slow clients".
    @Test func aClientThatPausesIsNotCut() async throws {
        try await withTLS(transport) { setting, port in
            let client = try await RawHTTP2Client.connect(to: port, window: 1 << 30)
            try await client.send(RawHTTP2Client.grow(0, by: 1 << 30))
            try await client.settle()
            try await client.setReading(false)
            try await client.send(RawHTTP2Client.request(1, "GET", "/n/\(12 << 20)"))
            await setting.settles()
            for _ in 0..<5 { await setting.pass(seconds: 40) }
            try await client.setReading(true)
            try await #expect(client.content(1)?.count == 12 << 20)
            await client.close()
        }
    }

    /// An answer whose last piece fills a write is counted when it is taken, not with the next write.
    @Test func theLastPieceIsCountedAtOnce() async throws {
        try await withTLS(transport) { setting, port in
            try await store("/65536", port)
            let client = try await RawHTTP2Client.connect(to: port, window: 0)
            try await client.send(RawHTTP2Client.request(1, "GET", "/65536"), RawHTTP2Client.grow(0, by: 1 << 20))
            try await client.settle()
            let before = await setting.gateway.readCounters().requests
            try await client.send(RawHTTP2Client.grow(1, by: 100_000))
            try await #expect(client.content(1)?.count == 65_536)
            try await waitWhile { await setting.gateway.readCounters().requests == before }
            await #expect(setting.gateway.readCounters().heldForHTTP2 == 0)
            await client.close()
        }
    }

    /// A body in memory counts as memory where clients do not take it.
    @Test func bodiesThatAreSharedCountAsMemory() async throws {
        try await withTLS(transport, { $0.limits.heldBytes = 64 << 10 }) { setting, port in
            while try await !setting.hasSharedBody() { try await store("/1000000", port) }
            var clients: [RawHTTP2Client] = []
            for _ in 0..<8 {
                let client = try await RawHTTP2Client.connect(to: port, window: 100_000)
                try await client.send(RawHTTP2Client.grow(0, by: 1 << 30))
                for stream in 0..<4 {
                    try await client.send(RawHTTP2Client.request(2 * stream + 1, "GET", "/1000000"))
                }
                _ = try await client.data(400_000)
                clients.append(client)
            }
            // What is on its way is with the clients: the rest of the body counts once.
            try await waitWhile { await setting.gateway.readCounters().heldBytes != 1_000_000 }
            for client in clients { try await client.reset() }
            try await setting.waitForConnections(0)
            try await waitWhile { await setting.gateway.readCounters().heldBytes > 0 }
        }
    }

    /// A connection that is reset in the middle of answers leaves no memory counted.
    @Test func aResetConnectionLeavesNoMemoryCounted() async throws {
        try await withTLS(transport) { setting, port in
            for _ in 0..<20 {
                let client = try await RawHTTP2Client.connect(to: port, window: 1 << 30)
                try await client.send(RawHTTP2Client.grow(0, by: 1 << 30))
                for stream in 0..<4 {
                    try await client.send(RawHTTP2Client.request(2 * stream + 1, "GET", "/u/2000000"))
                }
                _ = try await client.answer(1)
                try await client.reset()
            }
            try await setting.waitForConnections(0)
            try await waitWhile { await setting.gateway.readCounters().heldBytes > 0 }
            await #expect(setting.gateway.readCounters().heldForHTTP2 == 0)
        }
    }

    // MARK: What the log says

    private func logged(_ body: (Setting, Int) async throws -> Void) async throws -> [String] {
        try await withDirectory { directory in
            let path = directory.appending("access.log")
            try await withTLS(transport) {
                $0.accessLog = AccessLogConfiguration(format: .json, path: path.string)
            } _: { setting, port in
                try await body(setting, port)
            }
            return String(decoding: try TestFiles.read(path), as: UTF8.self).split(separator: "\n").map(String.init)
        }
    }

    @Test(arguments: ["/1000000", "/200000", "/n/1000000"])
    func theLogCountsWhatTheClientTook(_ path: String) async throws {
        let lines = try await logged { setting, port in
            if !path.hasPrefix("/n") { try await store(path, port) }
            let client = try await RawHTTP2Client.connect(to: port, window: 10_000)
            try await client.send(RawHTTP2Client.request(1, "GET", path))
            try await #expect(client.data(10_000).count == 10_000)
            await setting.pass(seconds: 7)
            try await client.send(RawHTTP2Client.frame(RawHTTP2Client.reset, 0, 1, [0, 0, 0, 8]))
            try await client.settle()
            await client.close()
        }
        let line = lines.last ?? ""
        #expect(line.contains("\"status\":200,\"bytes\":10000,\"microseconds\":7000000,\"incomplete\":true"), "\(line)")
    }

    @Test func theLogCountsCompleteAnswersWhenTheyAreTaken() async throws {
        let lines = try await logged { setting, port in
            let client = try await RawHTTP2Client.connect(to: port, window: 0)
            try await client.send(RawHTTP2Client.request(1, "GET", "/5000"))
            try await #expect(client.answer(1)?.status == 200)
            await setting.pass(seconds: 3)
            try await client.send(RawHTTP2Client.grow(1, by: 5_000))
            try await #expect(client.content(1)?.count == 5_000)
            await client.close()
        }
        #expect(lines.count == 1)
        #expect(lines[0].hasSuffix("\"status\":200,\"bytes\":5000,\"microseconds\":3000000}"), "\(lines)")
    }
}
