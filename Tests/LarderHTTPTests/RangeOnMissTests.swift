import HTTPTestSupport
import HTTPCaching
import HTTPTypes
import TestSupport
import Testing

@testable import LarderHTTP

/// A range that nothing is stored of, and an origin that sends the whole (RFC 9110 section 14.2 lets it).
struct RangeOnMissTests {
    struct Case: Sendable {
        var range: String
        var ifRange: String?
        var status: Int
        var text: String
        var contentRange: String?
    }

    @Test(arguments: [
        Case(range: "bytes=2-4", status: 206, text: "234", contentRange: "bytes 2-4/10"),
        Case(range: "bytes=-3", status: 206, text: "789", contentRange: "bytes 7-9/10"),
        Case(range: "bytes=8-", status: 206, text: "89", contentRange: "bytes 8-9/10"),
        Case(range: "bytes=20-", status: 416, text: "", contentRange: "bytes */10"),
        Case(range: "bytes=0-1,5-6", status: 206, text: "0123456", contentRange: "bytes 0-6/10"),
        Case(range: "lines=0-1", status: 200, text: "0123456789"),
        Case(range: "bytes=2-4", ifRange: "\"a\"", status: 206, text: "234", contentRange: "bytes 2-4/10"),
        Case(range: "bytes=2-4", ifRange: "\"b\"", status: 200, text: "0123456789"),
    ])
    func aRangeIsCutOutOfTheWhole(_ given: Case) async throws {
        try await Fixture.run { fixture in
            fixture.transport.handler = { _ throws(TransportError) in
                // In small pieces, so that the range begins and ends within one.
                let pieces = Pieces(["012", "345", "678", "9"].map { Array($0.utf8) })
                return TransportResponse(
                    head: HTTPResponse(
                        status: .ok,
                        headerFields: [.cacheControl: "max-age=60", .eTag: "\"a\"", .setCookie: "a=b"]),
                    body: TransportBody(length: 10) { () throws(TransportError) in try pieces.next() })
            }
            var fields: HTTPFields = [.range: given.range]
            if let ifRange = given.ifRange { fields[.ifRange] = ifRange }
            let (response, text) = try await fixture.get(fields: fields)
            #expect(response.head.status.code == given.status && text == given.text)
            #expect(response.head.headerFields[.contentRange] == given.contentRange)
            #expect(response.head.headerFields[.setCookie] == "a=b" && response.source == .network)
            #expect(response.body.length == Int64(text.utf8.count))
            await fixture.cache.drain()
            // All of it is there.
            let (whole, all) = try await fixture.get()
            #expect(whole.source == .hit && all == "0123456789")
            #expect(fixture.transport.sent.count == 1)
        }
    }

    /// RFC 9110 section 14.1.2: a suffix range is satisfiable if its length is not zero.
    @Test func theEndOfAnEmptyResponseIsTheWhole() async throws {
        try await Fixture.run { fixture in
            fixture.answer("", [.cacheControl: "max-age=60"])
            for (range, status) in [("bytes=-5", 200), ("bytes=-5", 200), ("bytes=0-", 416), ("bytes=-0", 416)] {
                let (response, text) = try await fixture.get(fields: [.range: range])
                #expect(response.head.status.code == status && text.isEmpty, "\(range)")
            }
        }
    }

    @Test func severalRangesAreAnsweredWithTheWhole() async throws {
        try await Fixture.run { fixture in
            fixture.answer(String(repeating: "x", count: 1_000), [.cacheControl: "max-age=60"])
            let (response, text) = try await fixture.get(fields: [.range: "bytes=0-1,500-501"])
            #expect(response.head.status == .ok && text.utf8.count == 1_000)
        }
    }

    @Test(arguments: ["no-store", "max-age=60"]) func whatIsNotStoredOrHasNoLengthIsPassedOn(_ control: String)
        async throws
    {
        try await Fixture.run { fixture in
            fixture.transport.handler = { _ throws(TransportError) in
                let pieces = Pieces([Array("0123456789".utf8)])
                return TransportResponse(
                    head: HTTPResponse(status: .ok, headerFields: [.cacheControl: control]),
                    body: TransportBody(length: control == "no-store" ? 10 : nil) { () throws(TransportError) in
                        try pieces.next()
                    })
            }
            let (response, text) = try await fixture.get(fields: [.range: "bytes=2-4"])
            #expect(response.head.status == .ok && text == "0123456789")
        }
    }

    // MARK: Slices

    private func serveRanges(_ fixture: Fixture, _ length: Int, control: String = "max-age=60") {
        let text = (0..<length).map { String($0 % 10) }.joined()
        fixture.transport.handler = { request throws(TransportError) in
            var fields: HTTPFields = [.cacheControl: control, .eTag: "\"a\""]
            guard let value = request.head.headerFields[.range],
                case .bytes(let field) = RangeField.parse(Array(value.utf8)),
                let range = field.resolved(length: Int64(length)).first
            else { return .answer(200, fields, text) }
            fields[.contentRange] = ContentRange(range: range, completeLength: Int64(length)).fieldValue
            return .answer(206, fields, String(text.dropFirst(Int(range.lowerBound)).prefix(range.count)))
        }
    }

