import Locks
import TestSupport
import Testing

@testable import Larder

#if LARDER_FAILPOINTS
    import Failpoints
#endif

/// Batches and entries of policy `memoryOnly`: a batch changes and removes them before its commit, and what it puts in
/// their place is seen after it.
@Suite struct MemoryBatchTests {
    private static let memoryOnly = PutOptions(storagePolicy: .memoryOnly)

    /// No part of it is for the disk. What was put before a batch is committed with it all the same.
    @Test func onlyABatchOfChangesInMemoryIsACommit() throws {
        try withStore(configuration: .holding) { store in
            try store.put([1], for: "k", Self.memoryOnly)
            try store.put([2], for: "other", Self.memoryOnly)
            try store.flush()
            let before = try store.statistics().counters.commits
            try #expect(store.touch("k") && store.pin("k"))
            try #expect(store.statistics().counters.commits == before)
            var batch = WriteBatch()
            batch.change("k", EntryChange(metadata: [9], isPinned: true))
            batch.remove("other")
            batch.put([3], for: "k", unlessPresent: true)
            batch.put(body(60_000), for: "k", unlessPresent: true)
            batch.change("k", EntryChange(tags: ["t"]))
            try store.put([4], for: "disk")
            try #expect(store.results(batch) == ["done", "done", "present", "present", "failed unsupported"])
            #expect(store.engine.writing?.pending.isDue == false)
            let attributes = try #require(try store.attributes(of: "k"))
            #expect(attributes.metadata == [9] && attributes.isPinned && attributes.storagePolicy == .memoryOnly)
            try #expect(store.get("other") == nil)
            try #expect(store.statistics().counters.commits == before + 1)
        }
    }

    /// They have no result to tell it by.
    @Test func aSingleChangeThatDoesNotFitThrows() throws {
        try withStore(configuration: .testing { $0.memoryLimit = .kibibytes(64) }) { store in
            try store.put([1], for: "k", Self.memoryOnly)
            let entry = try #require(try store.get("k"))
            try #expect(code { try store.update(entry, metadata: body(60_000)) } == .tooLarge)
            try #expect(store.attributes(of: "k")?.metadata == [])
        }
    }

    @Test func aBodyInProgressTakesOverWhatOutlivesAnOverwrite() throws {
        try withStore { store in
            try store.put([1], for: "k", PutOptions(storagePolicy: .memoryOnly, isPinned: true))
            let writer = try store.partialWriter(for: "k", total: ByteCount(3))
            try writer.write([1, 2, 3], at: 0)
            try writer.commit()
            let attributes = try #require(try store.attributes(of: "k"))
            #expect(attributes.isPinned && attributes.storagePolicy == .permanent)
        }
    }

    /// Another thread changes sides between the plan of a job and its place in the batch.
    @Test func aKeyThatMovesMeanwhileIsPlannedAgain() throws {
        try withStore { store in
            try store.put([0], for: "k")
            let isOver = Atomic<Bool>(false)
            let movers = Threads(1) { _ in
                var number: UInt8 = 0
                while !isOver.load(ordering: .relaxed) {
                    number &+= 1
                    let options = PutOptions(storagePolicy: number % 2 == 0 ? .permanent : .memoryOnly)
                    try store.put([number], for: "k", options)
                }
            }
            for _ in 0..<300 {
                try #expect(store.touch("k"))
                try #expect(store.result { $0.put([9], for: "k", unlessPresent: true) } == "present")
            }
            isOver.store(true, ordering: .relaxed)
            try movers.join()
        }
    }

    /// Each of several threads adds one to what it has seen; none is lost.
    @Test func replacingWhatWasSeenLosesNoUpdate() throws {
        try withStore { store in
            try store.put([0], for: "k", PutOptions(storagePolicy: .memoryOnly, metadata: [0]))
            let done = Counter()
            try Threads.run(3) { thread in
                for _ in 0..<30 {
                    while true {
                        let entry = try #require(try store.get("k"))
                        let value = entry.metadata[0] + 1
                        let result = try store.result { batch in
                            if thread == 0, entry.attributes.storagePolicy == .memoryOnly {
                                batch.update(entry, EntryChange(metadata: [value]))
                            } else {
                                batch.put([1], replacing: entry, PutOptions(metadata: [value]))
                            }
                        }
                        if result == "changed" { continue }
                        #expect(result == "done" || result.hasPrefix("stored"))
                        done.increment()
                        break
                    }
                }
            }
            try #expect(store.get("k")?.metadata == [90])
            #expect(done.value == 90)
        }
    }

