import Dispatch
import HTTPCaching
import HTTPTestSupport
import HTTPTypes
import Larder
import TestSupport
import Testing

@testable import LarderHTTP

/// What loads add to a part that others began: their tags, its lifetime, what was lost, and purges by other processes.
struct PartSharingTests {
    private static let length: Int64 = 300_000

    /// Begins a load of a range of which the second half comes when the body is opened; returns when the store has the
    /// first.
    private func begin(
        _ range: Range<Int64>, _ fixture: Fixture, lifetime: Int = 60, vary: String? = nil,
        _ options: FetchOptions = FetchOptions()
    ) async throws -> (body: HalvedBody, reader: ResponseBody.Iterator) {
        let body = HalvedBody(RangeOrigin.bytes(range))
        fixture.transport.handler = { _ throws(TransportError) in
            var head = RangeOrigin.head(range, of: Self.length, lifetime: lifetime)
            head.headerFields[.vary] = vary
            return TransportResponse(head: head, body: body.body(length: range.count))
        }
        var request = try HTTPCache.request(for: Fixture.url)
        request.headerFields[.range] = "bytes=\(range.lowerBound)-\(range.upperBound - 1)"
        var reader = try await fixture.cache.fetch(request, body: nil, options).body.makeAsyncIterator()
        _ = try await reader.next()
        return (body, reader)
    }

    private func end(_ load: (body: HalvedBody, reader: ResponseBody.Iterator), _ fixture: Fixture) async throws {
        var reader = load.reader
        load.body.open()
        while try await reader.next() != nil {}
        await fixture.cache.drain()
    }

    // MARK: Tags

