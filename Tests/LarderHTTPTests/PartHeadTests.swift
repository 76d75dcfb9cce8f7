import HTTPTestSupport
import HTTPTypes
import TestSupport
import Testing

@testable import LarderHTTP

/// Parts whose heads show that they are of no use for what was asked, or contradict themselves.
struct PartHeadTests {
    private static let total: Int64 = 100

    /// A server may send less than it was asked for (RFC 9110 section 15.3.7).
    @Test func aSliceThatEndsTooEarlyIsFollowedByTheRangeItself() async throws {
        try await Fixture.run({ $0.sliceBytes = 16 }) { fixture in
            fixture.transport.handler = { request throws(TransportError) in
                let asked = RangeOrigin.range(of: request, length: Self.total) ?? 0..<Self.total
                let range = asked.lowerBound..<min(asked.lowerBound + 4, asked.upperBound)
                return Self.part(range)
            }
            let (response, bytes) = try await fixture.getRange(22..<25)
            #expect(response.head.status == .partialContent && bytes == RangeOrigin.bytes(22..<25))
            let sent = fixture.transport.takeSent().map { $0.head.headerFields[.range] }
            #expect(sent == ["bytes=16-31", "bytes=22-24"])
            await fixture.cache.drain()
            let (second, _) = try await fixture.getRange(22..<25)
            #expect(second.source == .hit)
            // The beginning is not enough either; what comes for the range itself is passed on.
            let (third, _) = try await fixture.getRange(66..<73)
            #expect(third.head.headerFields[.contentRange] == "bytes 66-69/100")
        }
    }

    /// Of such a part the cache cuts nothing: it passes on what came for the client's own range.
    @Test func nothingIsCutOutOfAPartOfAnotherLength() async throws {
        try await Fixture.run({ $0.sliceBytes = 16 }) { fixture in
            fixture.transport.handler = { request throws(TransportError) in
                let range = RangeOrigin.range(of: request, length: Self.total) ?? 0..<Self.total
                return Self.part(range, bytes: RangeOrigin.bytes(0..<40))
            }
            let (response, bytes) = try await fixture.getRange(20..<24)
            #expect(response.head.headerFields[.contentLength] == "40" && bytes == RangeOrigin.bytes(0..<40))
            let sent = fixture.transport.takeSent().map { $0.head.headerFields[.range] }
            #expect(sent == ["bytes=16-31", "bytes=20-23"])
            await fixture.cache.drain()
            try await #expect(fixture.store.figures().entryCount == 0)
        }
    }

    /// Which bytes came is not known: also where so few came that `Content-Range` has room for them.
    @Test func aPartOfAnotherLengthThatIsCutOffIsNotStored() async throws {
        try await Fixture.run { fixture in
            fixture.transport.handler = { _ throws(TransportError) in
                var head = RangeOrigin.head(30..<60, of: Self.total)
                head.headerFields[.contentLength] = "100"
                return TransportResponse(
                    head: head, body: Pieces([RangeOrigin.bytes(0..<10)], isComplete: false).body(length: 100))
            }
            _ = try? await fixture.getRange(30..<60)
            await fixture.cache.drain()
            try await #expect(fixture.store.figures().entryCount == 0)
        }
    }

    /// A message that does not say its length has to come to its end.
    @Test(arguments: [true, false]) func aPartWithoutALengthIsStoredAtItsEnd(isWhole: Bool) async throws {
        try await Fixture.run { fixture in
            fixture.transport.handler = { _ throws(TransportError) in
                TransportResponse(
                    head: RangeOrigin.head(30..<60, of: Self.total),
                    body: Pieces([RangeOrigin.bytes(30..<(isWhole ? 60 : 40))], isComplete: isWhole).body(length: nil))
            }
            _ = try? await fixture.getRange(30..<60)
            await fixture.cache.drain()
            try await #expect((fixture.store.figures().entryCount > 0) == isWhole)
        }
    }

    /// The client asked for less, and has it before the message has shown its length.
    @Test(arguments: [16, 40]) func aSliceWithoutALengthComesToItsEnd(_ sent: Int64) async throws {
        try await Fixture.run({ $0.sliceBytes = 16 }) { fixture in
            fixture.transport.handler = { request throws(TransportError) in
                let range = RangeOrigin.range(of: request, length: Self.total) ?? 0..<Self.total
                let bytes = RangeOrigin.bytes(range.lowerBound..<range.lowerBound + sent)
                let pieces = stride(from: 0, to: bytes.count, by: 8).map { Array(bytes[$0..<$0 + 8]) }
                return TransportResponse(
                    head: RangeOrigin.head(range, of: Self.total), body: Pieces(pieces).body(length: nil))
            }
            try await #expect(fixture.getRange(16..<20).1 == RangeOrigin.bytes(16..<20))
            await fixture.cache.drain()
            try await #expect((fixture.store.figures().entryCount > 0) == (sent == 16))
            guard sent == 16 else { return }
            let (response, bytes) = try await fixture.getRange(26..<30)
            #expect(response.source == .hit && bytes == RangeOrigin.bytes(26..<30))
        }
    }