    /// What outlives an overwrite is taken over; the entry is on disk and nowhere else.
    @Test func whatABatchPutsLeavesMemory() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            for key: Key in ["put", "replaced"] {
                try store.put([1], for: key, PutOptions(storagePolicy: .memoryOnly, isPinned: true))
            }
            let created = try #require(try store.attributes(of: "put")).created
            let entry = try #require(try store.get("replaced"))
            clock.advance(by: .seconds(5))
            var batch = WriteBatch()
            batch.put([2], for: "put")
            batch.put([2], replacing: entry)
            batch.put([3], replacing: entry)
            try #expect(
                store.results(batch) == ["stored \(Digest.of([2]))", "stored \(Digest.of([2]))", "changed"])
            for key: Key in ["put", "replaced"] {
                let attributes = try #require(try store.attributes(of: key))
                #expect(attributes.isPinned && attributes.created == created, "\(key)")
                #expect(attributes.storagePolicy == .permanent)
                try #expect(store.bytes(key) == [2])
            }
            try #expect(store.statistics().memoryEntryCount == 0)
        }
    }

    /// There is no such content to put in its place.
    @Test func anEntryThatIsNotReplacedStays() throws {
        try withStore { store in
            try store.put([1], for: "k", PutOptions(storagePolicy: .memoryOnly, metadata: [7]))
            let entry = try #require(try store.get("k"))
            try #expect(
                store.result { $0.put(contentOf: Digest.of([8]), replacing: entry, PutOptions()) } == "absent")
            try #expect(store.bytes("k") == [1])
            try #expect(store.attributes(of: "k")?.metadata == [7])
            try store.update(entry, metadata: [8])
            try #expect(store.result { $0.put([2], replacing: entry) } == "changed")
            try #expect(store.bytes("k") == [1])
        }
    }

    // MARK: Memory

    /// Changes that need no memory evict none, and work where all are pinned.
    @Test func changesOfAFullMemoryTakeNone() throws {
        try withStore(configuration: .testing { $0.memoryLimit = .kibibytes(64) }) { store in
            let keys = (0..<6).map { Key("k\($0)") }
            for key in keys {
                try store.put(body(9_000), for: key, PutOptions(storagePolicy: .memoryOnly, isPinned: true))
            }
            var batch = WriteBatch()
            for key in keys { batch.change(key, EntryChange(isPinned: false)) }
            try #expect(store.results(batch) == keys.map { _ in "done" })
            batch = WriteBatch()
            for key in keys { batch.touch(key) }
            try #expect(store.results(batch) == keys.map { _ in "done" })
            try #expect(store.statistics().memoryEntryCount == 6)
        }
    }

    /// Content that a batch replaces before it removes that content is not looked for under that key.
    @Test func whatABatchReplacesIsNotRemovedForItsContent() throws {
        try withStore { store in
            try store.put([1], for: "k", Self.memoryOnly)
            var batch = WriteBatch()
            batch.put([2], for: "k")
            batch.remove(digest: Digest.of([1]))
            try #expect(store.results(batch) == ["stored \(Digest.of([2]))", "absent"])
            try #expect(store.bytes("k") == [2])
        }
    }

    @Test func changesKeepTheMemoryLimit() throws {
        let limit = 128 << 10
        try withStore(configuration: .testing { $0.memoryLimit = ByteCount(Int64(limit)) }) { store in
            for key: Key in ["a", "c"] { try store.put(body(40_000), for: key, Self.memoryOnly) }
            try store.put(body(20_000), for: "b", Self.memoryOnly)
            let long = EntryChange(metadata: body(40_000))
            // Within a batch, which does not go the way of one change.
            func change(_ key: Key, _ change: EntryChange) throws -> [String] {
                var batch = WriteBatch()
                batch.change(key, EntryChange(isAccess: true))
                batch.change(key, change)
                return try store.results(batch)
            }
            try #expect(change("b", long) == ["done", "done"])
            #expect(store.engine.memory.size.bytes <= limit)
            try #expect(store.get("b")?.metadata.count == 40_000)
            try #expect(store.get("a") == nil)
            try #expect(change("b", EntryChange(metadata: body(100_000))) == ["done", "failed tooLarge"])
            try #expect(store.get("b")?.metadata.count == 40_000)
            let pinned: [Key] = ["p", "q", "r"]
            try #expect(store.remove("b"))
            for key in pinned {
                try store.put(body(1000), for: key, PutOptions(storagePolicy: .memoryOnly, isPinned: true))
            }
            for key in pinned {
                try #expect(
                    change(key, EntryChange(metadata: body(60_000)))[1] == (key == "r" ? "failed noSpace" : "done"))
            }
            // Nothing stays reserved.
            for key in pinned { try store.unpin(key) }
            try store.put(body(60_000), for: "all", Self.memoryOnly)
            #expect(store.engine.memory.size.bytes <= limit)
        }
    }

    #if LARDER_FAILPOINTS
        /// Readers find the entry in memory until the batch is committed; what others do to it comes after the batch.
        @Test(arguments: ["touch", "pin", "update", "remove", "put"], [false, true])
        func anEntryStaysInMemoryUntilTheCommit(_ other: String, _ isReplacing: Bool) throws {
            try withDirectory { path in
                let store = try Store(at: path, .testing())
                try store.put([1], for: "k", Self.memoryOnly)
                // The removal that came with it would be the first commit.
                try store.flush()
                let entry = try #require(try store.get("k"))
                let hits = Counter()
                let seen = Mutex<[[UInt8]?]>([])
                let threads = Mutex<Threads?>(nil)
                let scope = FaultScope(under: path.string)
                scope.at("commit.before") {
                    if hits.increment() > 1 { return }
                    // Not on this thread, which those that need a commit wait for.
                    let others = Threads(1) { _ in
                        let bytes = try store.bytes("k")
                        seen.withLock { $0.append(bytes) }
                        switch other {
                        case "touch": try #expect(store.touch("k"))
                        case "pin": try #expect(store.pin("k"))
                        case "update": try #expect(!store.update(entry, metadata: [7]))
                        case "put": try store.put([3], for: "k", Self.memoryOnly)
                        default: try #expect(!store.remove(entry))
                        }
                    }
                    blockWhile { seen.withLock { $0.isEmpty } }
                    threads.withLock { $0 = others }
                }
                var batch = WriteBatch()
                if isReplacing { batch.put([2], replacing: entry) } else { batch.put([2], for: "k") }
                try #expect(!store.write(batch).contains { !$0.isSuccess })
                try threads.withLock { $0 }?.join()
                scope.lift()
                #expect(hits.value > 0)
                #expect(seen.withLock { $0 } == [[1]])
                try #expect(store.bytes("k") == (other == "put" ? [3] : [2]))
                try #expect(store.attributes(of: "k")?.isPinned == (other == "pin"))
                try finish(store)
            }
        }

        /// A batch that cannot be committed leaves the entries that it was to replace where they were.
        @Test func anEntryStaysInMemoryIfTheBatchFails() throws {
            try withDirectory { path in
                let store = try Store(at: path, .testing())
                try store.put([1], for: "k", PutOptions(storagePolicy: .memoryOnly, metadata: [7]))
                let entry = try #require(try store.get("k"))
                var batch = WriteBatch()
                batch.put([2], replacing: entry)
                let scope = FaultScope(under: path.string)
                scope.set(try #require(FaultRule.list("mdb_txn_commit=EIO")))
                try #expect(code { try store.write(batch) } == .io)
                scope.lift()
                // The removal that came with the put to memory.
                try #expect(code { try store.flush() } == .io)
                try #expect(store.bytes("k") == [1])
                try #expect(store.attributes(of: "k")?.metadata == [7])
                try #expect(store.results(batch) == ["stored \(Digest.of([2]))"])
                try finish(store)
            }
        }
    #endif
}
