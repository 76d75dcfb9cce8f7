import HTTPTestSupport
import HTTPTypes
import TestSupport
import Testing

@testable import LarderHTTP

/// Gaps between stored parts, of which the origin sends more or fewer bytes than its `Content-Range` says.
struct GapLengthTests {
    struct Case: Sendable {
        /// Where the gap begins that is wrong.
        let gap: Int64
        /// The bytes that are sent of it.
        let sent: Int64
        let declaresLength: Bool
    }

    private static let total: Int64 = 100

    @Test(
        arguments: [(0, 30), (0, 50), (60, 30), (60, 50)].flatMap { (gap: Int64, sent: Int64) in
            [true, false].map { Case(gap: gap, sent: sent, declaresLength: $0) }
        })
    func noByteComesAtAnotherPosition(_ given: Case) async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: Self.total)
            _ = try await fixture.getRange(40..<60)
            fixture.transport.handler = { request throws(TransportError) in
                let range = RangeOrigin.range(of: request, length: Self.total) ?? 0..<Self.total
                let count = range.lowerBound == given.gap ? given.sent : Int64(range.count)
                let bytes = RangeOrigin.bytes(range.lowerBound..<(range.lowerBound + count))
                return TransportResponse(
                    head: RangeOrigin.head(range, of: Self.total),
                    body: Pieces([bytes]).body(length: given.declaresLength ? count : nil))
            }
            let expected = RangeOrigin.bytes(0..<Self.total)
            let response = try await fixture.cache.fetch(Fixture.url)
            var received: [UInt8] = []
            let kind = await errorKind { for try await piece in response.body { received += piece } }
            #expect(kind == .origin)
            #expect(received == Array(expected.prefix(received.count)))

            await fixture.cache.drain()
            fixture.serveRanges(of: Self.total)
            try await #expect(fixture.getRange().1 == expected)
        }
    }

    /// What it says of its end is not true, so that no later answer may go by it.
    @Test func aShortPartIsNotTheWhole() async throws {
        try await Fixture.run { fixture in
            fixture.transport.handler = { _ throws(TransportError) in
                TransportResponse(
                    head: RangeOrigin.head(0..<Self.total, of: Self.total),
                    body: Pieces([RangeOrigin.bytes(0..<50)]).body(length: 50))
            }
            _ = try? await fixture.getRange(0..<Self.total)
            await fixture.cache.drain()
            fixture.serveRanges(of: Self.total)
            for range in [nil, 90..<100] as [Range<Int64>?] {
                let (response, bytes) = try await fixture.getRange(range)
                #expect(bytes == RangeOrigin.bytes(range ?? 0..<Self.total), "\(response.source)")
            }
        }
    }
}
