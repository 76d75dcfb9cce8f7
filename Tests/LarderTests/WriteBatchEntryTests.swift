import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// What the operations of a batch do to entries: on disk, in memory, by content, by lease.
@Suite struct WriteBatchEntryTests {
    private func stored(_ bytes: [UInt8]) -> String { "stored \(Digest.of(bytes))" }

    // MARK: Changes

    @Test func everyFieldChanges() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            try store.put(body(50_000, 1), for: "k", PutOptions(tags: ["a", "b"], metadata: [1]))
            try store.put([1], for: "pinned", PutOptions(tags: ["p"]))
            try store.pin(tag: "p")
            let before = try #require(try store.attributes(of: "k"))
            let change = EntryChange(
                metadata: [2], lifetime: .duration(.seconds(60)), tags: ["b", "c", "p"], storagePolicy: .session,
                isPinned: true)
            try #expect(store.result { $0.change("k", change) } == "done")
            let after = try #require(try store.attributes(of: "k"))
            #expect(after.metadata == [2])
            #expect(after.expires != nil)
            #expect(after.tags == ["b", "c", "p"])
            #expect(after.storagePolicy == .session)
            #expect(after.isPinned)
            #expect(after.hitCount == before.hitCount)
            #expect(after.lastAccess == before.lastAccess)
            try #expect(store.keys(.tag("a")) == [])
            try #expect(store.keys(.tag("c")) == ["k"])
            try #expect(store.bytes("k") == body(50_000, 1))
            // Pinned through its new tag, too.
            try store.unpin("k")
            try #expect(store.attributes(of: "k")?.isPinned == true)
            try #expect(store.result { $0.change("k", EntryChange(tags: [])) } == "done")
            try #expect(store.attributes(of: "k")?.isPinned == false)
            try verify(store)
            try store.close()
            let again = try Store(at: path, .testing())
            // Its session is over.
            try #expect(again.get("k") == nil)
            try finish(again)
        }
    }

    @Test func aChangeOfNothingIsDone() throws {
        try withStore { store in
            try store.put([1], for: "k")
            try #expect(store.result { $0.change("k", EntryChange()) } == "done")
        }
    }

    @Test func badChangesAreRefused() throws {
        try withStore { store in
            try store.put([1], for: "k")
            let changes: [(EntryChange, String)] = [
                (EntryChange(storagePolicy: .memoryOnly), "failed invalidArgument"),
                (EntryChange(tags: [""]), "failed invalidArgument"),
                (EntryChange(metadata: body(1 << 20 + 1)), "failed tooLarge"),
            ]
            for (change, result) in changes { try #expect(store.result { $0.change("k", change) } == result) }
            try #expect(store.result { $0.lease(tag: "", for: .seconds(1)) } == "failed invalidArgument")
        }
    }

    @Test func entriesInMemoryChangeThere() throws {
        try withStore { store in
            try store.put([1], for: "k", PutOptions(storagePolicy: .memoryOnly))
            let entry = try #require(try store.get("k"))
            var batch = WriteBatch()
            batch.update(entry, EntryChange(metadata: [2], lifetime: .duration(.seconds(9))))
            batch.update(entry, EntryChange(metadata: [3]))
            batch.touch("k")
            batch.change("k", EntryChange(tags: ["t"]))
            batch.change("k", EntryChange(isPinned: true))
            try #expect(store.results(batch) == ["done", "changed", "done", "failed unsupported", "done"])
            let after = try #require(try store.attributes(of: "k"))
            #expect(after.metadata == [2])
            #expect(after.isPinned)
            #expect(after.expires != nil)
            // A put takes its place, with what outlives an overwrite.
            try #expect(store.result { $0.put([5], for: "k") } == stored([5]))
            try #expect(store.attributes(of: "k")?.storagePolicy == .permanent)
            try #expect(store.attributes(of: "k")?.isPinned == true)
            try #expect(store.bytes("k") == [5])
            try store.put([1], for: "k", PutOptions(storagePolicy: .memoryOnly))
            try #expect(store.result { $0.remove("k") } == "done")
            try #expect(store.get("k") == nil)
        }
    }

    // MARK: In place of an entry

    @Test(arguments: [20, 60_000]) func putReplacesOnlyTheEntryThatWasSeen(length: Int) throws {
        try withStore { store in
            try store.put([1], for: "k")
            let first = try #require(try store.get("k"))
            let second = body(length, 2)
            try #expect(store.result { $0.put(second, replacing: first) } == stored(second))
            try #expect(store.bytes("k") == second)
            try #expect(store.result { $0.put(body(length, 3), replacing: first) } == "changed")
            try #expect(store.bytes("k") == second)
            // Equal bytes with other metadata are another entry.
            let seen = try #require(try store.get("k"))
            try store.put(second, for: "k", PutOptions(metadata: [7]))
            try #expect(store.result { $0.put(body(length, 3), replacing: seen) } == "changed")
            try store.remove("k")
            try #expect(store.result { $0.put(body(length, 3), replacing: seen) } == "absent")
            try #expect(store.get("k") == nil)
            try #expect(store.statistics().blobCount == 0)
            let options = PutOptions(storagePolicy: .memoryOnly)
            try #expect(store.result { $0.put([3], replacing: seen, options) } == "failed invalidArgument")
        }
    }

    @Test func putReplacesAnEntryInMemoryThatWasSeen() throws {
        try withStore { store in
            try store.put([1], for: "k", PutOptions(storagePolicy: .memoryOnly))
            let seen = try #require(try store.get("k"))
            var batch = WriteBatch()
            batch.put([2], replacing: seen)
            batch.put([3], replacing: seen)
            try #expect(store.results(batch) == [stored([2]), "changed"])
            try #expect(store.bytes("k") == [2])
            try #expect(store.attributes(of: "k")?.storagePolicy == .permanent)
        }
    }

    // MARK: Content

    @Test func contentIsRemovedFromEveryEntry() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing { $0.version = "1" })
            let other = try Store(at: path, .testing { $0.version = "2" })
            let bytes = body(50_000, 1)
            for number in 0..<5 { try store.put(bytes, for: Key("k\(number)")) }
            try other.put(bytes, for: "other")
            try store.put([1], for: "stays")
            try #expect(store.result { $0.remove(digest: Digest.of(bytes)) } == "done")
            try #expect(store.keys() == ["stays"])
            try #expect(other.keys() == [])
            try #expect(!store.contains(digest: Digest.of(bytes)))
            try #expect(store.result { $0.remove(digest: Digest.of(bytes)) } == "absent")
            // Of an entry that the same batch has stored.
            var batch = WriteBatch()
            batch.put(bytes, for: "k")
            batch.remove(digest: Digest.of(bytes))
            try #expect(store.results(batch) == [stored(bytes), "done"])
            try #expect(store.get("k") == nil)
            try other.close()
            try finish(store)
        }
    }

    @Test(arguments: ["key", "tag", "digest"])
    func leasedEntriesAreNotDisplaced(_ kind: String) throws {
        let clock = TestClock()
        try withStore(configuration: .testing(budget: Budget(entries: 5), clock: clock)) { store in
            try store.put([1], for: "leased", PutOptions(tags: ["t"]))
            func lease(_ seconds: Int) throws {
                let result = try store.result { batch in
                    switch kind {
                    case "key": batch.lease("leased", for: .seconds(seconds))
                    case "tag": batch.lease(tag: "t", for: .seconds(seconds))
                    default: batch.lease(digest: Digest.of([1]), for: .seconds(seconds))
                    }
                }
                #expect(result == "done")
            }
            func fill(_ name: String) throws {
                for number in 0..<10 { try store.put([2, UInt8(number)], for: Key("\(name)\(number)")) }
                try store.flush()
            }
            try lease(60)
            // Never shorter, and one row for all.
            try lease(10)
            try #expect(store.engine.read { try $0.statistics(store.engine.index.leases).entries } == 1)
            clock.advance(by: .seconds(50))
            try fill("a")
            try #expect(store.contains("leased"))
            try lease(60)
            clock.advance(by: .seconds(50))
            try fill("b")
            try #expect(store.contains("leased"))
            clock.advance(by: .seconds(20))
            try fill("c")
            try #expect(!store.contains("leased"))
        }
    }

    @Test func timedLeasesOutliveTheStore() throws {
        try withDirectory { path in
            let first = try Store(at: path, .testing(budget: Budget(entries: 3)))
            try first.put([1], for: "leased")
            try #expect(first.result { $0.lease(digest: Digest.of([1]), for: .seconds(600)) } == "done")
            try first.close()
            let second = try Store(at: path, .testing(budget: Budget(entries: 3)))
            for number in 0..<9 { try second.put([2], for: Key("k\(number)")) }
            try #expect(second.contains("leased"))
            try finish(second)
        }
    }

    // MARK: Entries in memory

    @Test func operationsOnAnEntryInMemorySeeEachOther() throws {
        let cases: [((inout WriteBatch) -> Void, [String], [UInt8]?, isPinned: Bool)] = [
            (
                {
                    $0.put([2], for: "k"); $0.remove("k")
                }, [stored([2]), "done"], nil, false
            ),
            (
                {
                    $0.put([2], for: "k"); $0.change("k", EntryChange(isPinned: true))
                }, [stored([2]), "done"], [2], true
            ),
            (
                {
                    $0.remove("k"); $0.put([2], for: "k", unlessPresent: true)
                }, ["done", stored([2])], [2], false
            ),
            (
                {
                    $0.remove("k"); $0.touch("k")
                }, ["done", "absent"], nil, false
            ),
            (
                {
                    $0.change("k", EntryChange(isPinned: true)); $0.put([2], for: "k")
                }, ["done", stored([2])], [2], true
            ),
        ]
        for (fill, results, bytes, isPinned) in cases {
            try withStore { store in
                try store.put([1], for: "k", PutOptions(storagePolicy: .memoryOnly))
                var batch = WriteBatch()
                fill(&batch)
                try #expect(store.results(batch) == results)
                try #expect(store.bytes("k") == bytes)
                try #expect(store.attributes(of: "k")?.isPinned ?? false == isPinned)
                try store.flush()
                try #expect(store.bytes("k") == bytes)
            }
        }
    }

    @Test func contentIsRemovedFromMemoryToo() throws {
        try withStore { store in
            try store.put([1], for: "memory", PutOptions(storagePolicy: .memoryOnly))
            try #expect(store.result { $0.remove(digest: Digest.of([1])) } == "done")
            try #expect(store.get("memory") == nil)
        }
    }

    @Test func timedLeasesThatAreOverGo() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            func rows() throws -> Int { try store.engine.read { try $0.statistics(store.engine.index.leases).entries } }
            for round in 0..<20 {
                var batch = WriteBatch()
                for number in 0..<50 {
                    batch.lease(digest: Digest.of([UInt8(round), UInt8(number)]), for: .seconds(10))
                }
                batch.lease("none", for: .zero)
                batch.lease("none", for: .seconds(-5))
                try store.write(batch)
                clock.advance(by: .seconds(20))
            }
            try #expect(rows() <= 100)
        }
    }
}
