import SystemPackage
import TestSupport
import Testing

@testable import Larder

extension WriteResult {
    /// What is compared in tests: an error by its code.
    var summary: String {
        switch self {
        case .stored(let digest): "stored \(digest)"
        case .done: "done"
        case .present: "present"
        case .absent: "absent"
        case .changed: "changed"
        case .failed(let error): "failed \(error.code)"
        }
    }
}

extension Store {
    /// The results of a batch, as text.
    func results(_ batch: WriteBatch, durability: Durability? = nil) throws -> [String] {
        try write(batch, durability: durability).map(\.summary)
    }

    func result(_ fill: (inout WriteBatch) -> Void) throws -> String {
        var batch = WriteBatch()
        fill(&batch)
        return try results(batch)[0]
    }
}

@Suite struct WriteBatchTests {
    private func stored(_ bytes: [UInt8]) -> String { "stored \(Digest.of(bytes))" }

    // MARK: Results

    @Test(arguments: [Durability.relaxed, .durable])
    func eachOperationHasItsResultInOrder(_ durability: Durability) throws {
        try withStore { store in
            try store.put([1], for: "old")
            let old = try #require(try store.get("old"))
            try store.put([2], for: "other")
            let other = try #require(try store.get("other"))
            try store.put([3], for: "other")
            var batch = WriteBatch()
            batch.put([5], for: "new")
            batch.put(body(50_000, 1), for: "large")
            batch.put([6], for: "new", unlessPresent: true)
            batch.update(old, EntryChange(metadata: [7]))
            batch.update(other, EntryChange(metadata: [8]))
            batch.touch("gone")
            batch.extend("new", to: .duration(.seconds(60)))
            batch.lease("later", for: .seconds(60))
            batch.remove("gone")
            batch.remove(other)
            batch.put([9], for: "")
            batch.put([9], for: "wrong", digest: Digest.of([1]))
            batch.put([9], for: "memory", PutOptions(storagePolicy: .memoryOnly))
            #expect(batch.count == 13)
            try #expect(
                store.results(batch, durability: durability) == [
                    stored([5]), stored(body(50_000, 1)), "present", "done", "changed", "absent", "done", "done",
                    "absent", "changed", "failed invalidArgument", "failed digestMismatch", "failed invalidArgument",
                ])
            try #expect(store.bytes("new") == [5])
            try #expect(store.attributes(of: "new")?.expires != nil)
            try #expect(store.bytes("large") == body(50_000, 1))
            try #expect(store.get("old")?.metadata == [7])
            try #expect(store.bytes("other") == [3])
            try #expect(store.get("wrong") == nil)
            #expect(store.stagedFiles == [])
        }
    }

    @Test func theAsynchronousFormSaysTheSame() async throws {
        try await withStore { store in
            var batch = WriteBatch()
            batch.put([5], for: "new")
            batch.put(body(50_000, 1), for: "large")
            batch.remove("gone")
            let results = try await store.write(batch)
            #expect(results.map(\.summary) == [stored([5]), stored(body(50_000, 1)), "absent"])
            try #expect(store.bytes("large") == body(50_000, 1))
            try await #expect(store.touch("new"))
            try await #expect(store.pin("new"))
            try await #expect(store.unpin("new"))
            try await #expect(!store.touch("gone"))
            let held = try await (store.lease("new"), store.lease(tag: "t"))
            held.0.release()
            held.1.release()
            let none = try await store.write(WriteBatch())
            #expect(none.isEmpty)
        }
    }

    @Test func aCancelledTaskWritesNothing() async throws {
        try await withStore { store in
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                var batch = WriteBatch()
                batch.put([5], for: "new")
                try await store.write(batch)
            }
            await #expect(throws: CancellationError.self) { try await task.value }
            try #expect(!store.contains("new"))
        }
    }

    @Test func laterOperationsSeeEarlierOnes() throws {
        try withStore { store in
            var batch = WriteBatch()
            batch.put([1], for: "k")
            batch.change("k", EntryChange(metadata: [1]))
            batch.put([2], for: "k", unlessPresent: true)
            batch.remove("k")
            batch.put([3], for: "k", unlessPresent: true)
            try #expect(store.results(batch) == [stored([1]), "done", "present", "done", stored([3])])
            try #expect(store.bytes("k") == [3])
            try #expect(store.get("k")?.metadata == [])
        }
    }

    @Test func whatIsPendingComesFirst() throws {
        try withStore { store in
            try store.put([1], for: "put")
            try store.put([1], for: "removed")
            try store.flush()
            try store.put([2], for: "put")
            try store.remove("removed")
            var batch = WriteBatch()
            batch.put([3], for: "put", unlessPresent: true)
            batch.put([3], for: "removed", unlessPresent: true)
            try #expect(store.results(batch) == ["present", stored([3])])
            try #expect(store.bytes("put") == [2])
        }
    }

    @Test func closedAndReadOnlyStoresThrow() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            var batch = WriteBatch()
            batch.put(body(50_000), for: "k")
            var configuration = Configuration.testing()
            configuration.isReadOnly = true
            try store.put([1], for: "k")
            try store.close()
            try #expect(code { try store.write(batch) } == .closed)
            let reader = try Store(at: path, configuration)
            try #expect(code { try reader.write(batch) } == .readOnly)
            try #expect(code { try reader.touch("k") } == .readOnly)
            try reader.close()
            let again = try Store(at: path, .testing())
            #expect(again.stagedFiles == [])
            try finish(again)
        }
    }

    // MARK: One commit

    @Test func aBatchIsOneCommit() throws {
        try withStore { store in
            let environment = store.engine.index.environment
            let before = environment.lastTransaction
            var batch = WriteBatch()
            for number in 0..<500 { batch.put(body(200, number), for: Key("k\(number)")) }
            for number in 0..<500 { batch.touch(Key("k\(number)")) }
            let results = try store.write(batch)
            #expect(!results.contains { !$0.isSuccess })
            #expect(environment.lastTransaction == before + 1)
            try #expect(store.statistics().entryCount == 500)
        }
    }

    @Test func readersSeeAllOfABatchOrNothing() throws {
        try withStore { store in
            let keys = (0..<8).map { Key("k\($0)") }
            let isOver = Counter()
            let readers = Threads(2) { _ in
                while isOver.value == 0 {
                    let seen = try Set(store.get(keys).map { try $0?.body.bytes() })
                    #expect(seen.count == 1, "\(seen)")
                }
            }
            for round in 0..<100 {
                var batch = WriteBatch()
                for key in keys { batch.put([UInt8(round)], for: key) }
                try store.write(batch)
            }
            isOver.increment()
            try readers.join()
        }
    }

    @Test func callersShareCommits() throws {
        try withStore { store in
            let count = 32
            for number in 0..<count { try store.put([1], for: Key("k\(number)")) }
            try store.flush()
            let environment = store.engine.index.environment
            let pending = try #require(store.engine.writing?.pending)
            let before = environment.lastTransaction
            // While another writer has the lock, they all come to wait.
            let threads = try environment.write { _ in
                let threads = Threads(count) { try #expect(store.touch(Key("k\($0)"))) }
                while pending.waitingJobs < count { sched_yield() }
                return threads
            }
            try threads.join()
            #expect(environment.lastTransaction <= before + 3)
        }
    }

    @Test func oneOfManyWritersIsFirst() throws {
        try withStore { store in
            let winners = Counter()
            try Threads.run(8) { thread in
                for number in 0..<20 {
                    var batch = WriteBatch()
                    batch.put([UInt8(thread)], for: Key("k\(number)"), unlessPresent: true)
                    if case .stored = try store.write(batch)[0] { winners.increment() }
                }
            }
            #expect(winners.value == 20)
        }
    }

    @Test func putsOfTheSameKeysAroundABatchKeepTheirOrder() throws {
        try withStore { store in
            try Threads.run(4) { thread in
                for round in 0..<50 {
                    let key = Key("\(thread)/\(round % 5)")
                    try store.put([1], for: key)
                    var batch = WriteBatch()
                    batch.remove(key)
                    batch.put([2], for: key, unlessPresent: true)
                    try #expect(store.results(batch) == ["done", stored([2])])
                    try store.put([3], for: key)
                    try #expect(store.bytes(key) == [3])
                    try store.remove(key)
                    try #expect(store.result { $0.touch(key) } == "absent")
                }
            }
        }
    }

    // MARK: Conditions

    @Test func presentMeansAHit() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            let put: (inout WriteBatch) -> Void = { $0.put([9], for: "k", unlessPresent: true) }
            try store.put([1], for: "k", PutOptions(lifetime: .duration(.seconds(5))))
            try #expect(store.result(put) == "present")
            clock.advance(by: .seconds(6))
            try #expect(store.result(put) == stored([9]))
            try store.put([1], for: "k", PutOptions(storagePolicy: .memoryOnly))
            try #expect(store.result(put) == "present")
            try store.remove("k")
            try #expect(store.result(put) == stored([9]))
        }
    }

    @Test func aLostBodyIsNotPresent() throws {
        try withStore { store in
            let bytes = body(50_000, 1)
            try store.put(bytes, for: "k")
            try store.flush()
            _ = FileSystem.unlink(path: store.blobPath(Digest.of(bytes)))
            try #expect(store.result { $0.put(bytes, for: "k", unlessPresent: true) } == stored(bytes))
            try #expect(store.bytes("k") == bytes)
        }
    }

    @Test func entriesOfOtherVersionsAreNotSeen() throws {
        try withDirectory { path in
            let one = try Store(at: path, .testing { $0.version = "1" })
            let two = try Store(at: path, .testing { $0.version = "2" })
            try one.put([1], for: "k")
            try one.flush()
            try #expect(two.result { $0.touch("k") } == "absent")
            try #expect(two.result { $0.remove("k") } == "absent")
            try #expect(two.result { $0.change("k", EntryChange(metadata: [1])) } == "absent")
            try #expect(one.get("k")?.metadata == [])
            try #expect(two.result { $0.put([2], for: "k", unlessPresent: true) } == stored([2]))
            try one.close()
            try finish(two)
        }
    }

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

    // MARK: Room

    @Test func aBatchMakesRoomForItself() throws {
        let budget = 4 << 20
        try withStore(configuration: .testing(budget: Budget(bytes: ByteCount(budget)))) { store in
            for number in 0..<40 { try store.put(body(100_000, number), for: Key("old\(number)")) }
            var batch = WriteBatch()
            for number in 0..<10 { batch.put(body(100_000, 100 + number), for: Key("new\(number)")) }
            for number in 0..<100 { batch.put(body(3000, 200 + number), for: Key("small\(number)")) }
            try #expect(!store.write(batch).contains { !$0.isSuccess })
            for number in 0..<10 { try #expect(store.contains(Key("new\(number)"))) }
            #expect(recount(store.path) <= budget)
        }
    }

    @Test func aBatchThatDoesNotFitChangesNothing() throws {
        let budget = 2 << 20
        try withStore(configuration: .testing(budget: Budget(bytes: ByteCount(budget)))) { store in
            let pinned = PutOptions(isPinned: true)
            for number in 0..<60 { try store.put(body(20_000, number), for: Key("p\(number)"), pinned) }
            try store.flush()
            let keys = try store.keys()
            #expect(keys.count == 60)
            var batch = WriteBatch()
            batch.remove("p0")
            for number in 0..<300 { batch.put(body(3000, number), for: Key("small\(number)"), pinned) }
            batch.put(body(5000, 9), for: "file")
            try #expect(code { try store.write(batch) } == .noSpace)
            try #expect(store.keys() == keys)
            #expect(store.stagedFiles == [])
            #expect(recount(store.path) <= budget)
            try store.put([2], for: "after")
        }
    }

    @Test func aBodyTooLargeLeavesTheOthersAlone() throws {
        try withStore(configuration: .testing(budget: Budget(largestEntry: 5000))) { store in
            var batch = WriteBatch()
            batch.put(body(4500), for: "fits")
            batch.put(body(5001), for: "large")
            try #expect(store.results(batch) == [stored(body(4500)), "failed tooLarge"])
        }
    }

    @Test func aStoreFullOfPinsIsUnpinnedByABatch() throws {
        try withStore(configuration: .testing(budget: Budget(bytes: .mebibytes(1)))) { store in
            var number = 0
            let pinned = PutOptions(isPinned: true)
            while try code({ try store.put(body(20_000, number), for: Key("k\(number)"), pinned) }) == nil {
                number += 1
            }
            try store.flush()
            var batch = WriteBatch()
            for key in try store.keys() { batch.change(key, EntryChange(isPinned: false)) }
            try #expect(!store.write(batch).contains { !$0.isSuccess })
            try store.put(body(20_000, 1000), for: "new")
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

    // MARK: Limits

    @Test func aBatchOverTheBudgetDisplacesNothing() throws {
        try withStore(configuration: .testing(budget: Budget(bytes: .mebibytes(2)))) { store in
            for number in 0..<50 { try store.put([UInt8(number)], for: Key("k\(number)")) }
            var batch = WriteBatch()
            for number in 0..<1000 { batch.put(body(3000, number), for: Key("b\(number)")) }
            try #expect(code { try store.write(batch) } == .tooLarge)
            try #expect(store.statistics().entryCount == 50)
            var long = WriteBatch()
            for _ in 0...16_384 { long.touch("k1") }
            try #expect(code { try store.write(long) } == .invalidArgument)
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
