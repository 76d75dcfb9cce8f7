import HTTPCaching
import HTTPTestSupport
import HTTPTypes
import Larder
import TestSupport
import Testing

@testable import LarderHTTP

/// Ranges that are written at their positions in a part in progress: which loads share one, what completes it, and what
/// happens to it when something comes between.
struct PlacedPartTests {
    private static let length: Int64 = 300_000

    /// Bytes that are written stay, so none that an invalidation was for may be written.
    @Test func aLoadFromBeforeAnInvalidationWritesToNoPart() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: Self.length)
            _ = try await fixture.getRange(0..<1_000)
            await fixture.cache.drain()
            let key = Key(Fixture.url)
            let responses = fixture.cache.changes.responses
            let stored = try #require(try responses.findOne(key)?.response)
            let content = PartWriters.Content(response: stored, total: Self.length) { false }
            let listed = try #require(try responses.parts(of: stored, at: key))
            #expect(listed.parts.count == 1)
            #expect(throws: InvalidatedLoad.self) {
                try responses.writers.acquire(
                    for: 1_000..<2_000, content, at: key, responses.rules, listed: { listed },
                    PutOptions(metadata: StoredPart.placedMetadata))
            }
        }
    }

    // MARK: Filling

    enum Order: String, CaseIterable { case ascending, descending, mixed }

    @Test(arguments: Order.allCases) func rangesAreFilledInPlaceInAnyOrder(_ order: Order) async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: Self.length)
            // They overlap.
            var ranges = stride(from: Int64(0), to: Self.length, by: 30_000).map { $0..<min($0 + 40_000, Self.length) }
            switch order {
            case .ascending: break
            case .descending: ranges.reverse()
            case .mixed: ranges = [3, 9, 0, 5, 1, 8, 2, 7, 4, 6].map { ranges[$0] }
            }
            for (number, range) in ranges.enumerated() {
                let (response, bytes) = try await fixture.getRange(range)
                #expect(response.head.status == .partialContent && bytes == RangeOrigin.bytes(range))
                await fixture.cache.drain()
                if number < ranges.count - 1 { #expect(try fixture.parts.count == 1) }
            }
            let (whole, bytes) = try await fixture.getRange()
            #expect(whole.source == .hit && bytes == RangeOrigin.bytes(0..<Self.length))
            #expect(fixture.copiedBytes == 0)
            let statistics = try await fixture.store.perform { try $0.statistics() }
            #expect(statistics.entryCount == 1 && statistics.counters.bytesWritten.bytes == Self.length)
        }
    }

    @Test(arguments: [300, Self.length]) func aRangeThatIsTheWholeIsNotCopied(_ length: Int64) async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: length)
            _ = try await fixture.getRange(0..<length)
            await fixture.cache.drain()
            let (whole, bytes) = try await fixture.getRange()
            #expect(whole.source == .hit && bytes == RangeOrigin.bytes(0..<length))
            #expect(whole.head.headerFields[.contentLength] == "\(length)")
            #expect(try fixture.copiedBytes == 0 && fixture.parts.isEmpty)
            try await #expect(fixture.store.figures().entryCount == 1)
        }
    }

    /// Nothing is stored yet when both begin.
    @Test func loadsThatArriveTogetherWriteToOnePart() async throws {
        try await Fixture.run { fixture in
            let (first, second) = (Int64(0)..<100_000, Int64(50_000)..<Self.length)
            let bodies = [first: HalvedBody(RangeOrigin.bytes(first)), second: HalvedBody(RangeOrigin.bytes(second))]
            fixture.transport.handler = { request throws(TransportError) in
                guard let range = RangeOrigin.range(of: request, length: Self.length), let body = bodies[range] else {
                    return .answer(500)
                }
                return TransportResponse(
                    head: RangeOrigin.head(range, of: Self.length), body: body.body(length: range.count))
            }
            var readers: [ResponseBody.Iterator] = []
            for range in [first, second] {
                var request = try HTTPCache.request(for: Fixture.url)
                request.headerFields[.range] = "bytes=\(range.lowerBound)-\(range.upperBound - 1)"
                var reader = try await fixture.cache.fetch(request).body.makeAsyncIterator()
                // The store has it then.
                let piece = try #require(try await reader.next())
                #expect(piece == RangeOrigin.bytes(range.lowerBound..<(range.lowerBound + Int64(piece.count))))
                readers.append(reader)
            }
            for body in bodies.values { body.open() }
            for (var reader, range) in zip(readers, [first, second]) {
                var last: UInt8?
                while let piece = try await reader.next() { last = piece.last }
                #expect(last == RangeOrigin.bytes((range.upperBound - 1)..<range.upperBound).first)
            }
            await fixture.cache.drain()
            let (whole, bytes) = try await fixture.getRange()
            #expect(whole.source == .hit && bytes == RangeOrigin.bytes(0..<Self.length))
            #expect(fixture.copiedBytes == 0)
            try await #expect(fixture.store.figures().entryCount == 1)
        }
    }

    /// Another process is not waited for: the bytes go to a part beside the one that it writes.
    @Test func aPartThatAnotherCacheWritesIsLeftAlone() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: Self.length)
            _ = try await fixture.getRange(0..<100_000)
            await fixture.cache.drain()
            let range = Int64(100_000)..<200_000
            let body = HalvedBody(RangeOrigin.bytes(range))
            fixture.transport.handler = { _ throws(TransportError) in
                TransportResponse(
                    head: RangeOrigin.head(range, of: Self.length), body: body.body(length: range.count))
            }
            var request = try HTTPCache.request(for: Fixture.url)
            request.headerFields[.range] = "bytes=100000-199999"
            var reader = try await fixture.cache.fetch(request).body.makeAsyncIterator()
            _ = try await reader.next()

            fixture.serveRanges(of: Self.length)
            let other = fixture.otherCache()
            let last = Int64(200_000)..<Self.length
            try await #expect(fixture.getRange(last, from: other).1 == RangeOrigin.bytes(last))
            await other.drain()
            #expect(try fixture.parts.count == 2)
            try await #expect(fixture.getRange(last).0.source == .hit)

            body.open()
            while try await reader.next() != nil {}
            await fixture.cache.drain()
            let (whole, bytes) = try await fixture.getRange(nil, from: other)
            #expect(whole.source == .hit && bytes == RangeOrigin.bytes(0..<Self.length))
            // What the other one wrote.
            #expect(fixture.copiedBytes == 100_000)
            try await #expect(fixture.store.figures().entryCount == 1)
        }
    }

    @Test func partsOfOtherKindsAreCopiedWhenTheResponseIsWhole() async throws {
        try await Fixture.run { fixture in
            // A whole that was cut off, and ranges that were not placed.
            fixture.transport.handler = { _ throws(TransportError) in
                let fields: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"a\"", .contentLength: "300000"]
                return .answer(
                    HTTPResponse(status: .ok, headerFields: fields), RangeOrigin.bytes(0..<50_000), isComplete: false)
            }
            #expect(await errorKind { _ = try await fixture.getRange() } == .origin)
            await fixture.cache.drain()
            let found = try #require(try fixture.cache.changes.responses.findOne(Key(Fixture.url)))
            try await fixture.addPacked([60_000..<70_000, 80_000..<90_000], to: found.response, of: Self.length)
            #expect(try fixture.parts.count == 2)
            fixture.serveRanges(of: Self.length)
            let (response, bytes) = try await fixture.getRange()
            #expect(response.head.status == .ok && bytes == RangeOrigin.bytes(0..<Self.length))
            await fixture.cache.drain()
            let (whole, stored) = try await fixture.getRange()
            #expect(whole.source == .hit && stored == bytes)
            #expect(try fixture.copiedBytes == 70_000 && fixture.parts.isEmpty)
            try await #expect(fixture.store.figures().entryCount == 1)
        }
    }

    /// As earlier versions stored them.
    @Test func partsWithoutOneInProgressAreCopiedToTheResponse() async throws {
        try await Fixture.run { fixture in
            try await fixture.storePacked([0..<100, 100..<200, 200..<300], of: 300)
            try await fixture.cache.changes.responses.complete(
                Key(Fixture.url), primary: Fixture.url, storagePolicy: .permanent
            ) { true }
            let (whole, bytes) = try await fixture.getRange()
            #expect(whole.source == .hit && bytes == RangeOrigin.bytes(0..<300))
            #expect(try fixture.copiedBytes == 300 && fixture.parts.isEmpty)
            try await #expect(fixture.store.figures().entryCount == 1)
        }
    }

    /// The process ended between the commit of the part and that of the response.
    @Test func aPartThatIsCompleteAndNotJoinedIsServed() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: Self.length)
            _ = try await fixture.getRange(0..<Self.length - 10)
            await fixture.cache.drain()
            let part = try #require(try fixture.parts.first)
            let writer = try await fixture.store.perform {
                try $0.partialWriter(
                    for: part.key(Key(Fixture.url)), PutOptions(metadata: StoredPart.placedMetadata),
                    total: ByteCount(Self.length))
            }
            try await writer.write(RangeOrigin.bytes((Self.length - 10)..<Self.length), at: Self.length - 10)
            try await writer.commit()
            fixture.transport.handler = ScriptedTransport.unreachable
            let range = Int64(10)..<(Self.length - 10)
            let (response, bytes) = try await fixture.getRange(range)
            #expect(response.source == .hit && bytes == RangeOrigin.bytes(range))
            // What the record does not list is not there.
            #expect(await errorKind { _ = try await fixture.getRange(0..<Self.length) } == .origin)
            fixture.serveRanges(of: Self.length)
            try await #expect(fixture.getRange().1 == RangeOrigin.bytes(0..<Self.length))
            await fixture.cache.drain()
            try await #expect(fixture.getRange().0.source == .hit)
            try await #expect(fixture.store.figures().entryCount == 1)
        }
    }

    // MARK: What is not placed

    /// Its bytes might be in a wrong place, and would stay there.
    @Test func aMessageThatIsShorterThanItsRangeIsNotPlaced() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: 300)
            _ = try await fixture.getRange(0..<50)
            await fixture.cache.drain()
            let wrong = [UInt8](repeating: 0, count: 40)
            for length: Int64? in [40, nil] {
                fixture.transport.handler = { _ throws(TransportError) in
                    TransportResponse(
                        head: RangeOrigin.head(100..<150, of: 300), body: Pieces([wrong]).body(length: length))
                }
                _ = try await fixture.getRange(100..<150)
                await fixture.cache.drain()
            }
            fixture.serveRanges(of: 300)
            try await #expect(fixture.getRange(100..<150).1 == RangeOrigin.bytes(100..<150))
            try await #expect(fixture.getRange(0..<50).0.source == .hit)
            try await #expect(fixture.getRange().1 == RangeOrigin.bytes(0..<300))
        }
    }

    @Test func moreThanAnnouncedIsNotStored() async throws {
        try await Fixture.run { fixture in
            fixture.transport.handler = { _ throws(TransportError) in
                TransportResponse(
                    head: RangeOrigin.head(100..<150, of: 300),
                    body: Pieces([RangeOrigin.bytes(100..<140), RangeOrigin.bytes(140..<180)]).body(length: 50))
            }
            _ = try? await fixture.getRange(100..<150)
            await fixture.cache.drain()
            #expect(fixture.cache.storeFailures == 0)
            try await #expect(fixture.store.figures().entryCount == 0)
        }
    }

    /// The whole would not fit, a range does.
    @Test func aRangeOfWhatIsTooLargeIsStored() async throws {
        try await Fixture.run(store: { $0.budget = Budget(largestEntry: .kibibytes(200)) }) { fixture in
            fixture.serveRanges(of: Self.length)
            for start: Int64 in [0, 250_000] { _ = try await fixture.getRange(start..<(start + 50_000)) }
            await fixture.cache.drain()
            #expect(try fixture.parts.count == 2)
            for start: Int64 in [0, 250_000] {
                let (response, bytes) = try await fixture.getRange(start..<(start + 50_000))
                #expect(response.source == .hit && bytes == RangeOrigin.bytes(start..<(start + 50_000)))
            }
            try await #expect(fixture.getRange().1 == RangeOrigin.bytes(0..<Self.length))
            await fixture.cache.drain()
            #expect(fixture.copiedBytes == 0 && fixture.cache.storeFailures == 0)
        }
    }

    @Test func whatStaysInMemoryIsNotPlaced() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: 300)
            let options = FetchOptions(storagePolicy: .memoryOnly)
            for start: Int64 in [0, 100, 200] {
                _ = try await fixture.getRange(start..<(start + 100), from: nil, options)
                await fixture.cache.drain()
            }
            let (whole, bytes) = try await fixture.getRange()
            #expect(whole.source == .hit && bytes == RangeOrigin.bytes(0..<300))
            try await #expect(fixture.store.figures().storedBytes == .zero)
        }
    }

    // MARK: What comes between

    /// The client gets its bytes in any case; a later request fetches what is missing.
    @Test func aPartThatIsRemovedWhileItIsWrittenIsAGap() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: Self.length)
            _ = try await fixture.getRange(0..<100_000)
            await fixture.cache.drain()
            let range = Int64(100_000)..<200_000
            let body = HalvedBody(RangeOrigin.bytes(range))
            fixture.transport.handler = { _ throws(TransportError) in
                TransportResponse(
                    head: RangeOrigin.head(range, of: Self.length), body: body.body(length: range.count))
            }
            var request = try HTTPCache.request(for: Fixture.url)
            request.headerFields[.range] = "bytes=100000-199999"
            var reader = try await fixture.cache.fetch(request).body.makeAsyncIterator()
            var bytes = try #require(try await reader.next())
            // As displacement does once no writer has it.
            let part = try #require(try fixture.parts.first)
            try await fixture.store.remove(part.key(Key(Fixture.url)))
            body.open()
            while let piece = try await reader.next() { bytes += piece }
            #expect(bytes == RangeOrigin.bytes(range))
            await fixture.cache.drain()
            #expect(fixture.cache.storeFailures == 0)

            fixture.serveRanges(of: Self.length)
            for range in [0..<100_000, range] {
                let (response, bytes) = try await fixture.getRange(range)
                #expect(response.source == .network && bytes == RangeOrigin.bytes(range))
                await fixture.cache.drain()
                try await #expect(fixture.getRange(range).0.source == .hit)
            }
        }
    }

    @Test func aPartThatIsDisplacedIsAGap() async throws {
        try await Fixture.run(store: { $0.budget = Budget(bytes: .mebibytes(2)) }) { fixture in
            fixture.serveRanges(of: Self.length)
            _ = try await fixture.getRange(0..<200_000)
            await fixture.cache.drain()
            let part = try #require(try fixture.parts.first)
            // The record stays.
            try await #expect(fixture.store.pin(Key(Fixture.url)))
            for number in 0..<12 {
                try await fixture.store.put(
                    [UInt8](repeating: UInt8(number), count: 300_000), for: Key("other \(number)"))
            }
            try await fixture.store.perform { try $0.flush() }
            #expect(try fixture.parts == [part])
            try await #expect(
                fixture.store.partial(part.key(Key(Fixture.url))).map(\.ranges) == nil)
            let (response, bytes) = try await fixture.getRange(0..<200_000)
            #expect(response.source == .network && bytes == RangeOrigin.bytes(0..<200_000))
            await fixture.cache.drain()
            try await #expect(fixture.getRange(100_000..<200_000).0.source == .hit)
            #expect(fixture.cache.storeFailures == 0)
        }
    }

    /// What was asked for before is not found after, and is not added to either.
    @Test func aRangeThatIsPurgedWhileItArrivesIsNotStored() async throws {
        try await Fixture.run { fixture in
            let range = Int64(100_000)..<200_000
            let body = HalvedBody([UInt8](repeating: 0, count: range.count))
            fixture.transport.handler = { _ throws(TransportError) in
                TransportResponse(
                    head: RangeOrigin.head(range, of: Self.length), body: body.body(length: range.count))
            }
            var request = try HTTPCache.request(for: Fixture.url)
            request.headerFields[.range] = "bytes=100000-199999"
            var reader = try await fixture.cache.fetch(request).body.makeAsyncIterator()
            _ = try await reader.next()
            _ = try await fixture.cache.purge(Fixture.url)
            fixture.serveRanges(of: Self.length)
            try await #expect(fixture.getRange(0..<150_000).1 == RangeOrigin.bytes(0..<150_000))
            body.open()
            while try await reader.next() != nil {}
            await fixture.cache.drain()
            // Record and part of the second.
            try await #expect(fixture.store.figures().entryCount == 2)
            let (response, bytes) = try await fixture.getRange(90_000..<150_000)
            #expect(response.source == .hit && bytes == RangeOrigin.bytes(90_000..<150_000))
            try await #expect(fixture.getRange().1 == RangeOrigin.bytes(0..<Self.length))
        }
    }

    @Test func whatCameOfARangeThatIsCutOffIsKept() async throws {
        try await Fixture.run { fixture in
            let range = Int64(0)..<100_000
            let body = HalvedBody(RangeOrigin.bytes(range), isComplete: false)
            body.open()
            fixture.transport.handler = { _ throws(TransportError) in
                TransportResponse(
                    head: RangeOrigin.head(range, of: Self.length), body: body.body(length: range.count))
            }
            #expect(await errorKind { _ = try await fixture.getRange(range) } == .origin)
            await fixture.cache.drain()
            fixture.serveRanges(of: Self.length)
            let (response, bytes) = try await fixture.getRange(0..<50_000)
            #expect(response.source == .hit && bytes == RangeOrigin.bytes(0..<50_000))
            try await #expect(fixture.getRange(range).1 == RangeOrigin.bytes(range))
            await fixture.cache.drain()
            #expect(try fixture.parts.map(\.ranges) == [ByteRanges([range])])
        }
    }

    /// A reader has the file of the part, which stays the same when it becomes the body of the response.
    @Test func aReaderIsNotDisturbedByTheCompletion() async throws {
        try await Fixture.run { fixture in
            let length: Int64 = 2 << 20
            fixture.serveRanges(of: length)
            _ = try await fixture.getRange(0..<(length - 10))
            await fixture.cache.drain()
            var request = try HTTPCache.request(for: Fixture.url)
            request.headerFields[.range] = "bytes=0-\(length - 11)"
            let response = try await fixture.cache.fetch(request)
            #expect(response.source == .hit)
            var reader = response.body.makeAsyncIterator()
            var bytes = try #require(try await reader.next())
            _ = try await fixture.getRange((length - 10)..<length)
            await fixture.cache.drain()
            #expect(try fixture.parts.isEmpty)
            _ = try await fixture.cache.purge(Fixture.url)
            while let piece = try await reader.next() { bytes += piece }
            #expect(bytes == RangeOrigin.bytes(0..<(length - 10)))
        }
    }

    @Test func aPinSurvivesTheCompletion() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: Self.length)
            _ = try await fixture.getRange(0..<1_000)
            try await #expect(fixture.store.pin(Key(Fixture.url)))
            _ = try await fixture.getRange(1_000..<Self.length)
            await fixture.cache.drain()
            #expect(try fixture.parts.isEmpty)
            try await #expect(fixture.store.details(of: Key(Fixture.url))?.isPinned == true)
        }
    }

    @Test func partsInProgressGoWithTheirTag() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: Self.length)
            _ = try await fixture.getRange(0..<1_000, from: nil, FetchOptions(tags: ["video"]))
            await fixture.cache.drain()
            try await #expect(fixture.store.figures().entryCount == 2)
            try await #expect(fixture.cache.purge(tag: "video") == 2)
            try await #expect(fixture.store.figures().entryCount == 0)
        }
    }

    /// The list of a part in progress must not grow beyond what a record holds.
    @Test func aPartWithVeryManyRangesIsNotExtended() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: 1 << 20)
            for number in Int64(0)..<(Int64(StoredPart.rangeLimit / 2) + 10) {
                _ = try await fixture.getRange((number * 100)..<(number * 100 + 10))
                // A load that is not over lets the next one write to its part, however many ranges that has.
                await fixture.cache.drain()
            }
            #expect(try fixture.parts.map(\.ranges.ranges.count) == [StoredPart.rangeLimit / 2, 10])
            try await #expect(fixture.getRange().1 == RangeOrigin.bytes(0..<(1 << 20)))
            await fixture.cache.drain()
            #expect(try fixture.parts.isEmpty)
        }
    }
}
