#if LARDER_FAILPOINTS
    import Failpoints
    import SystemPackage
    import TestSupport
    import Testing

    @testable import Larder

    /// Batches under failures: all or nothing, and nothing left behind.
    @Suite struct WriteBatchFaultTests {
        private var batch: WriteBatch {
            var batch = WriteBatch()
            batch.put([2], for: "old")
            batch.put(body(60_000, 1), for: "file")
            batch.put(body(60_000, 2), for: "present", unlessPresent: true)
            batch.remove("gone")
            return batch
        }

        @Test(arguments: [
            "mdb_txn_begin.write=EIO", "mdb_put=EIO", "mdb_put=MDB_MAP_FULL", "mdb_txn_commit=EIO",
            "mdb_txn_commit=ENOSPC",
            "pwrite=EIO", "open=EMFILE",
        ])
        func aBatchThatFailsChangesNothing(_ fault: String) throws {
            try withDirectory { path in
                let store = try Store(at: path, .testing())
                try store.put([1], for: "old")
                try store.put([1], for: "present")
                try store.put([1], for: "gone")
                try store.flush()
                let scope = FaultScope(under: path.string)
                scope.set(try #require(FaultRule.list(fault)))
                // What cannot be staged fails for itself.
                let isStaging = fault.hasPrefix("pwrite") || fault.hasPrefix("open")
                if isStaging {
                    try #expect(
                        store.results(batch).map { $0.split(separator: " ")[0] } == [
                            "stored", "failed", "failed", "done",
                        ])
                } else {
                    let failure = try code { try store.write(batch) }
                    #expect(failure != nil)
                }
                #expect(scope.injected > 0)
                scope.lift()
                if !isStaging {
                    try #expect(store.keys() == ["gone", "old", "present"])
                    try #expect(store.bytes("old") == [1])
                }
                try #expect(store.get("file") == nil)
                #expect(store.stagedFiles == [])
                try #expect(
                    store.results(batch).map { $0.split(separator: " ")[0] }
                        == ["stored", "stored", "present", isStaging ? "absent" : "done"])
                #expect(store.stagedFiles == [])
                try finish(store)
            }
        }

        /// The sync that makes a durable batch survive power loss.
        @Test func aDurableBatchThatIsNotSyncedFails() throws {
            try withDirectory { path in
                let store = try Store(at: path, .testing())
                let scope = FaultScope(under: path.string)
                scope.set(try #require(FaultRule.list("mdb_env_sync=EIO")))
                try #expect(code { try store.write(batch, durability: .durable) } == .io)
                scope.lift()
                try store.write(batch, durability: .durable)
                try finish(store)
            }
        }

        /// It would rest on bytes that a power loss may take.
        @Test func aDurableEntryOfContentThatIsNotSyncedFails() throws {
            try withDirectory { path in
                let store = try Store(at: path, .testing())
                let digest = try store.put(body(60_000, 1), for: "relaxed")
                try store.flush()
                var batch = WriteBatch()
                batch.put(contentOf: digest, for: "durable")
                let scope = FaultScope(under: path.string)
                scope.set(try #require(FaultRule.list("fdatasync=EIO")))
                try #expect(code { try store.write(batch, durability: .durable) } == .io)
                #expect(scope.injected > 0)
                scope.lift()
                #expect(try store.get("durable") == nil)
                try store.write(batch, durability: .durable)
                try finish(store)
            }
        }

        /// Whatever comes later is what stays, in memory or on disk.
        @Test(arguments: ["batch.before", "commit.after", "batch.before-index-sync"], [false, true])
        func aPutToMemoryDuringABatchIsTheLaterOne(_ step: String, _ wasInMemory: Bool) throws {
            try withDirectory { path in
                let store = try Store(at: path, .testing())
                let memoryOnly = PutOptions(storagePolicy: .memoryOnly)
                if wasInMemory { try store.put([1], for: "k", memoryOnly) }
                // Its removal of what is on disk must not be the commit that is waited for.
                try store.flush()
                let scope = FaultScope(under: path.string)
                let isDone = Counter()
                scope.at(step == "batch.before" ? "commit.before" : step) {
                    if isDone.increment() > 1 { return }
                    // Not on this thread, which the put might wait for.
                    try? Threads(1) { _ in try store.put([3], for: "k", memoryOnly) }.join()
                }
                var batch = WriteBatch()
                batch.put([2], for: "k")
                batch.put(body(60_000), for: "other")
                try store.write(batch, durability: .durable)
                scope.lift()
                #expect(isDone.value > 0)
                try #expect(store.bytes("k") == [3])
                try store.flush()
                try #expect(store.bytes("k") == [3])
                try finish(store)
            }
        }

        @Test func aLeaseThatIsNotSyncedIsReleased() throws {
            try withDirectory { path in
                let store = try Store(at: path, .testing())
                let scope = FaultScope(under: path.string)
                scope.set(try #require(FaultRule.list("mdb_env_sync=EIO")))
                try #expect(code { _ = try store.lease("k", durability: .durable) } == .io)
                scope.lift()
                try store.put([1], for: "k", PutOptions(durability: .durable))
                try #expect(store.engine.read { try $0.statistics(store.engine.index.leases).entries } == 0)
                try finish(store)
            }
        }

        /// What is put while a removal of content waits for its commit needs no look at every entry under the lock.
        @Test func contentPutInTheSameCommitIsRemovedWithoutAScan() throws {
            try withDirectory { path in
                let store = try Store(at: path, .holding)
                let bytes = body(3000)
                try store.put(bytes, for: "a")
                for number in 0..<1000 { try store.put([1], for: Key("k\(number)")) }
                try store.flush()
                let (hits, rows) = (Counter(), Counter())
                let scope = FaultScope(under: path.string)
                scope.at("mdb_cursor_get") { rows.increment() }
                scope.at("wait.batch") {
                    if hits.increment() > 1 { return }
                    try? Threads(1) { _ in try store.put(bytes, for: "b") }.join()
                }
                try #expect(store.result { $0.remove(digest: Digest.of(bytes)) } == "done")
                scope.lift()
                #expect(hits.value == 2)
                // Once, before.
                #expect(rows.value >= 1000 && rows.value < 2000, "\(rows.value)")
                try #expect(store.keys().count == 1000)
                try finish(store)
            }
        }

        /// What fails in its group takes the others with it no further than it must.
        @Test func aPutThatFailsLeavesABatchAlone() throws {
            try withDirectory { path in
                let store = try Store(
                    at: path, .testing(budget: Budget(bytes: .mebibytes(1))) { $0.commitDelay = .seconds(3600) })
                var pinned = 0
                while try code({
                    try store.put(
                        body(20_000, pinned), for: Key("p\(pinned)"), PutOptions(isPinned: true, durability: .durable))
                }) == nil { pinned += 1 }
                // Pending, and there is no room for it.
                try store.put(body(4000, 900), for: "pending")
                try store.put(body(4000, 901), for: "pending 2")
                try #expect(store.result { $0.change("p0", EntryChange(isPinned: false)) } == "done")
                try #expect(store.attributes(of: "p0")?.isPinned ?? false == false)
                _ = try code { try store.flush() }
                try finish(store)
            }
        }
    }
#endif