    @Test(arguments: ["a", "b"]) func bytesGoWithTheTagsOfEveryLoad(_ tag: String) async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: Self.length)
            _ = try await fixture.getRange(0..<1_000, from: nil, FetchOptions(tags: ["a"]))
            await fixture.cache.drain()
            _ = try await fixture.getRange(1_000..<2_000, from: nil, FetchOptions(tags: ["b"]))
            await fixture.cache.drain()
            try await #expect(fixture.cache.purge(tag: tag) == 2)
            try await #expect(fixture.store.figures().entryCount == 0)
        }
    }

    @Test(arguments: ["a", "b"]) func theWholeHasTheTagsOfEveryLoad(_ tag: String) async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: Self.length)
            _ = try await fixture.getRange(0..<1_000, from: nil, FetchOptions(tags: ["a"]))
            await fixture.cache.drain()
            _ = try await fixture.getRange(1_000..<Self.length, from: nil, FetchOptions(tags: ["b"]))
            await fixture.cache.drain()
            try await #expect(fixture.store.figures().entryCount == 1)
            try await #expect(fixture.cache.purge(tag: tag) == 1)
        }
    }

    /// Another process purges by the tag of the load that began the part.
    @Test func aPartThatIsTakenUpKeepsItsTags() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: Self.length)
            _ = try await fixture.getRange(0..<100_000, from: nil, FetchOptions(tags: ["a"]))
            await fixture.cache.drain()
            let load = try await begin(100_000..<200_000, fixture, FetchOptions(tags: ["b"]))
            try await #expect(fixture.otherCache().purge(tag: "a") == 2)
            try await end(load, fixture)
            try await #expect(fixture.store.figures().entryCount == 0)
        }
    }

    /// An entry has 4,096 tags at most: what cannot be found by its tags is not stored.
    @Test func bytesWhoseTagsHaveNoPlaceAreNotStored() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: Self.length)
            _ = try await fixture.getRange(0..<1_000, from: nil, FetchOptions(tags: (0..<4_090).map { "a\($0)" }))
            await fixture.cache.drain()
            let more = FetchOptions(tags: (0..<10).map { "b\($0)" })
            try await #expect(fixture.getRange(1_000..<2_000, from: nil, more).1 == RangeOrigin.bytes(1_000..<2_000))
            await fixture.cache.drain()
            #expect(try fixture.parts.map(\.ranges) == [ByteRanges([0..<1_000])])
            #expect(fixture.cache.storeFailures == 0)
        }
    }

    /// The part that others write, or a new one, with a tag in addition.
    private func acquire(_ tag: String, _ fixture: Fixture, _ response: StoredResponse) throws -> PartWriters.Part {
        let responses = fixture.cache.changes.responses
        return try responses.writers.acquire(
            for: 0..<Self.length, PartWriters.Content(response: response, total: Self.length) { true },
            at: Key(Fixture.url), responses.rules, listed: { nil },
            PutOptions(tags: [tag], metadata: StoredPart.placedMetadata))
    }

    @Test func aLoadWhoseTagIsRefusedDoesNotStayAtThePart() async throws {
        try await Fixture.run { fixture in
            let response = try await fixture.responseWithoutParts(of: Self.length)
            let part = try acquire("a", fixture, response)
            #expect(throws: LarderError.self) { try acquire("b\0", fixture, response) }
            // What can be added still is.
            #expect(try acquire("c", fixture, response) === part)
            for _ in 0..<2 {
                #expect(!part.isOver)
                try fixture.cache.changes.responses.writers.release(part, of: Key(Fixture.url)) { false }
            }
            #expect(part.isOver)
        }
    }

    #if DEBUG
        /// The digest of a whole part takes as long as the part is large: threads and other responses must not wait.
        @Test func aPartWhoseDigestIsComputedIsNotWaitedFor() async throws {
            try await Fixture.run { fixture in
                let response = try await fixture.responseWithoutParts(of: Self.length)
                let part = try acquire("a", fixture, response)
                // Not in order: the first bytes are read again for the digest.
                try part.write(RangeOrigin.bytes(1_000..<Self.length), at: 1_000)
                try part.write(RangeOrigin.bytes(0..<1_000), at: 0)
                let (isReading, mayRead) = (Latch(), DispatchSemaphore(value: 0))
                let scope = fixture.store.observeWaits { call in
                    guard call == "pread" else { return }
                    isReading.open()
                    mayRead.wait()
                    mayRead.signal()
                }
                async let digest = part.writer.commit()
                await isReading.wait()
                #expect(try acquire("b", fixture, response) === part)
                mayRead.signal()
                try await #expect(digest == Digest.of(RangeOrigin.bytes(0..<Self.length)))
                withExtendedLifetime(scope) {}
                part.end()
                for _ in 0..<2 {
                    try fixture.cache.changes.responses.writers.release(part, of: Key(Fixture.url)) { false }
                }
            }
        }
    #endif

    // MARK: Purges by another process

    enum Purge: String, CaseIterable { case url, prefix, tag }

    @Test(arguments: Purge.allCases, [nil, "Accept-Encoding"])
    func aPurgeReachesAPartThatIsNotListed(_ purge: Purge, _ vary: String?) async throws {
        try await Fixture.run { fixture in
            let load = try await begin(0..<100_000, fixture, vary: vary, FetchOptions(tags: ["a"]))
            let other = fixture.otherCache()
            switch purge {
            case .url: _ = try await other.purge(Fixture.url)
            case .prefix: _ = try await other.purge(prefix: "http://example.org/")
            case .tag: _ = try await other.purge(tag: "a")
            }
            try await end(load, fixture)
            try await #expect(fixture.store.figures().entryCount == 0)
            fixture.transport.handler = ScriptedTransport.unreachable
            #expect(await errorKind { _ = try await fixture.getRange(0..<10) } == .origin)
        }
    }

    // MARK: Lifetime

    /// A kill before the load ends must not leave the part with the lifetime of that load.
    @Test func aPartThatIsTakenUpKeepsItsLifetime() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: Self.length, lifetime: 86_400)
            _ = try await fixture.getRange(0..<100_000)
            await fixture.cache.drain()
            let key = try #require(try fixture.parts.first).key(Key(Fixture.url))
            func expiry() throws -> Timestamp? {
                var result: Timestamp?
                try fixture.store.forEach(.prefix(key) && .incomplete) { result = $0.expires }
                return result
            }
            let before = try #require(try expiry())
            let load = try await begin(100_000..<200_000, fixture, lifetime: 60)
            #expect(try #require(try expiry()) >= before)
            try await end(load, fixture)
        }
    }

    // MARK: What was lost

    /// A kill lost bytes that the record lists, and the part is written by another process.
    @Test func aRangeThatWasLostIsStoredInAnotherPart() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: Self.length)
            _ = try await fixture.getRange(0..<50_000)
            await fixture.cache.drain()
            let entry = try #require(try await fixture.store.get(Key(Fixture.url), includingExpired: true))
            var record = try #require(StoredRecord(entry.metadata))
            record.parts = record.parts.map { StoredPart(id: $0.id, ranges: ByteRanges([0..<100_000])) }
            try await #expect(fixture.store.update(entry, metadata: record.encoded))
            let load = try await begin(200_000..<250_000, fixture)
            let other = fixture.otherCache()
            fixture.serveRanges(of: Self.length)
            let range = Int64(50_000)..<100_000
            for source: FetchResponse.Source in [.network, .hit] {
                let (response, bytes) = try await fixture.getRange(range, from: other)
                #expect(response.source == source && bytes == RangeOrigin.bytes(range))
                await other.drain()
            }
            // What it has stays.
            try await #expect(fixture.getRange(0..<50_000, from: other).0.source == .hit)
            try await end(load, fixture)
            fixture.serveRanges(of: Self.length)
            try await #expect(fixture.getRange().1 == RangeOrigin.bytes(0..<Self.length))
            await fixture.cache.drain()
            try await #expect(fixture.store.figures().entryCount == 1)
        }
    }

    // MARK: Messages without a length, and very many ranges

    /// The end of the message shows that it is as long as `Content-Range` says.
    @Test func rangesWithoutADeclaredLengthAreJoined() async throws {
        try await Fixture.run { fixture in
            let count = Int64(StoredPart.limit + 10)
            let length = count * 100
            fixture.serveRanges(of: length, declaresLength: false)
            for number in 0..<(count - 1) {
                let range = (number * 100)..<(number * 100 + 50)
                try await #expect(fixture.getRange(range).1 == RangeOrigin.bytes(range))
                await fixture.cache.drain()
            }
            #expect(try fixture.parts.map(\.ranges.ranges.count) == [Int(count) - 1])
            for number in 0..<(count - 1) {
                let range = (number * 100)..<(number * 100 + 50)
                let (response, bytes) = try await fixture.getRange(range)
                #expect(response.source == .hit && bytes == RangeOrigin.bytes(range))
            }
            fixture.serveRanges(of: length)
            try await #expect(fixture.getRange().1 == RangeOrigin.bytes(0..<length))
            await fixture.cache.drain()
            #expect(fixture.copiedBytes == 0)
            try await #expect(fixture.store.figures().entryCount == 1)
        }
    }

    /// Its list would not grow.
    @Test func aGapOfAPartWithVeryManyRangesIsFilled() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: 1 << 20)
            let count = StoredPart.rangeLimit / 2
            for number in Int64(0)..<Int64(count) {
                _ = try await fixture.getRange((number * 100)..<(number * 100 + 10))
            }
            await fixture.cache.drain()
            #expect(try fixture.parts.map(\.ranges.ranges.count) == [count])
            _ = try await fixture.getRange(10..<100)
            await fixture.cache.drain()
            #expect(try fixture.parts.map(\.ranges.ranges.count) == [count - 1])
        }
    }
}
