import Locks
import TestSupport
import Testing

@testable import Larder

#if LARDER_FAILPOINTS
    import Failpoints
#endif

/// Batches and entries of policy `memoryOnly`: what a batch does to one takes effect after the commit.
@Suite struct MemoryBatchTests {
    private static let memoryOnly = PutOptions(storagePolicy: .memoryOnly)

    /// Runs each write on a thread of its own, one after another, so that all of them are committed together; returns
    /// what they returned.
    private func committedTogether(
        _ writes: [@Sendable () throws -> String], in store: Store
    ) throws -> [String] {
        let pending = try #require(store.engine.writing?.pending)
        try store.put([1], for: "other")
        try store.flush()
        let results = Mutex([Int: String]())
        // While another writer has the lock, the first one is under way, and the others come together behind it.
        let threads = try store.engine.index.environment.write { _ in
            var threads = [Threads(1) { _ in try store.touch("other") }]
            blockWhile { pending.isDue || pending.waitingJobs < 1 }
            for (number, write) in writes.enumerated() {
                threads.append(
                    Threads(1) { _ in
                        let result = try write()
                        results.withLock { $0[number] = result }
                    })
                blockWhile { pending.waitingJobs < number + 2 }
            }
            return threads
        }
        for thread in threads { try thread.join() }
        return results.withLock { results in writes.indices.map { results[$0] ?? "" } }
    }

    @Test func aRemovalIsSeenByTheNextBatch() throws {
        try withStore { store in
            try store.put([1], for: "k", Self.memoryOnly)
            let results = try committedTogether(
                [
                    { try store.result { $0.remove("k") } },
                    { try store.result { $0.put([2], for: "k", unlessPresent: true) } },
                ], in: store)
            #expect(results == ["done", "stored \(Digest.of([2]))"])
            try #expect(store.bytes("k") == [2])
        }
    }

    @Test func aPutIsSeenByTheNextBatch() throws {
        try withStore { store in
            try store.put([1], for: "k", Self.memoryOnly)
            let results = try committedTogether(
                [
                    { try store.result { $0.put([2], for: "k") } },
                    { try store.result { $0.change("k", EntryChange(metadata: [9])) } },
                    { try store.result { $0.change("k", EntryChange(tags: ["t"])) } },
                ], in: store)
            #expect(results == ["stored \(Digest.of([2]))", "done", "done"])
            try #expect(store.bytes("k") == [2])
            try #expect(store.get("k")?.metadata == [9])
            try #expect(store.keys(.tag("t")) == ["k"])
        }
    }

    @Test func aChangeIsSeenByTheNextBatch() throws {
        try withStore { store in
            try store.put([1], for: "k", Self.memoryOnly)
            let entry = try #require(try store.get("k"))
            let results = try committedTogether(
                [
                    { try store.result { $0.update(entry, EntryChange(metadata: [2])) } },
                    { try store.result { $0.update(entry, EntryChange(metadata: [3])) } },
                    { try store.result { $0.change("k", EntryChange(isPinned: true)) } },
                ], in: store)
            #expect(results == ["done", "changed", "done"])
            try #expect(store.get("k")?.metadata == [2])
            try #expect(store.attributes(of: "k")?.isPinned == true)
        }
    }

    // MARK: Memory

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
        /// What others do to the entry while the batch is committed comes after the batch.
        @Test(arguments: ["put", "remove", "change"], ["touch", "pin", "update", "remove"])
        func nothingThatABatchDidIsLost(_ operation: String, _ other: String) throws {
            try withDirectory { path in
                let store = try Store(at: path, .testing())
                let pending = try #require(store.engine.writing?.pending)
                try store.put([1], for: "k", Self.memoryOnly)
                let entry = try #require(try store.get("k"))
                let (hits, done) = (Counter(), Counter())
                let threads = Mutex<Threads?>(nil)
                let scope = FaultScope(under: path.string)
                scope.at("commit.before") {
                    if hits.increment() > 1 { return }
                    threads.withLock {
                        $0 = Threads(1) { _ in
                            switch other {
                            case "touch": try store.touch("k")
                            case "pin": try store.pin("k")
                            case "update": try store.update(entry, metadata: [7])
                            default: try store.remove(entry)
                            }
                            done.increment()
                        }
                    }
                    // It is over, or waits for the batch.
                    blockWhile { done.value == 0 && pending.waitingJobs < 2 }
                }
                var batch = WriteBatch()
                switch operation {
                case "put": batch.put([2], for: "k")
                case "remove": batch.remove("k")
                default: batch.change("k", EntryChange(metadata: [9]))
                }
                try #expect(!store.write(batch).contains { !$0.isSuccess })
                try threads.withLock { $0 }?.join()
                scope.lift()
                #expect(done.value == 1)
                switch operation {
                case "put": try #expect(store.bytes("k") == [2])
                case "remove": try #expect(store.bytes("k") == nil)
                default: try #expect(store.get("k")?.metadata == [9])
                }
                try finish(store)
            }
        }
    #endif
}
