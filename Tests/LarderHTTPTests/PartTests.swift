import HTTPTestSupport
import HTTPTypes
import Larder
import Locks
import TestSupport
import Testing

@testable import HTTPCaching
@testable import LarderHTTP

/// Ranges of large representations: what they cost, and that no byte ever stands in a wrong place.
struct PartTests {
    @Test func rangesOfALargeObjectAreWrittenOnce() async throws {
        try await Fixture.run { fixture in
            let (step, length) = (Int64(2 << 20), Int64(64 << 20))
            let block = [UInt8](repeating: 7, count: Int(step))
            fixture.transport.handler = { request throws(TransportError) in
                guard let range = RangeOrigin.range(of: request, length: length) else { return .answer(500) }
                return .answer(RangeOrigin.head(range, of: length), block)
            }
            for position in stride(from: 0, to: length, by: Int(step)) {
                let (response, bytes) = try await fixture.getRange(position..<(position + step))
                #expect(response.source == .network && bytes.count == Int(step))
            }
            await fixture.cache.drain()
            #expect(fixture.copiedBytes == 0)
            let (whole, _) = try await fixture.getRange(0..<length)
            #expect(whole.source == .hit && fixture.transport.sent.count == 32)
            // The parts are gone.
            let statistics = try await fixture.store.perform { try $0.statistics() }
            #expect(statistics.entryCount == 1 && statistics.counters.bytesWritten.bytes == length)
        }
    }

    @Test func tenBytesOfALargePartCostTenBytes() async throws {
        try await Fixture.run { fixture in
            let (part, length) = (Int64(2 << 20), Int64(4 << 20))
            fixture.serveRanges(of: length)
            _ = try await fixture.getRange(0..<part)
            for number in 0..<100 {
                let start = part + 100 + Int64(number) * 50
                let (response, bytes) = try await fixture.getRange(start..<(start + 10))
                #expect(response.head.status.code == 206 && bytes == RangeOrigin.bytes(start..<(start + 10)))
            }
            await fixture.cache.drain()
            #expect(fixture.copiedBytes == 0)
            // All ranges are in one part.
            #expect(try fixture.parts.map(\.ranges.ranges.count) == [101])
            // All of them are there.
            fixture.transport.handler = ScriptedTransport.unreachable
            for number in 0..<100 {
                let start = part + 100 + Int64(number) * 50
                let (response, bytes) = try await fixture.getRange(start..<(start + 10))
                #expect(response.source == .hit && bytes == RangeOrigin.bytes(start..<(start + 10)))
            }
            try await #expect(fixture.getRange(5..<part).1 == RangeOrigin.bytes(5..<part))
        }
    }

    @Test(arguments: [10, 100_000]) func severalGapsAreFilled(_ unit: Int64) async throws {
        try await Fixture.run { fixture in
            let length = 10 * unit
            fixture.serveRanges(of: length)
            for number: Int64 in [1, 4, 7] { _ = try await fixture.getRange((number * unit)..<((number + 1) * unit)) }
            _ = fixture.transport.takeSent()
            let (response, bytes) = try await fixture.getRange()
            #expect(response.head.status == .ok && response.head.headerFields[.contentLength] == "\(length)")
            #expect(response.head.headerFields[.contentRange] == nil && response.body.length == length)
            #expect(bytes == RangeOrigin.bytes(0..<length))
            let sent = fixture.transport.takeSent().map(\.head.headerFields)
            #expect(sent.allSatisfy { $0[.ifRange] == "\"a\"" })
            let expected = [(0, 1), (2, 4), (5, 7), (8, 10)].map {
                "bytes=\(Int64($0.0) * unit)-" + ($0.0 == 8 && sent.count == 1 ? "" : "\(Int64($0.1) * unit - 1)")
            }
            #expect(sent.map { $0[.range] } == expected)
            await fixture.cache.drain()
            let (again, stored) = try await fixture.getRange()
            #expect(again.source == .hit && stored == bytes)
            try await #expect(fixture.store.figures().entryCount == 1)
        }
    }

