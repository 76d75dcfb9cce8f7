#if LARDER_FAILPOINTS
    import Failpoints
    import SystemPackage
    import TestSupport
    import Testing

    @testable import Larder

    /// What a store does in the background: expired entries, checkpoints.
    @Suite struct MaintenanceTests {
        private func withFaults(
            clock: TestClock = TestClock(), _ change: (inout Configuration) -> Void = { _ in },
            _ body: (Store, FaultScope, Events) throws -> Void
        ) throws {
            try withDirectory { directory in
                let events = Events()
                let configuration = Configuration.testing(clock: clock) {
                    $0.observer = { events.note($0) }
                    $0.expiredRetention = .seconds(60)
                    change(&$0)
                }
                let store = try Store(at: directory, configuration)
                let scope = FaultScope(under: directory.string)
                try body(store, scope, events)
                scope.lift()
                try finish(store)
            }
        }

        private func rules(_ text: String) throws -> [FaultRule] { try #require(FaultRule.list(text)) }

        // MARK: Expired entries

        @Test func expiredEntriesGoInSlicesWithoutABudget() throws {
            let clock = TestClock()
            try withFaults(clock: clock) { store, scope, events in
                let brief = Lifetime.duration(.seconds(10))
                for number in 0..<700 { try store.put([1], for: Key("k\(number)"), PutOptions(lifetime: brief)) }
                try store.put([1], for: "pinned", PutOptions(lifetime: brief, isPinned: true))
                try store.put([1], for: "stays")
                try store.flush()
                // Expired, but kept for those who can validate them.
                clock.advance(by: .seconds(65))
                for _ in 0..<5 { store.pass() }
                try #expect(store.statistics().entryCount == 702)
                let before = scope.hits["mdb_txn_commit"] ?? 0
                for _ in 0..<10 {
                    clock.advance(by: .seconds(2))
                    store.pass()
                }
                try #expect(Set(store.keys()) == ["pinned", "stays"])
                // 256 at a time.
                #expect((scope.hits["mdb_txn_commit"] ?? 0) - before == 3)
                #expect(events.expired.count == 700)
                try #expect(store.statistics().displacedCount == 700)
            }
        }

        /// Store time runs ahead then. Callers who judge by the wall clock still want what they put with a moment of
        /// that.
        @Test func nothingIsRemovedForAWallClockThatWasSetBack() throws {
            let clock = TestClock()
            try withFaults(clock: clock) { store, _, _ in
                clock.jump(by: .seconds(1_000_000))
                try store.put([1], for: "before")
                clock.jump(by: .seconds(-1_000_000))
                try store.put([1], for: "k", PutOptions(lifetime: .until(clock.now() + .seconds(100))))
                try store.flush()
                for _ in 0..<5 {
                    clock.advance(by: .seconds(2))
                    store.pass()
                }
                try #expect(store.get("k", includingExpired: true) != nil)
                clock.advance(by: .seconds(200))
                // What expired is removed at the end of a pass: the second one begins after that.
                store.pass()
                store.pass()
                try #expect(store.get("k", includingExpired: true) == nil)
            }
        }

        @Test func aLookForExpiredEntriesTakesNoWriterLock() throws {
            let clock = TestClock()
            try withFaults(clock: clock) { store, scope, _ in
                for number in 0..<10 {
                    try store.put([1], for: Key("k\(number)"), PutOptions(lifetime: .duration(.seconds(100_000))))
                }
                try store.flush()
                store.pass()
                let before = scope.hits["mdb_txn_begin.write"]
                for _ in 0..<100 {
                    clock.advance(by: .seconds(2))
                    store.pass()
                }
                #expect(scope.hits["mdb_txn_begin.write"] == before)
            }
        }

        @Test func removalOfExpiredEntriesThatFailsIsToldOnce() throws {
            let clock = TestClock()
            try withFaults(clock: clock) { store, scope, events in
                try store.put([1], for: "k", PutOptions(lifetime: .duration(.seconds(1))))
                try store.flush()
                scope.set(try rules("mdb_txn_commit=EIO"))
                for _ in 0..<100 {
                    clock.advance(by: .seconds(2))
                    store.pass()
                }
                #expect(events.failing(.expiry) == 1)
                #expect((1...30).contains(scope.injected), "\(scope.injected)")
                scope.lift()
                clock.advance(by: .seconds(10))
                store.pass()
                store.pass()
                #expect(events.recovered(.expiry) == 1)
                try #expect(store.statistics().entryCount == 0)
            }
        }

        // MARK: Checkpoints

        private func unpublished(_ store: Store) throws -> Int {
            try store.engine.read { try $0.statistics(store.engine.index.unpublished).entries }
        }

        @Test func aCheckpointSyncsTheFilesOfTheStoreAndNoOthers() throws {
            try withFaults { store, scope, _ in
                for number in 0..<10 { try store.put(body(9000, number), for: Key("k\(number)")) }
                try store.flush()
                try #expect(unpublished(store) == 10)
                scope.set([])
                try store.checkpoint()
                #expect(scope.hits["syncfs"] == nil)
                #expect(scope.hits["fdatasync"] == 10)
                #expect((1...10).contains(scope.hits["fsync"] ?? 0))
                try #expect(unpublished(store) == 0)
                let state = try store.engine.state()
                #expect(state.syncedEpoch == state.epoch - 1)
            }
        }

        @Test func aCheckpointOfVeryManyFilesIsOneCall() throws {
            try withFaults({ $0.syncedSingly = 20 }) { store, scope, _ in
                for number in 0...20 { try store.put(body(4100, number), for: Key("k\(number)")) }
                try store.flush()
                scope.set([])
                try store.checkpoint()
                #expect(scope.hits["syncfs"] == 1)
                #expect(scope.hits["fdatasync"] == nil)
                try #expect(unpublished(store) == 0)
            }
        }

        /// As for a removal that fails at its commit: the file is away when the checkpoint looks for it, and comes
        /// back.
        @Test(arguments: [0, 20]) func aCheckpointFindsAFileThatIsInTrash(syncedSingly: Int) throws {
            try withFaults({ $0.syncedSingly = syncedSingly }) { store, scope, _ in
                try store.put(body(9000, 1), for: "k")
                try store.flush()
                let blob = store.blobPath(Digest.of(body(9000, 1)))
                let trash = store.path.appending("trash").appending(
                    Layout.trash(try #require(store.engine.writing).staged.nextToken(), Digest.of(body(9000, 1))))
                let isMoved = Counter()
                scope.at("checkpoint.epoch-begun") {
                    if isMoved.increment() == 1 { #expect(rename(blob.string, trash.string) == 0) }
                }
                try store.checkpoint()
                try #expect(unpublished(store) == 0)
                try #expect(store.bytes("k") == body(9000, 1))
                #expect(TestFiles.exists(blob) && !TestFiles.exists(trash))
            }
        }

        /// As the scrubber does with a file that matches its digest.
        @Test func aFileThatGetsALaterEpochDuringACheckpointIsLeftToTheNext() throws {
            try withFaults { store, scope, _ in
                try store.put(body(9000, 1), for: "k")
                try store.flush()
                let engine = store.engine
                scope.at("checkpoint.synced") {
                    try? engine.mutate(.housekeeping) { mutation in
                        let value = try mutation.reading.withCursor(engine.index.blobs) { try $0.first()?.value }
                        guard let head = value.flatMap(BlobRecord.init) else { return }
                        var cleared = head
                        cleared.epoch = mutation.state.epoch
                        try mutation.blobs.rewrite(1, head, cleared)
                    }
                }
                try store.checkpoint()
                scope.lift()
                try #expect(unpublished(store) == 1)
                try store.checkpoint()
                try #expect(unpublished(store) == 0)
            }
        }

        @Test func aCheckpointEndsThoughAFileIsGone() throws {
            try withFaults { store, scope, events in
                for number in 0..<3 { try store.put(body(9000, number), for: Key("k\(number)")) }
                try store.flush()
                TestFiles.remove(store.blobPath(Digest.of(body(9000, 1))))
                try store.checkpoint()
                try #expect(unpublished(store) == 0)
                try #expect(Set(store.keys()) == ["k0", "k2"])
                #expect(events.failing(.checkpoint) == 0)
            }
        }

        @Test func aDurablePutDoesNotWaitForACheckpoint() throws {
            let clock = TestClock()
            try withFaults(clock: clock) { store, scope, _ in
                try store.put(body(9000), for: "file")
                try store.flush()
                scope.set(try rules("fdatasync=stall@1;syncfs=stall@1"))
                clock.advance(by: .seconds(31))
                store.pass()
                scope.waitUntilStalled()
                try store.put([1], for: "durable", PutOptions(durability: .durable))
                try store.put(body(9000, 2), for: "durable file", PutOptions(durability: .durable))
                try #expect(unpublished(store) == 2)
                scope.lift()
                // The one that was committed meanwhile waits for the next checkpoint.
                while try unpublished(store) == 2 { store.pass() }
                try #expect(unpublished(store) == 1)
            }
        }

        @Test func aCheckpointThatFailsIsToldOnceAndMadeAgain() throws {
            let clock = TestClock()
            try withFaults(clock: clock) { store, scope, events in
                try store.put(body(9000), for: "file")
                try store.flush()
                scope.set(try rules("fdatasync=EIO"))
                for number in 1...5 {
                    clock.advance(by: .seconds(31))
                    store.pass()
                    while store.engine.context.health.failures.first?.count != number { store.pass() }
                }
                #expect(events.failing(.checkpoint) == 1)
                scope.lift()
                clock.advance(by: .seconds(31))
                while events.recovered(.checkpoint) == 0 { store.pass() }
                try #expect(unpublished(store) == 0)
            }
        }

        @Test func closingEndsACheckpointThatIsUnderWay() throws {
            try withDirectory { directory in
                let clock = TestClock()
                let store = try Store(at: directory, .testing(clock: clock))
                let scope = FaultScope(under: directory.string)
                for number in 0..<20 { try store.put(body(9000, number), for: Key("k\(number)")) }
                try store.flush()
                scope.set(try rules("fdatasync=stall@1"))
                clock.advance(by: .seconds(31))
                store.pass()
                scope.waitUntilStalled()
                let closing = Threads(1) { _ in try store.close() }
                while store.engine.writing?.maintenance.isClosed == false { store.pass() }
                scope.lift()
                try closing.join()
                // The one that was under way, and those of the checkpoint with which the last store closes.
                #expect(scope.hits["fdatasync"] == 21)
                try finish(Store(at: directory, .testing()))
            }
        }

        @Test func anOverwriteWithDurabilitySyncsTheIndexAsOftenAsAFirstPut() throws {
            try withFaults { store, scope, _ in
                let durable = PutOptions(durability: .durable)
                var hits: [[String: Int]] = []
                for (key, seed) in [("warm", 0), ("k", 1), ("k", 2)] as [(Key, Int)] {
                    scope.set([])
                    try store.put(body(9000, seed), for: key, durable)
                    hits.append(scope.hits.filter { ["mdb_env_sync", "fdatasync", "fsync"].contains($0.key) })
                }
                #expect(hits[1] == ["mdb_env_sync": 1, "fdatasync": 1, "fsync": 1])
                #expect(hits[2] == hits[1])
            }
        }

        // MARK: Files

        @Test func aFileThatIsDisplacedInItsOwnTransactionIsGoneThoughAnOrphanHadItsName() throws {
            try withFaults(clock: TestClock(), { $0.commitDelay = .seconds(3600) }) { store, _, _ in
                try store.setBudget(Budget(entries: 1))
                let orphan = store.blobPath(Digest.of(body(9000, 1)))
                try TestFiles.write(body(5000, 3), to: orphan)
                try store.put(body(9000, 1), for: "first")
                try store.put(body(9000, 2), for: "second")
                try store.flush()
                try #expect(store.keys() == ["second"])
                #expect(store.stagedFiles == [])
                #expect(!TestFiles.exists(orphan))
                store.engine.writing?.reaper.drain()
                #expect(store.engine.writing?.ledger.own == 0)
            }
        }

        // MARK: Quarantine

        /// Damages the file of an entry and has the store find it.
        private func damage(_ key: Key, _ seed: Int, in store: Store) throws {
            try store.put(body(9000, seed), for: key)
            try store.flush()
            try TestFiles.flipByte(of: store.blobPath(Digest.of(body(9000, seed))), at: 5)
            try #expect(store.get(key) == nil)
        }

        private func quarantined(_ store: Store) -> [String] { TestFiles.names(in: store.path.appending("quarantine")) }

        @Test func quarantineKeepsWhatCameLastAndNoMoreThanItsPart() throws {
            try withFaults(clock: TestClock(), { $0.verification = .always }) { store, scope, _ in
                try store.setBudget(Budget(bytes: .mebibytes(1)))
                for number in 0..<10 { try damage(Key("k\(number)"), number, in: store) }
                // 12 KiB each, of 32.
                let kept = Set(quarantined(store))
                #expect(kept.count == 2)
                // Not every file system tells moments apart that follow each other at once.
                #expect(kept.isSubset(of: Set((5..<10).map { Digest.of(body(9000, $0)).hexadecimal })))
                #expect((store.engine.writing?.ledger).map { QuarantineBytes($0).count } == 24 << 10)
                // By the rules and not by hand, but by hand, too.
                for name in kept { TestFiles.remove(store.path.appending("quarantine").appending(name)) }
                try store.collect()
                #expect((store.engine.writing?.ledger).map { QuarantineBytes($0).count } == 0)
            }
        }

        @Test func whatAnotherProcessTrimsIsTakenOffOnce() throws {
            try withFaults(clock: TestClock(), { $0.verification = .always }) { store, scope, _ in
                try damage("k", 1, in: store)
                let ledger = try #require(store.engine.writing).ledger
                let counted = QuarantineBytes(ledger).count
                #expect(counted >= 9000)
                let earlier = store.path.appending("quarantine").appending(Digest.of(body(9000, 1)).hexadecimal)
                // Between the look at the earlier file of that name and the move of the next one.
                try store.put(body(9000, 1), for: "k")
                try store.flush()
                try TestFiles.flipByte(of: store.blobPath(Digest.of(body(9000, 1))), at: 5)
                scope.at("rename") {
                    guard TestFiles.exists(earlier) else { return }
                    TestFiles.remove(earlier)
                    QuarantineBytes(ledger).add(-counted)
                }
                try #expect(store.get("k") == nil)
                scope.lift()
                #expect(QuarantineBytes(ledger).count == counted)
            }
        }

        @Test func quarantineGoesBeforeAPutFails() throws {
            try withFaults(clock: TestClock(), { $0.verification = .always }) { store, _, _ in
                for number in 0..<40 { try damage(Key("k\(number)"), number, in: store) }
                #expect(quarantined(store).count == 40)
                for number in 0..<8 {
                    try store.put(body(60_000, 100 + number), for: Key("p\(number)"), PutOptions(isPinned: true))
                }
                try store.remove(.prefix("k"))
                _ = try code { try store.setBudget(Budget(bytes: .mebibytes(1))) }
                for number in 0..<2 {
                    try store.put(body(60_000, 200 + number), for: Key("q\(number)"), PutOptions(isPinned: true))
                }
                #expect(quarantined(store).isEmpty)
                #expect(recount(store.path) <= 1 << 20)
            }
        }
    }
#endif
