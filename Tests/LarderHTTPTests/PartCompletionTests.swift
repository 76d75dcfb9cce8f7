import HTTPCaching
import HTTPTypes
import Larder
import TestSupport
import Testing

@testable import LarderHTTP

/// Joining the ranges of a response when they are the whole, while others write to the same response.
struct PartCompletionTests {
    private static let length: Int64 = 300_000

    /// What another process commits between the last look at the record and the commit of the whole stays.
    @Test func aWholeThatIsCommittedMeanwhileIsNotOverwritten() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: Self.length)
            _ = try await fixture.getRange(0..<1_000)
            await fixture.cache.drain()
            let key = Key(Fixture.url)
            let responses = fixture.cache.changes.responses
            let found = try #require(try responses.findOne(key))
            let other = Key("other")
            try await fixture.store.put(RangeOrigin.bytes(0..<Self.length), for: other)
            let content = try #require(try await fixture.store.get(other)).digest
            var new = found.response
            new.head.headerFields[.eTag] = "\"b\""
            new.body = .complete(length: 300)
            let newOptions = responses.options(for: new, tags: [], storagePolicy: .permanent)
            let isDone = try responses.replace(
                found, Self.length, Fixture.url, content, newOptions,
                lookUp: { key in
                    let entry = try fixture.store.get(key, includingExpired: true)
                    try fixture.store.put(RangeOrigin.bytes(0..<300, "\"b\""), for: key, newOptions)
                    return entry
                })
            #expect(!isDone)
            let (response, bytes) = try await fixture.getRange()
            #expect(response.source == .hit && response.head.headerFields[.eTag] == "\"b\"")
            let isNew = bytes == RangeOrigin.bytes(0..<300, "\"b\"")
            #expect(isNew)
        }
    }

    /// Another process validates the response in that moment: the parts are listed still.
    @Test func aRecordThatChangesMeanwhileIsLookedAtAgain() async throws {
        try await Fixture.run { fixture in
            fixture.serveRanges(of: Self.length)
            _ = try await fixture.getRange(0..<1_000)
            await fixture.cache.drain()
            let responses = fixture.cache.changes.responses
            let found = try #require(try responses.findOne(Key(Fixture.url)))
            let other = Key("other")
            try await fixture.store.put(RangeOrigin.bytes(0..<Self.length), for: other)
            let content = try #require(try await fixture.store.get(other)).digest
            var lookups = 0
            let isDone = try responses.replace(
                found, Self.length, Fixture.url, content,
                responses.options(for: found.response, tags: [], storagePolicy: .permanent),
                lookUp: { key in
                    lookups += 1
                    let entry = try #require(try fixture.store.get(key, includingExpired: true))
                    if lookups == 1 {
                        var record = try #require(StoredRecord(entry.metadata))
                        record.response.head.headerFields[.age] = "1"
                        try #expect(fixture.store.update(entry, metadata: record.encoded))
                    }
                    return entry
                })
            #expect(isDone && lookups == 2)
            let (response, bytes) = try await fixture.getRange()
            #expect(response.source == .hit && bytes == RangeOrigin.bytes(0..<Self.length))
        }
    }

    /// Two loads may both see that the response is whole.
    @Test func aResponseIsJoinedOnce() async throws {
        try await Fixture.run { fixture in
            let length: Int64 = 8 << 20
            try await fixture.storePacked([0..<(length / 2), (length / 2)..<length], of: length)
            let responses = fixture.cache.changes.responses
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<2 {
                    group.addTask {
                        try await responses.complete(
                            Key(Fixture.url), primary: Fixture.url, storagePolicy: .permanent
                        ) { true }
                    }
                }
                try await group.waitForAll()
            }
            #expect(fixture.copiedBytes == length)
            try await #expect(fixture.store.figures().entryCount == 1)
            let (whole, bytes) = try await fixture.getRange()
            #expect(whole.source == .hit && bytes == RangeOrigin.bytes(0..<length))
        }
    }

    /// It would copy the same bytes, and fail, too.
    @Test func whoWaitsForAJoinThatFailsDoesNotTry() async throws {
        try await Fixture.run { fixture in
            try await fixture.storePacked([0..<150_000, 150_000..<Self.length], of: Self.length)
            // Each part has a place, and the whole has none.
            try await fixture.store.perform { try $0.setBudget(Budget(largestEntry: ByteCount(200_000 as Int64))) }
            let (responses, key) = (fixture.cache.changes.responses, Key(Fixture.url))
            #expect(await responses.completions.take(key))
            let failures = try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<3 {
                    group.addTask {
                        do {
                            try await responses.complete(
                                key, primary: Fixture.url, storagePolicy: .permanent
                            ) { true }
                            return false
                        } catch let error as LarderError where error.code == .tooLarge {
                            return true
                        }
                    }
                }
                try await waitWhile { responses.completions.waiterCount(key) < 3 }
                responses.completions.leave(key)
                return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(failures == 1)
            // The next is not kept from trying.
            #expect(await responses.completions.take(key))
            responses.completions.leave(key)
        }
    }

    /// The process ended between the commit of the part and that of the response.
    @Test func aPartThatIsTheWholeIsNotCopied() async throws {
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
            try await #expect(fixture.getRange().1 == RangeOrigin.bytes(0..<Self.length))
            await fixture.cache.drain()
            let (whole, bytes) = try await fixture.getRange()
            #expect(whole.source == .hit && bytes == RangeOrigin.bytes(0..<Self.length))
            #expect(fixture.copiedBytes == 0)
            try await #expect(fixture.store.figures().entryCount == 1)
        }
    }
}

extension Fixture {
    /// Stores ranges as parts of their own, as earlier versions did, of a response of which nothing is stored yet.
    func storePacked(_ ranges: [Range<Int64>], of length: Int64) async throws {
        try await addPacked(ranges, to: try await responseWithoutParts(of: length), of: length)
    }

    /// A response as it would be stored, and no part of it in the store.
    func responseWithoutParts(of length: Int64) async throws -> StoredResponse {
        serveRanges(of: length)
        _ = try await getRange(0..<1)
        await cache.drain()
        let response = try #require(try cache.changes.responses.findOne(Key(Self.url))).response
        _ = try await cache.purge(Self.url)
        return response
    }

    /// As above, of a response that is stored.
    func addPacked(_ ranges: [Range<Int64>], to response: StoredResponse, of length: Int64) async throws {
        let key = Key(Self.url)
        let responses = cache.changes.responses
        var response = response
        for range in ranges {
            let part = StoredPart(ranges: ByteRanges([range]))
            response.body = .partial(part.ranges, total: length)
            try await store.put(
                RangeOrigin.bytes(range), for: part.key(key), PutOptions(metadata: StoredPart.packedMetadata))
            let added = try responses.add(
                part, of: response, isUpdate: false, at: key, primary: Self.url, tags: [],
                now: cache.changes.context.now
            ) { response, parts in
                var options = responses.options(for: response, tags: [], storagePolicy: .permanent)
                options.metadata = StoredRecord(response, parts: parts).encoded
                return options
            }
            try #require(added.isStored)
        }
    }
}
