import HTTPTestSupport
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import HTTPCaching
@testable import Larder
@testable import LarderHTTP

/// Ranges of large representations: what they cost, and that no byte ever stands in a wrong place.
@Suite(.timeLimit(.minutes(3))) struct PartTests {
    /// An origin with one representation that understands single ranges and `If-Range`.
    private func serve(_ fixture: Fixture, _ length: Int64, tag: String = "\"a\"", lifetime: Int = 60) {
        fixture.transport.handler = { request throws(TransportError) in
            let fields = request.head.headerFields
            var head: HTTPFields = [.cacheControl: "max-age=\(lifetime)", .eTag: tag]
            if fields[.ifNoneMatch] == tag { return .answer(304, head) }
            guard let value = fields[.range], case .bytes(let field) = RangeField.parse(Array(value.utf8)),
                fields[.ifRange] == nil || fields[.ifRange] == tag,
                let range = field.resolved(length: length).first
            else {
                return .answer(HTTPResponse(status: .ok, headerFields: head), Self.bytes(0..<length, tag))
            }
            head[.contentRange] = ContentRange(range: range, completeLength: length).fieldValue
            return .answer(HTTPResponse(status: .partialContent, headerFields: head), Self.bytes(range, tag))
        }
    }

    /// Every byte tells its position, and the representation that it belongs to.
    private static func bytes(_ range: Range<Int64>, _ tag: String = "\"a\"") -> [UInt8] {
        let seed = UInt64(tag.utf8.reduce(0) { $0 &* 31 &+ Int($1) } & 0xFF)
        return [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
            for (index, position) in range.enumerated() {
                let word = (UInt64(bitPattern: position) &+ seed) &* 0x9E37_79B9_7F4A_7C15
                buffer.initializeElement(at: index, to: UInt8(truncatingIfNeeded: word >> 56))
            }
            count = range.count
        }
    }

    private func get(_ fixture: Fixture, _ range: Range<Int64>? = nil) async throws -> (FetchResponse, [UInt8]) {
        var request = try HTTPCache.request(for: Fixture.url)
        if let range { request.headerFields[.range] = "bytes=\(range.lowerBound)-\(range.upperBound - 1)" }
        let response = try await fixture.cache.fetch(request)
        return (response, try await response.body.bytes(limit: 1 << 30))
    }

    @Test func rangesOfALargeObjectAreWrittenAFewTimes() async throws {
        try await Fixture.run { fixture in
            let (step, length) = (Int64(2 << 20), Int64(64 << 20))
            let block = [UInt8](repeating: 7, count: Int(step))
            fixture.transport.handler = { request throws(TransportError) in
                let value = request.head.headerFields[.range] ?? ""
                guard case .bytes(let field) = RangeField.parse(Array(value.utf8)),
                    let range = field.resolved(length: length).first
                else { return .answer(500) }
                let content = ContentRange(range: range, completeLength: length).fieldValue
                let fields: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"a\"", .contentRange: content]
                return .answer(HTTPResponse(status: .partialContent, headerFields: fields), block)
            }
            for position in stride(from: 0, to: length, by: Int(step)) {
                let (response, bytes) = try await get(fixture, position..<(position + step))
                #expect(response.source == .network && bytes.count == Int(step))
            }
            await fixture.cache.drain()
            // Received once, copied once on the way and once for the whole.
            #expect(fixture.cache.changes.responses.copiedBytes.load(ordering: .relaxed) <= 2 * length)
            let (whole, _) = try await get(fixture, 0..<length)
            #expect(whole.source == .hit && fixture.transport.sent.count == 32)
            // The parts are gone.
            try await #expect(fixture.store.statistics().entryCount == 1)
        }
    }

    @Test func tenBytesOfALargePartCostTenBytes() async throws {
        try await Fixture.run { fixture in
            let (part, length) = (Int64(2 << 20), Int64(4 << 20))
            serve(fixture, length)
            _ = try await get(fixture, 0..<part)
            for number in 0..<100 {
                let start = part + 100 + Int64(number) * 50
                let (response, bytes) = try await get(fixture, start..<(start + 10))
                #expect(response.head.status.code == 206 && bytes == Self.bytes(start..<(start + 10)))
                // No answer waits for a copy: the first comes with the sixteenth part.
                if number < 14 { #expect(fixture.cache.changes.responses.copiedBytes.load(ordering: .relaxed) == 0) }
            }
            await fixture.cache.drain()
            // Each byte at most once for each power of 16.
            #expect(fixture.cache.changes.responses.copiedBytes.load(ordering: .relaxed) <= 100 * 10 * 3)
            // All of them are there.
            fixture.transport.handler = ScriptedTransport.unreachable
            for number in 0..<100 {
                let start = part + 100 + Int64(number) * 50
                let (response, bytes) = try await get(fixture, start..<(start + 10))
                #expect(response.source == .hit && bytes == Self.bytes(start..<(start + 10)))
            }
            try await #expect(get(fixture, 5..<part).1 == Self.bytes(5..<part))
        }
    }

    @Test(arguments: [10, 100_000]) func severalGapsAreFilled(_ unit: Int64) async throws {
        try await Fixture.run { fixture in
            let length = 10 * unit
            serve(fixture, length)
            for number: Int64 in [1, 4, 7] { _ = try await get(fixture, (number * unit)..<((number + 1) * unit)) }
            _ = fixture.transport.takeSent()
            let (response, bytes) = try await get(fixture)
            #expect(response.head.status == .ok && response.head.headerFields[.contentLength] == "\(length)")
            #expect(response.head.headerFields[.contentRange] == nil && response.body.length == length)
            #expect(bytes == Self.bytes(0..<length))
            let sent = fixture.transport.takeSent().map(\.head.headerFields)
            #expect(sent.allSatisfy { $0[.ifRange] == "\"a\"" })
            let expected = [(0, 1), (2, 4), (5, 7), (8, 10)].map {
                "bytes=\(Int64($0.0) * unit)-" + ($0.0 == 8 && sent.count == 1 ? "" : "\(Int64($0.1) * unit - 1)")
            }
            #expect(sent.map { $0[.range] } == expected)
            await fixture.cache.drain()
            let (again, stored) = try await get(fixture)
            #expect(again.source == .hit && stored == bytes)
            try await #expect(fixture.store.statistics().entryCount == 1)
        }
    }

    @Test func aRepresentationThatChangesWhileItsGapsAreFilledIsNotMixed() async throws {
        try await Fixture.run { fixture in
            serve(fixture, 100)
            for start: Int64 in [10, 40, 70] { _ = try await get(fixture, start..<(start + 10)) }
            let response = try await fixture.cache.fetch(Fixture.url)
            serve(fixture, 100, tag: "\"b\"")
            #expect(await errorKind { _ = try await response.body.bytes() } == .origin)
            await fixture.cache.drain()
            try await #expect(get(fixture).1 == Self.bytes(0..<100, "\"b\""))
        }
    }

    @Test func rangesThatArriveTogetherAreAllKept() async throws {
        try await Fixture.run { fixture in
            serve(fixture, 1_000)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in Int64(0)..<10 {
                    group.addTask { _ = try await get(fixture, (number * 100)..<(number * 100 + 60)) }
                }
                try await group.waitForAll()
            }
            await fixture.cache.drain()
            fixture.transport.handler = ScriptedTransport.unreachable
            for number in Int64(0)..<10 {
                let range = (number * 100)..<(number * 100 + 60)
                let (response, bytes) = try await get(fixture, range)
                #expect(response.source == .hit && bytes == Self.bytes(range))
            }
        }
    }

    /// Ranges and wholes of a representation that changes: what a client gets is of one version, whatever others ask.
    @Test func rangesAndWholesAtOnceAreNeverMixed() async throws {
        let seed = UInt64.random(in: 0..<1_000_000)
        let tags = ["\"a\"", "\"b\"", "\"c\""]
        try await Fixture.run({ $0.caching = .gateway }) { fixture in
            let length: Int64 = 20_000
            serve(fixture, length, lifetime: 2)
            let hits = Counter()
            let tasks = (UInt64(0)..<8).map { task in
                Task {
                    var generator = SeededGenerator(seed: seed &* 31 &+ task)
                    var mixed: [String] = []
                    for round in 0..<40 {
                        if task == 0, round % 8 == 7 {
                            serve(fixture, length, tag: tags.randomElement(using: &generator)!, lifetime: 2)
                        }
                        if task == 1 { fixture.clock.advance(by: .milliseconds(100)) }
                        let start = Int64.random(in: 0..<(length - 1), using: &generator)
                        let end = min(length, start + .random(in: 1...3_000, using: &generator))
                        let wanted = Int.random(in: 0..<6, using: &generator) == 0 ? nil : start..<end
                        guard let (response, bytes) = try? await get(fixture, wanted) else { continue }
                        if response.source == .hit { hits.increment() }
                        let tag = response.head.headerFields[.eTag] ?? ""
                        if bytes != Self.bytes(wanted ?? 0..<length, tag) {
                            mixed.append("\(wanted as Any) of \(tag): \(response.head)")
                        }
                    }
                    return mixed
                }
            }
            var mixed: [String] = []
            for task in tasks { mixed += await task.value }
            await fixture.cache.drain()
            #expect(mixed == [], "seed \(seed)")
            #expect(hits.value > 0)
            // What is left is one response and the parts that it lists.
            let parts = try fixture.cache.changes.responses.parts(at: Key(Fixture.url))
            let entries = try await fixture.store.statistics().entryCount
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
        #expect(ResponseStore.makingRoom(for: small, among: many) == nil)
    }

    @Test func partsAreFreshenedTogetherAndGoTogether() async throws {
        try await Fixture.run { fixture in
            serve(fixture, 1_000)
            for start: Int64 in [0, 200, 400] { _ = try await get(fixture, start..<(start + 100)) }
            fixture.clock.advance(by: .seconds(100))
            let (response, bytes) = try await get(fixture, 210..<220)
            #expect(response.source == .revalidated && bytes == Self.bytes(210..<220))
            fixture.transport.handler = ScriptedTransport.unreachable
            for start: Int64 in [0, 200, 400] {
                let (response, bytes) = try await get(fixture, start..<(start + 100))
                #expect(response.source == .hit && bytes == Self.bytes(start..<(start + 100)))
            }
            await fixture.cache.drain()
            try await #expect(fixture.cache.purge(Fixture.url) == 1)
            try await #expect(fixture.store.statistics().entryCount == 0)
        }
    }

    @Test func aPartThatIsGoneIsAGap() async throws {
        try await Fixture.run { fixture in
            serve(fixture, 300)
            for start: Int64 in [0, 100, 200] { _ = try await get(fixture, start..<(start + 50)) }
            await fixture.cache.drain()
            let found = try #require(try fixture.cache.changes.responses.findOne(Key(Fixture.url)))
            try await fixture.store.remove(found.parts[1].entry.key)
            fixture.transport.handler = ScriptedTransport.unreachable
            try await #expect(get(fixture, 0..<50).1 == Self.bytes(0..<50))
            try await #expect(get(fixture, 200..<250).1 == Self.bytes(200..<250))
            #expect(await errorKind { _ = try await get(fixture, 100..<150) } == .origin)
            // The record lists it still: what comes for the gap is stored all the same.
            serve(fixture, 300)
            try await #expect(get(fixture, 100..<150).0.source == .network)
            await fixture.cache.drain()
            try await #expect(get(fixture, 100..<150).0.source == .hit)
        }
    }

    /// Parts are combined while another request looks them up: it has the list from before, and its parts are gone.
    @Test func partsThatAreCombinedMeanwhileAreLookedUpAgain() async throws {
        try await Fixture.run { fixture in
            serve(fixture, 300)
            for start: Int64 in [0, 100, 200] { _ = try await get(fixture, start..<(start + 50)) }
            await fixture.cache.drain()
            let key = Key(Fixture.url)
            let before = try #require(try await fixture.store.get(key, includingExpired: true))
            try await #expect(get(fixture, nil).1 == Self.bytes(0..<300))
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
            serve(fixture, 300)
            _ = try await get(fixture, 0..<50)
            for _ in 0..<6 {
                fixture.clock.advance(by: .seconds(2 * 86_400))
                // As displacement does.
                _ = try await fixture.store.remove(.expired)
                try await #expect(get(fixture, 0..<50).0.source == .revalidated)
                await fixture.cache.drain()
            }
        }
    }

    @Test func aWholeThatIsCutOffDoesNotReplaceMore() async throws {
        try await Fixture.run { fixture in
            serve(fixture, 10_000)
            // Too many gaps to be filled one by one.
            let starts = stride(from: Int64(100), to: 10_000, by: 400)
            for start in starts { _ = try await get(fixture, start..<(start + 200)) }
            fixture.transport.handler = { _ throws(TransportError) in
                let fields: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"a\"", .contentLength: "10000"]
                return .answer(
                    HTTPResponse(status: .ok, headerFields: fields), Self.bytes(0..<500), isComplete: false)
            }
            #expect(await errorKind { _ = try await get(fixture) } == .origin)
            await fixture.cache.drain()
            fixture.transport.handler = ScriptedTransport.unreachable
            for start in starts {
                try await #expect(get(fixture, start..<(start + 200)).1 == Self.bytes(start..<(start + 200)))
            }
        }
    }

    @Test func anotherRepresentationTakesThePlaceOfTheParts() async throws {
        try await Fixture.run { fixture in
            serve(fixture, 300)
            for start: Int64 in [0, 100] { _ = try await get(fixture, start..<(start + 50)) }
            serve(fixture, 300, tag: "\"b\"")
            _ = try await get(fixture, 200..<250)
            await fixture.cache.drain()
            try await #expect(fixture.store.statistics().entryCount == 2)
            let (response, bytes) = try await get(fixture, 0..<50)
            #expect(response.source == .network && bytes == Self.bytes(0..<50, "\"b\""))
        }
    }

    @Test func anotherRepresentationIsTakenAfterTheClockWasSetBack() async throws {
        try await Fixture.run { fixture in
            serve(fixture, 300)
            _ = try await get(fixture, 0..<50)
            fixture.clock.jump(by: .seconds(-1_000))
            serve(fixture, 300, tag: "\"b\"")
            _ = try await get(fixture, 100..<150)
            let (response, bytes) = try await get(fixture, 100..<150)
            #expect(response.source == .hit && bytes == Self.bytes(100..<150, "\"b\""))
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
    @Test(arguments: [2, 40]) func aLongListIsNotReadOnAnEventLoop(_ count: Int64) async throws {
        try await Fixture.run { fixture in
            serve(fixture, 1 << 20)
            // Of sizes that are not combined with each other.
            for index in 0..<count {
                let (start, length) = (index * 10_000, Int64(16) << (index % 4 * 3))
                _ = try await get(fixture, start..<start + length)
            }
            await fixture.cache.drain()
            _ = try await fixture.cache.store.get(Key(Fixture.url), includingExpired: true)
            var request = try HTTPCache.request(for: Fixture.url)
            request.headerFields[.range] = "bytes=10000-10009"
            switch try fixture.cache.answer(request, hasContent: false) {
            case .response: #expect(count == 2)
            case .load: #expect(count == 40)
            }
            let (response, bytes) = try await get(fixture, 10_000..<10_010)
            #expect(response.source == .hit && bytes == Self.bytes(10_000..<10_010))
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