    /// It answers a range that the client did not ask for.
    @Test(arguments: [204, 302, 400, 403, 404, 405, 410, 500, 501]) func aRefusalOfARangeIsNoAnswerToTheWhole(
        _ status: Int
    ) async throws {
        try await Fixture.run { fixture in
            let fields: HTTPFields = [.cacheControl: "max-age=600", .eTag: "\"a\""]
            let count = Atomic(0)
            fixture.transport.handler = { request throws(TransportError) in
                if request.head.headerFields.contains(.range) { return .answer(status, [.cacheControl: "max-age=60"]) }
                let isFirst = count.wrappingAdd(1, ordering: .relaxed).oldValue == 0
                let bytes = RangeOrigin.bytes(0..<(isFirst ? 500 : 1_000))
                var fields = fields
                fields[.contentLength] = "1000"
                return TransportResponse(
                    head: HTTPResponse(status: .ok, headerFields: fields),
                    body: Pieces([bytes], isComplete: !isFirst).body(length: 1_000))
            }
            await #expect(throws: FetchError.self) { _ = try await fixture.getRange() }
            await fixture.cache.drain()
            let (response, bytes) = try await fixture.getRange()
            #expect(response.head.status == .ok && bytes == RangeOrigin.bytes(0..<1_000))
            await fixture.cache.drain()
            try await #expect(fixture.getRange().0.source == .hit)
            #expect(fixture.transport.sent.count == 3)
        }
    }