    /// The second gap is not the answer to the client's request.
    @Test func aLaterGapOfAnotherFormIsAnError() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: Self.total)
            _ = try await fixture.getRange(40..<60)
            fixture.transport.handler = { request throws(TransportError) in
                let range = RangeOrigin.range(of: request, length: Self.total) ?? 0..<Self.total
                return Self.part(range, range.lowerBound == 60 ? [.contentEncoding: "gzip"] : [:])
            }
            let response = try await fixture.cache.fetch(Fixture.url)
            let kind = await errorKind { for try await _ in response.body {} }
            #expect(kind == .origin)
        }
    }

    /// Two codings are two representations, whatever the entity tag says. A message of several parts is not one part.
    @Test(arguments: [(HTTPField.Name.contentEncoding, "gzip"), (.contentType, "multipart/byteranges; boundary=a")])
    func aPartOfAnotherFormIsNotJoined(_ name: HTTPField.Name, _ value: String) async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: Self.total)
            _ = try await fixture.getRange(40..<60)
            fixture.transport.handler = { request throws(TransportError) in
                guard let range = RangeOrigin.range(of: request, length: Self.total) else {
                    var head = RangeOrigin.head(0..<Self.total, of: Self.total)
                    head.status = .ok
                    head.headerFields[.contentRange] = nil
                    return .answer(head, RangeOrigin.bytes(0..<Self.total))
                }
                return Self.part(range, [name: value], bytes: [UInt8](repeating: 0, count: range.count))
            }
            let (response, bytes) = try await fixture.getRange()
            #expect(response.head.headerFields[.contentEncoding] == nil && bytes == RangeOrigin.bytes(0..<Self.total))
            await fixture.cache.drain()
            try await #expect(fixture.getRange(0..<10).1 == RangeOrigin.bytes(0..<10))
        }
    }

    /// Only an answer to `If-Range` may leave out the content coding.
    @Test func aPartWithoutTheCodingOfTheOthersIsNotJoined() async throws {
        try await Fixture.run { fixture in
            fixture.transport.handler = { request throws(TransportError) in
                let range = RangeOrigin.range(of: request, length: Self.total) ?? 0..<Self.total
                return Self.part(range, range.lowerBound < 50 ? [.contentEncoding: "gzip"] : [:])
            }
            for range in [0..<10, 50..<60] as [Range<Int64>] {
                _ = try await fixture.getRange(range)
                await fixture.cache.drain()
            }
            #expect(try fixture.parts.flatMap(\.ranges.ranges) == [50..<60])
        }
    }

    /// A 206 may freshen what is stored, but must not change its form.
    @Test func severalPartsDoNotChangeWhatIsStored() async throws {
        try await Fixture.run { fixture in
            fixture.answer(
                String(repeating: "x", count: 100),
                [.cacheControl: "max-age=60", .eTag: "\"a\"", .contentType: "text/plain"])
            _ = try await fixture.get()
            fixture.transport.handler = { _ throws(TransportError) in
                Self.part(0..<10, [.contentType: "multipart/byteranges; boundary=a"])
            }
            _ = try await fixture.get(fields: [.range: "bytes=0-1,50-51", .cacheControl: "no-cache"])
            await fixture.cache.drain()
            let (response, text) = try await fixture.get()
            #expect(response.source == .hit && text == String(repeating: "x", count: 100))
            #expect(response.head.headerFields[.contentType] == "text/plain")
        }
    }

    private static func part(
        _ range: Range<Int64>, _ fields: HTTPFields = [:], bytes: [UInt8]? = nil
    ) -> TransportResponse {
        let bytes = bytes ?? RangeOrigin.bytes(range)
        var head = RangeOrigin.head(range, of: total)
        head.headerFields.append(contentsOf: fields)
        head.headerFields[.contentLength] = "\(bytes.count)"
        return TransportResponse(head: head, body: Pieces([bytes]).body(length: Int64(bytes.count)))
    }
}
