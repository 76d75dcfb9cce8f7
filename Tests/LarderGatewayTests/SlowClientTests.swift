import HTTPTestSupport
import HTTPTypes
import Larder
import LarderHTTP
import SystemPackage
import TestOrigin
import TestSupport
import Testing

@testable import LarderServer

/// Clients that take their time, and what is counted and logged of them.
struct SlowClientTests {
    static let length = 24 << 20

    static func transport(_ fields: HTTPFields) -> ScriptedTransport {
        let piece = [UInt8](repeating: 7, count: 64 << 10)
        return ScriptedTransport { _ in
            let sent = Counter()
            return TransportResponse(
                head: HTTPResponse(status: .ok, headerFields: fields),
                body: TransportBody(length: Int64(length)) { () throws(TransportError) in
                    sent.add(piece.count) <= length ? piece : nil
                })
        }
    }

    /// What our own system takes at once is several MB, and then nothing for a long time.
    @Test(arguments: [true, false]) func aReaderAboveTheLeastRateIsServed(_ isStored: Bool) async throws {
        try await withGateway(transport: Self.transport(isStored ? fresh : [.cacheControl: "no-store"])) { setting in
            if isStored { try await #expect(exchange(setting.port, get("/")).body.count == Self.length) }
            let client = try SlowClient(port: setting.port)
            try client.send(get("/"))
            await #expect(client.read(1) == 1)
            await setting.settles()
            // 130 bytes a second, for more than half an hour.
            for _ in 0..<100 {
                await #expect(client.read(2_600) == 2_600)
                await setting.pass(seconds: 20)
            }
            await #expect(setting.gateway.readCounters().timeouts == 0)
            await #expect(client.read(Self.length / 2) == Self.length / 2)
        }
    }

    @Test func aReaderBelowTheLeastRateIsCutOff() async throws {
        try await withGateway(transport: Self.transport([.cacheControl: "no-store"])) { setting in
            let client = try SlowClient(port: setting.port)
            try client.send(get("/"))
            await #expect(client.read(1) == 1)
            await setting.settles()
            // 50 bytes a second.
            var rounds = 0
            while await setting.gateway.readCounters().timeouts == 0 {
                rounds += 1
                try #require(await client.read(1_000) == 1_000)
                await setting.pass(seconds: 20)
            }
            // Where the system's buffers are full at the beginning fewer than 80, and more where that takes longer.
            #expect(rounds >= 40, "\(rounds)")
            await #expect(client.read(Self.length) < Self.length)
        }
    }

    @Test func aResponseMayHaveATimeLimitOfItsOwn() async throws {
        try await withGateway(transport: Self.transport([.cacheControl: "no-store"])) {
            $0.limits.responseTimeout = .seconds(100)
        } _: { setting in
            let client = try SlowClient(port: setting.port)
            try client.send(get("/"))
            await #expect(client.read(1) == 1)
            await setting.settles()
            for _ in 0..<5 {
                await #expect(setting.gateway.readCounters().timeouts == 0)
                await #expect(client.read(400_000) == 400_000)
                await setting.settles()
                await setting.pass(seconds: 24)
            }
            await #expect(setting.gateway.readCounters().timeouts == 1)
            await #expect(setting.gateway.readCounters().clientAborts == 0, "the gateway ended it")
        }
    }

    @Test func aClientThatLeavesWithinAnAnswerIsCountedAsSuch() async throws {
        try await withGateway(transport: Self.transport([.cacheControl: "no-store"])) { setting in
            let client = try await setting.connect()
            try await client.setReading(false)
            try await client.send(get("/"))
            await setting.settles()
            try await client.reset()
            try await setting.waitForConnections(0)
            await #expect(setting.gateway.readCounters().clientAborts == 1)
        }
    }

    @Test func contentHasATimeLimitInAll() async throws {
        try await withGateway(transport: ScriptedTransport.takingContent()) {
            $0.limits.contentTimeout = .seconds(100)
        } _: { setting in
            let client = try await setting.connect()
            let head = get("/", "Content-Length: 100000", method: "POST")
            try await client.send(head)
            for round in 1...5 {
                await #expect(setting.gateway.readCounters().timeouts == 0)
                try await client.send(body(10_000))
                try await setting.waitForBytes(head.utf8.count + round * 10_000)
                await setting.pass(seconds: 21)
            }
            try await #expect(client.response().status == 408)
        }
    }

    /// How an answer gets to the client.
    enum Way: CaseIterable {
        case file, shared, arriving
    }

    /// Asks for an answer on its way, and hands over the client that has its first byte, and the log's lines
    /// afterwards.
    private func lines(_ way: Way, _ body: (Setting, SlowClient) async throws -> Void) async throws -> [String] {
        try await withDirectory { directory in
            let path = directory.appending("access.log")
            let transport = Self.transport(way == .arriving ? [.cacheControl: "no-store"] : fresh)
            try await withGateway(
                transport: transport, storeMemory: way == .shared ? ByteCount(Int64(5 * Self.length)) : .zero
            ) {
                $0.accessLog = AccessLogConfiguration(format: .json, path: path.string)
            } _: { setting in
                try await setting.askOften("/first")
                if way == .shared { try await setting.waitForSharedBody() }
                let client = try SlowClient(port: setting.port, receiveBuffer: 64 << 10)
                try client.send(get(way == .arriving ? "/second" : "/first"))
                await #expect(client.read(1) == 1)
                await setting.settles()
                try await body(setting, client)
            }
            return String(decoding: try TestFiles.read(path), as: UTF8.self).split(separator: "\n").map(String.init)
        }
    }

    @Test(arguments: Way.allCases) func anAnswerIsLoggedWhenItHasGoneOut(_ way: Way) async throws {
        let lines = try await lines(way) { setting, client in
            await #expect(setting.gateway.readCounters().requests == 3)
            await setting.pass(seconds: 7)
            await #expect(client.read(Self.length) == Self.length)
            try await waitWhile { await setting.gateway.readCounters().requests < 4 }
        }
        #expect(lines.count == 4)
        #expect(lines[3].contains("\"bytes\":\(Self.length),\"microseconds\":7000000}"), "\(lines[3])")
    }

    @Test(arguments: Way.allCases) func anAnswerThatWasCutOffIsLoggedAsFarAsItWent(_ way: Way) async throws {
        let lines = try await lines(way) { setting, client in
            await #expect(client.read(1_000) == 1_000)
            client.leave()
            try await setting.waitForConnections(0)
            await #expect(setting.gateway.readCounters().clientAborts == 1)
        }
        #expect(lines.count == 4)
        let match = try #require(lines[3].firstMatch(of: /"bytes":([0-9]+),/))
        let bytes = try #require(Int(match.1))
        #expect((1_000..<1 << 20).contains(bytes), "\(bytes)")
        #expect(lines[3].contains("\"incomplete\":true"))
    }
}