    @Test func aRangeIsFetchedInSlices() async throws {
        try await Fixture.run({ $0.sliceBytes = 16 }) { fixture in
            serveRanges(fixture, 100)
            for (range, sent, content, text) in [
                ("bytes=20-23", "bytes=16-31", "bytes 20-23/100", "0123"),
                ("bytes=40-50", "bytes=32-63", "bytes 40-50/100", "01234567890"),
                ("bytes=97-", "bytes=96-", "bytes 97-99/100", "789"),
            ] {
                let (response, part) = try await fixture.get(fields: [.range: range])
                #expect(response.head.status == .partialContent && part == text)
                #expect(response.head.headerFields[.contentRange] == content)
                #expect(response.body.length == Int64(text.utf8.count))
                #expect(fixture.transport.takeSent().map { $0.head.headerFields[.range] } == [sent])
                await fixture.cache.drain()
            }
            let (beyond, _) = try await fixture.get(fields: [.range: "bytes=102-"])
            #expect(beyond.head.status.code == 416)
            let (near, text) = try await fixture.get(fields: [.range: "bytes=30-33"])
            #expect(near.source == .hit && text == "0123")
        }
    }

    @Test func aRangeWithoutAnEndIsCutOutOfAnUnknownLength() async throws {
        try await Fixture.run({ $0.sliceBytes = 16 }) { fixture in
            fixture.transport.handler = { _ throws(TransportError) in
                var head = RangeOrigin.head(16..<100, of: 100)
                head.headerFields[.contentRange] = "bytes 16-99/*"
                return TransportResponse(head: head, body: Pieces([RangeOrigin.bytes(16..<100)]).body(length: 84))
            }
            let (response, _) = try await fixture.get(fields: [.range: "bytes=20-"])
            #expect(response.head.headerFields[.contentRange] == "bytes 20-99/*")
            #expect(response.body.length == 80)
        }
    }

    /// The client has what it wants long before.
    @Test func aSliceComesToItsEndWithoutAReader() async throws {
        let slice: Int64 = 512 << 10
        try await Fixture.run({ configuration in
            configuration.sliceBytes = slice
            configuration.abandonedLoads.restBytes = 0
        }) { fixture in
            let half = HalvedBody(RangeOrigin.bytes(0..<slice))
            fixture.transport.handler = { _ throws(TransportError) in
                TransportResponse(head: RangeOrigin.head(0..<slice, of: 2 * slice), body: half.body(length: Int(slice)))
            }
            let (_, first) = try await fixture.getRange(10..<20)
            #expect(first == RangeOrigin.bytes(10..<20))
            half.open()
            await fixture.cache.drain()
            let last = (slice - 10)..<slice
            let (near, bytes) = try await fixture.getRange(last)
            #expect(near.source == .hit && bytes == RangeOrigin.bytes(last))
            #expect(fixture.transport.takeSent().map { $0.head.headerFields[.range] } == ["bytes=0-\(slice - 1)"])
        }
    }

    /// Of many slices only the last is of use to others, and what is not shared each client would get for itself.
    @Test(arguments: SliceLeaver.allCases)
    func aLoadOfSlicesEndsWithItsReader(_ leaver: SliceLeaver) async throws {
        let (slice, length): (Int64, Int64) = (64 << 10, 512 << 10)
        try await Fixture.run({ configuration in
            configuration.sliceBytes = leaver == .manySlices ? slice : length
            configuration.collapsesRequests = leaver != .notShared
            configuration.abandonedLoads.restBytes = 0
            if leaver == .noPlace { configuration.abandonedLoads = .none }
        }) { fixture in
            // In pieces, of which half come before the client has left.
            let step: Int64 = 4 << 10
            let pieces = Pieces((0..<(length / step)).map { RangeOrigin.bytes(($0 * step)..<($0 * step + step)) })
            let (gate, sent) = (Latch(), Counter())
            fixture.transport.handler = { _ throws(TransportError) in
                TransportResponse(
                    head: RangeOrigin.head(0..<length, of: 2 * length),
                    body: TransportBody(length: length) { () throws(TransportError) in
                        sent.increment()
                        if sent.value > length / step / 2 { await gate.wait() }
                        return try pieces.next()
                    })
            }
            var request = try HTTPCache.request(for: Fixture.url)
            request.headerFields[.range] = leaver == .manySlices ? "bytes=10-\(length - 10)" : "bytes=10-19"
            do {
                let body = try await fixture.cache.fetch(request).body
                var pieces = body.makeAsyncIterator()
                #expect(try await pieces.next() != nil)
            }
            gate.open()
            await fixture.cache.drain()
            fixture.serveRanges(of: 2 * length)
            let (near, _) = try await fixture.getRange((length - 10)..<length)
            #expect(near.source == .network)
        }
    }

    /// Slices are of use where they are kept.
    @Test func whatIsNotStoredIsSlicedOnce() async throws {
        try await Fixture.run({ $0.sliceBytes = 16 }) { fixture in
            serveRanges(fixture, 100, control: "no-store")
            for sent in ["bytes=16-31", "bytes=20-23"] {
                let (response, part) = try await fixture.get(fields: [.range: "bytes=20-23"])
                #expect(response.head.status == .partialContent && part == "0123")
                #expect(response.head.headerFields[.contentRange] == "bytes 20-23/100")
                #expect(fixture.transport.takeSent().map { $0.head.headerFields[.range] } == [sent])
                await fixture.cache.drain()
            }
        }
    }
}

/// Why a load whose range was widened to slices does not continue without its reader.
enum SliceLeaver: CaseIterable {
    case manySlices, notShared, noPlace
}
