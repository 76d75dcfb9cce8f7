import HTTPTestSupport
import HTTPTypes
import LarderHTTP
import Testing

/// Answers that the system does not take at once.
struct PartialWriteTests {
    /// From those in one write to those that go out in several, in memory and in a file.
    private static let lengths = [200, 1 << 10, 15 << 10, 40 << 10, 100 << 10, 600 << 10]

    private static func content(_ number: Int) -> [UInt8] {
        (0..<lengths[number]).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8 &+ number) }
    }

    /// The client reads nothing before the gateway has written all that the system takes.
    @Test func answersBehindEachOtherComeWholeAndInOrder() async throws {
        let transport = ScriptedTransport { request in
            .bytes(Self.content(Int(request.head.path?.dropFirst() ?? "") ?? 0), fresh)
        }
        try await withGateway(transport: transport) { setting in
            let filling = try await setting.connect()
            for number in Self.lengths.indices {
                while try await filling.exchange(get("/\(number)"))["Cache-Status"]?.contains("; hit") != true {}
            }
            try await filling.close()
            let numbers = (0..<200).map { $0 * 7 % Self.lengths.count }
            let client = try SlowClient(port: setting.port)
            try client.send(numbers.map { get("/\($0)") }.joined() + get("/0", "Connection: close"))
            await setting.settles()
            var rest = await client.rest()[...]
            for number in numbers + [0] {
                let end = try #require(rest.firstRange(of: Array("\r\n\r\n".utf8)))
                let head = String(decoding: rest[..<end.lowerBound], as: UTF8.self)
                rest = rest[end.upperBound...]
                try #require(head.hasPrefix("HTTP/1.1 200 OK\r\n") && head.contains("; hit"), "\(head)")
                try #require(rest.starts(with: Self.content(number)), "\(number)")
                rest = rest.dropFirst(Self.lengths[number])
            }
            #expect(rest.isEmpty)
        }
    }
}
