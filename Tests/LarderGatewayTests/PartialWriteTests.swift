import HTTPTestSupport
import HTTPTypes
import LarderHTTP
import Testing

/// Answers that the system does not take at once: the client reads nothing before the gateway has written all that the
/// system takes.
struct PartialWriteTests {
    private static func content(_ length: Int) -> [UInt8] {
        (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8 &+ length) }
    }

    /// From those in one write to those that go out in several, in memory and in a file.
    @Test func answersBehindEachOtherComeWholeAndInOrder() async throws {
        let lengths = [200, 1 << 10, 15 << 10, 40 << 10, 100 << 10, 600 << 10]
        try await withStored(lengths) { setting in
            let asked = (0..<60).map { lengths[$0 % lengths.count] }
            let client = try SlowClient(port: setting.port, receiveBuffer: 64 << 10)
            try client.send(asked.map { get("/\($0)") }.joined())
            try await expectAll(asked, of: client, setting)
        }
    }

    /// As records of TLS, with one write for all that a flush hands over.
    @Test func answersOverTLSComeWholeAndInOrder() async throws {
        let lengths = [200, 1 << 10, 15 << 10, 40 << 10, 100 << 10, 600 << 10]
        try await withTLS(Self.transport) { setting, port in
            let client = try await RawClient.connectSecurely(to: port, receiveBuffer: 64 << 10)
            try await Self.fill(lengths, client)
            let asked = (0..<60).map { lengths[$0 % lengths.count] }
            try await client.setReading(false)
            try await client.send(asked.map { get("/\($0)") }.joined() + get("/200", "Connection: close"))
            await setting.settles()
            try await client.setReading(true)
            try Self.expect(asked + [200], in: try await client.rest())
        }
    }

    /// Each few are a write of their own, to the socket. Together they are more than the system takes, and one write is
    /// cut in two.
    @Test(arguments: [(15 << 10, 4), (15 << 10, 1), (9_000, 3)]) func aShortWriteMayBeTakenInPart(
        _ length: Int, _ together: Int
    ) async throws {
        try await withStored([length]) { setting in
            let client = try SlowClient(port: setting.port, receiveBuffer: 64 << 10)
            let writes = 8 << 20 / (length * together)
            var isTaken = true
            for _ in 0..<writes {
                let before = await setting.gateway.readCounters().bytesOut
                try client.send(String(repeating: get("/\(length)"), count: together))
                // Where that takes longer, several are one write: then less is tested.
                if isTaken { isTaken = await setting.sends(moreThan: before) }
            }
            try await expectAll([Int](repeating: length, count: writes * together), of: client, setting)
        }
    }

    /// Requests wait until the client has taken the answers before theirs; that it sends no more changes nothing.
    @Test func aClientThatHasEndedItsSideGetsAllAnswers() async throws {
        let length = 600 << 10
        try await withStored([length]) { setting in
            let client = try await RawClient.connect(to: setting.port, receiveBuffer: 64 << 10)
            try await client.setReading(false)
            try await client.send(String(repeating: get("/\(length)"), count: 20))
            await setting.settles()
            try await client.finishSending()
            try await client.setReading(true)
            try Self.expect([Int](repeating: length, count: 20), in: try await client.rest())
            await #expect(setting.gateway.readCounters().clientAborts == 0)
        }
    }

    private static let transport = ScriptedTransport { request in
        .bytes(content(Int(request.head.path?.dropFirst() ?? "") ?? 0), fresh)
    }

    private func withStored(_ lengths: [Int], _ body: (Setting) async throws -> Void) async throws {
        try await withGateway(transport: Self.transport) { setting in
            let client = try await setting.connect()
            try await Self.fill(lengths, client)
            try await client.close()
            try await body(setting)
        }
    }

    /// Makes each answer a hit.
    private static func fill(_ lengths: [Int], _ client: RawClient) async throws {
        for length in lengths {
            while try await client.exchange(get("/\(length)"))["Cache-Status"]?.contains("; hit") != true {}
        }
    }

    private func expectAll(_ asked: [Int], of client: SlowClient, _ setting: Setting) async throws {
        try client.send(get("/\(asked[0])", "Connection: close"))
        await setting.settles()
        try Self.expect(asked + [asked[0]], in: await client.rest())
    }

    private static func expect(_ asked: [Int], in bytes: [UInt8]) throws {
        let contents = Dictionary(uniqueKeysWithValues: Set(asked).map { ($0, content($0)) })
        var rest = bytes[...]
        for length in asked {
            let end = try #require(rest.firstRange(of: Array("\r\n\r\n".utf8)))
            let head = String(decoding: rest[..<end.lowerBound], as: UTF8.self)
            rest = rest[end.upperBound...]
            try #require(head.hasPrefix("HTTP/1.1 200 OK\r\n") && head.contains("; hit"), "\(head)")
            try #require(Array(rest.prefix(length)) == contents[length], "\(length)")
            rest = rest.dropFirst(length)
        }
        #expect(rest.isEmpty)
    }
}

extension Setting {
    /// Whether more bytes leave soon.
    fileprivate func sends(moreThan before: UInt64) async -> Bool {
        for _ in 0..<100 {
            if await gateway.readCounters().bytesOut > before { return true }
            try? await Task.sleep(for: .milliseconds(1))
        }
        return false
    }
}