    @Test func aRepresentationThatChangesWhileItsGapsAreFilledIsNotMixed() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: 100)
            for start: Int64 in [10, 40, 70] { _ = try await fixture.getRange(start..<(start + 10)) }
            let response = try await fixture.cache.fetch(Fixture.url)
            fixture.serveRanges(of: 100, tag: "\"b\"")
            #expect(await errorKind { _ = try await response.body.bytes() } == .origin)
            await fixture.cache.drain()
            try await #expect(fixture.getRange().1 == RangeOrigin.bytes(0..<100, "\"b\""))
        }
    }

    @Test func rangesThatArriveTogetherAreAllKept() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: 1_000)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in Int64(0)..<10 {
                    group.addTask { _ = try await fixture.getRange((number * 100)..<(number * 100 + 60)) }
                }
                try await group.waitForAll()
            }
            await fixture.cache.drain()
            fixture.transport.handler = ScriptedTransport.unreachable
            for number in Int64(0)..<10 {
                let range = (number * 100)..<(number * 100 + 60)
                let (response, bytes) = try await fixture.getRange(range)
                #expect(response.source == .hit && bytes == RangeOrigin.bytes(range))
            }
        }
    }

    /// Ranges and wholes of a representation that changes: what a client gets is of one version, whatever others ask,
    /// of one cache or of several that share the store.
    @Test(arguments: [1, 3]) func rangesAndWholesAtOnceAreNeverMixed(_ cacheCount: Int) async throws {
        let seed = UInt64.random(in: 0..<1_000_000)
        let tags = ["\"a\"", "\"b\"", "\"c\""]
        try await Fixture.run({ $0.caching = .gateway }) { fixture in
            let length: Int64 = 20_000
            fixture.serveRanges(of: length, lifetime: 2)
            let hits = Counter()
            let caches = [fixture.cache] + (1..<cacheCount).map { _ in fixture.otherCache() }
            let tasks = (UInt64(0)..<8).map { task in
                let cache = caches[Int(task) % cacheCount]
                return Task {
                    var generator = SeededGenerator(seed: seed &* 31 &+ task)
                    var mixed: [String] = []
                    for round in 0..<40 {
                        if task == 0, round % 8 == 7 {
                            fixture.serveRanges(of: length, tag: tags.randomElement(using: &generator)!, lifetime: 2)
                        }
                        if task == 1 { fixture.clock.advance(by: .milliseconds(100)) }
                        let start = Int64.random(in: 0..<(length - 1), using: &generator)
                        let end = min(length, start + .random(in: 1...3_000, using: &generator))
                        let wanted = Int.random(in: 0..<6, using: &generator) == 0 ? nil : start..<end
                        guard let (response, bytes) = try? await fixture.getRange(wanted, from: cache) else { continue }
                        if response.source == .hit { hits.increment() }
                        let tag = response.head.headerFields[.eTag] ?? ""
                        if bytes != RangeOrigin.bytes(wanted ?? 0..<length, tag) {
                            mixed.append("\(wanted as Any) of \(tag): \(response.head)")
                        }
                    }
                    return mixed
                }
            }
            var mixed: [String] = []
            for task in tasks { mixed += await task.value }
            for cache in caches { await cache.drain() }
            #expect(mixed == [], "seed \(seed)")
            #expect(hits.value > 0)
            // What is left is one response and the parts that it lists.
            let parts = try fixture.cache.changes.responses.parts(at: Key(Fixture.url))
            let entries = try await fixture.store.perform { try $0.statistics().entryCount }
            #expect(entries <= 1 + parts.count + 16, "\(entries) entries and \(parts.count) parts, seed \(seed)")
        }
    }

    @Test func theSmallestPartsGiveWay() throws {
        let many = (0..<Int64(StoredPart.limit)).map { number in
            let start = number * 1_000
            return StoredPart(ranges: ByteRanges([start..<(start + 1 + number)]))
        }
        let large = StoredPart(ranges: ByteRanges([1_000_000..<2_000_000]))
        let room = try #require(ResponseStore.makingRoom(for: large, among: many))
        #expect(room.dropped == [many[0]] && room.kept.count == StoredPart.limit - 1)
        let small = StoredPart(ranges: ByteRanges([1_000_000..<1_000_001]))
        // The second has two bytes.
        #expect(ResponseStore.makingRoom(for: small, among: Array(many.dropFirst() + [large])) == nil)
    }

    /// Slices: a file that has too many of them keeps those that came last.
    @Test func ofPartsOfTheSameSizeTheFirstGivesWay() throws {
        let many = (0..<Int64(StoredPart.limit)).map { StoredPart(ranges: ByteRanges([$0 * 100..<$0 * 100 + 50])) }
        let new = StoredPart(ranges: ByteRanges([1_000_000..<1_000_050]))
        let room = try #require(ResponseStore.makingRoom(for: new, among: many))
        #expect(room.dropped == [many[0]] && room.kept == Array(many.dropFirst()))
    }

    @Test func partsAreFreshenedTogetherAndGoTogether() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: 1_000)
            for start: Int64 in [0, 200, 400] { _ = try await fixture.getRange(start..<(start + 100)) }
            fixture.clock.advance(by: .seconds(100))
            let (response, bytes) = try await fixture.getRange(210..<220)
            #expect(response.source == .revalidated && bytes == RangeOrigin.bytes(210..<220))
            fixture.transport.handler = ScriptedTransport.unreachable
            for start: Int64 in [0, 200, 400] {
                let (response, bytes) = try await fixture.getRange(start..<(start + 100))
                #expect(response.source == .hit && bytes == RangeOrigin.bytes(start..<(start + 100)))
            }
            await fixture.cache.drain()
            try await #expect(fixture.cache.purge(Fixture.url) == 1)
            try await #expect(fixture.store.figures().entryCount == 0)
        }
    }

    @Test func aPartThatIsGoneIsAGap() async throws {
        try await Fixture.run { fixture in
            try await fixture.storePacked([0..<50, 100..<150, 200..<250], of: 300)
            let found = try #require(try fixture.cache.changes.responses.findOne(Key(Fixture.url)))
            try #require(found.parts.count == 3)
            try await fixture.store.remove(found.parts[1].part.key(Key(Fixture.url)))
            fixture.transport.handler = ScriptedTransport.unreachable
            try await #expect(fixture.getRange(0..<50).1 == RangeOrigin.bytes(0..<50))
            try await #expect(fixture.getRange(200..<250).1 == RangeOrigin.bytes(200..<250))
            #expect(await errorKind { _ = try await fixture.getRange(100..<150) } == .origin)
            // The record lists it still: what comes for the gap is stored all the same.
            fixture.serveRanges(of: 300)
            try await #expect(fixture.getRange(100..<150).0.source == .network)
            await fixture.cache.drain()
            try await #expect(fixture.getRange(100..<150).0.source == .hit)
        }
    }

    /// A response is completed while another request looks it up: that has the list from before, and its parts are
    /// gone.
    @Test func partsThatAreCompletedMeanwhileAreLookedUpAgain() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: 300)
            for start: Int64 in [0, 100, 200] { _ = try await fixture.getRange(start..<(start + 50)) }
            await fixture.cache.drain()
            let key = Key(Fixture.url)
            let before = try #require(try await fixture.store.get(key, includingExpired: true))
            try await #expect(fixture.getRange(nil).1 == RangeOrigin.bytes(0..<300))
            await fixture.cache.drain()
            var lookups = 0
            let found = try fixture.cache.changes.responses.findOne(key) { key in
                lookups += 1
                return lookups == 1 ? before : try fixture.store.get(key, includingExpired: true)
            }
            #expect(found?.response.body == .complete(length: 300))
            #expect(found?.segments(0..<300).isEmpty == false)
        }
    }

    /// The parts of a response that is validated again and again stay as long as its record.
    @Test func partsStayAsLongAsTheirRecord() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: 300)
            _ = try await fixture.getRange(0..<50)
            for _ in 0..<6 {
                fixture.clock.advance(by: .seconds(2 * 86_400))
                // As displacement does.
                _ = try await fixture.store.remove(.expired)
                try await #expect(fixture.getRange(0..<50).0.source == .revalidated)
                await fixture.cache.drain()
            }
        }
    }

    @Test func aWholeThatIsCutOffDoesNotReplaceMore() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: 10_000)
            // Too many gaps to be filled one by one.
            let starts = stride(from: Int64(100), to: 10_000, by: 400)
            for start in starts { _ = try await fixture.getRange(start..<(start + 200)) }
            fixture.transport.handler = { _ throws(TransportError) in
                let fields: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"a\"", .contentLength: "10000"]
                return .answer(
                    HTTPResponse(status: .ok, headerFields: fields), RangeOrigin.bytes(0..<500), isComplete: false)
            }
            #expect(await errorKind { _ = try await fixture.getRange() } == .origin)
            await fixture.cache.drain()
            fixture.transport.handler = ScriptedTransport.unreachable
            for start in starts {
                try await #expect(fixture.getRange(start..<(start + 200)).1 == RangeOrigin.bytes(start..<(start + 200)))
            }
        }
    }

    @Test func anotherRepresentationTakesThePlaceOfTheParts() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: 300)
            for start: Int64 in [0, 100] { _ = try await fixture.getRange(start..<(start + 50)) }
            fixture.serveRanges(of: 300, tag: "\"b\"")
            _ = try await fixture.getRange(200..<250)
            await fixture.cache.drain()
            try await #expect(fixture.store.figures().entryCount == 2)
            let (response, bytes) = try await fixture.getRange(0..<50)
            #expect(response.source == .network && bytes == RangeOrigin.bytes(0..<50, "\"b\""))
        }
    }

    @Test func anotherRepresentationIsTakenAfterTheClockWasSetBack() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: 300)
            _ = try await fixture.getRange(0..<50)
            fixture.clock.jump(by: .seconds(-1_000))
            fixture.serveRanges(of: 300, tag: "\"b\"")
            _ = try await fixture.getRange(100..<150)
            let (response, bytes) = try await fixture.getRange(100..<150)
            #expect(response.source == .hit && bytes == RangeOrigin.bytes(100..<150, "\"b\""))
        }
    }

    @Test func recordsWithPartsAreReadBack() throws {
        let parts = [
            StoredPart(ranges: ByteRanges([0..<10, 20..<30])), StoredPart(ranges: ByteRanges([(1 << 40)..<(1 << 41)])),
        ]
        #expect(StoredPart.decode(StoredPart.encode(parts)) == parts)
        let bytes = StoredPart.encode(parts)
        for count in 0..<bytes.count where count != 42 { #expect(StoredPart.decode(Array(bytes[..<count])) == nil) }
    }

    /// An event loop serves many clients: what one of them made long is looked up elsewhere.
    @Test(arguments: [2, 80]) func aLongListIsNotReadOnAnEventLoop(_ count: Int64) async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: 1 << 20)
            for index in 0..<count {
                let (start, length) = (index * 10_000, Int64(16) << (index % 4 * 3))
                _ = try await fixture.getRange(start..<start + length)
            }
            await fixture.cache.drain()
            _ = try await fixture.cache.store.get(Key(Fixture.url), includingExpired: true)
            var request = try HTTPCache.request(for: Fixture.url)
            request.headerFields[.range] = "bytes=10000-10009"
            switch try fixture.cache.answer(request, hasContent: false) {
            case .response: #expect(count == 2)
            case .load: #expect(count == 80)
            }
            let (response, bytes) = try await fixture.getRange(10_000..<10_010)
            #expect(response.source == .hit && bytes == RangeOrigin.bytes(10_000..<10_010))
        }
    }

    // MARK: Variants

    @Test func onlyTheVariantThatMatchesIsRead() async throws {
        try await Fixture.run { fixture in
            fixture.transport.handler = { request throws(TransportError) in
                let value = request.head.headerFields[.acceptEncoding] ?? ""
                return .answer(200, [.cacheControl: "max-age=60", .vary: "Accept-Encoding"], value)
            }
            let codings = (0..<30).map { "x-\($0)" }
            for coding in codings { _ = try await fixture.get(fields: [.acceptEncoding: coding]) }
            await fixture.cache.drain()
            let found = try await fixture.cache.changes.responses.find(Fixture.url, for: [.acceptEncoding: "x-7"])
            #expect(found.count == 1)
            try await #expect(fixture.get(fields: [.acceptEncoding: "x-7"]).text == "x-7")
            try await #expect(fixture.cache.changes.responses.find(Fixture.url, for: [.acceptEncoding: "y"]).isEmpty)
        }
    }
}
