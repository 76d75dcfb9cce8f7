#if LARDER_FAILPOINTS
    import Failpoints
    import Locks
    import SystemPackage
    import TestSupport
    import Testing

    @testable import Larder

    /// What the observer was notified of.
    final class Events: Sendable {
        private let list = Mutex<[StoreEvent]>([])

        func note(_ event: StoreEvent) { list.withLock { $0.append(event) } }

        private func count(_ isCounted: (StoreEvent) -> Bool) -> Int {
            list.withLock { $0.reduce(0) { isCounted($1) ? $0 + 1 : $0 } }
        }

        func failing(_ work: StandingFailure.Work) -> Int {
            count { if case .failing(work, _) = $0 { true } else { false } }
        }

        func recovered(_ work: StandingFailure.Work) -> Int {
            count { if case .recovered(work) = $0 { true } else { false } }
        }

        var commitFailed: Int { count { if case .commitFailed = $0 { true } else { false } } }

        var rowsRemoved: Int {
            list.withLock { $0.reduce(0) { if case .rowsRemoved(let count) = $1 { $0 + count } else { $0 } } }
        }

        var expired: [Key] {
            list.withLock {
                $0.compactMap { if case .displaced(let key, _, .expired) = $0 { key } else { nil } }
            }
        }
    }

    extension Store {
        var isDisplacing: Bool { engine.writing?.watermarks.isDisplacing ?? false }

        /// One pass of the committer, with nothing to commit.
        func pass() {
            guard let pending = engine.writing?.pending else { return }
            pending.wait(for: pending.requestFlush(force: true))
        }
    }

    /// The committer under failures that last.
    @Suite struct CommitterTests {
        private func withFaults(
            clock: TestClock = TestClock(), _ change: (inout Configuration) -> Void = { _ in },
            _ body: (Store, FaultScope, Events) throws -> Void
        ) throws {
            try withDirectory { directory in
                let events = Events()
                let store = try Store(
                    at: directory,
                    .testing(clock: clock) {
                        $0.observer = { events.note($0) }
                        $0.expiredRetention = .seconds(60)
                        change(&$0)
                    })
                let scope = FaultScope(under: directory.string)
                try body(store, scope, events)
                scope.lift()
                try finish(store)
            }
        }

        private func rules(_ text: String) throws -> [FaultRule] { try #require(FaultRule.list(text)) }

        @Test(arguments: ["mdb_txn_commit=EIO", "mdb_txn_begin.write=EROFS", "mdb_cursor_del=MDB_CORRUPTED"])
        func displacementThatFailsForGoodIsToldOnceAndTriedEverLessOften(_ fault: String) throws {
            let clock = TestClock()
            try withFaults(clock: clock, { $0.watermarks = Configuration.Watermarks(high: 0.1, low: 0.05) }) {
                store, scope, events in
                for number in 0..<400 { try store.put(body(3000, number), for: Key("k\(number)")) }
                try store.flush()
                try store.engine.mutate(.housekeeping) { $0.state.budget = Budget(bytes: .mebibytes(4)) }
                scope.set(try rules(fault))
                store.engine.writing?.watermarks.startDisplacing()
                for _ in 0..<200 { store.pass() }
                #expect((1...2).contains(scope.injected), "\(scope.injected)")
                #expect(events.failing(.displacement) == 1)
                // An hour of failures costs a few hundred tries, and is reported only once.
                for _ in 0..<3600 {
                    clock.advance(by: .seconds(1))
                    store.pass()
                }
                #expect((300...420).contains(scope.injected), "\(scope.injected)")
                #expect(events.failing(.displacement) == 1)
                let failure = try #require(store.engine.context.health.failures.first)
                #expect(failure.work == .displacement && failure.count == scope.injected)
                #expect(store.isDisplacing)
                // It continues by itself when the fault is lifted.
                scope.lift()
                clock.advance(by: .seconds(10))
                for _ in 0..<1000 where store.isDisplacing { store.pass() }
                #expect(!store.isDisplacing)
                #expect(events.recovered(.displacement) == 1)
                try #expect(store.statistics().failures == [])
                try #expect(store.statistics().displacedCount > 100)
            }
        }

        @Test func aBatchIsCommittedThoughDisplacementFails() throws {
            try withFaults({ $0.watermarks = Configuration.Watermarks(high: 0.1, low: 0.05) }) { store, scope, events in
                for number in 0..<40 { try store.put(body(9000, number), for: Key("k\(number)")) }
                try store.flush()
                try store.engine.mutate(.housekeeping) { $0.state.budget = Budget(bytes: .mebibytes(4)) }
                // Body files cannot be moved to trash/.
                scope.set(try rules("rename=EROFS"))
                store.engine.writing?.watermarks.startDisplacing()
                for number in 0..<20 { try store.put([1], for: Key("new\(number)"), PutOptions(durability: .durable)) }
                #expect(events.failing(.displacement) == 1)
                #expect(events.commitFailed == 0)
                #expect(scope.injected < 5, "\(scope.injected)")
                store.engine.writing?.watermarks.endDisplacing()
            }
        }

        @Test func commitsThatFailForGoodAreToldOnceAndRecoveryIsToldToo() throws {
            try withFaults { store, scope, events in
                scope.set(try rules("mdb_txn_commit=EIO"))
                for number in 0..<20 {
                    try store.put([1], for: Key("k\(number)"))
                    try #expect(code { try store.flush() } == .io)
                }
                #expect(events.failing(.commit) == 1)
                // What was lost is reported each time.
                #expect(events.commitFailed == 20)
                let failure = try #require(store.statistics().failures.first)
                #expect(failure.work == .commit && failure.code == .io && failure.count == 20)
                scope.lift()
                try store.put([1], for: "k", PutOptions(durability: .durable))
                #expect(events.recovered(.commit) == 1)
                try #expect(store.statistics().failures == [])
            }
        }

        @Test func aLargeBatchOnAFailingDiskIsGivenUpSoon() throws {
            try withFaults({ $0.commitDelay = .seconds(3600) }) { store, scope, _ in
                for number in 0..<500 { try store.put([1], for: Key("k\(number)")) }
                scope.set(try rules("mdb_txn_commit=EIO"))
                try #expect(code { try store.flush() } == .io)
                #expect(scope.injected <= 9, "\(scope.injected)")
                try #expect(store.get("k499") == nil)
            }
        }

        // MARK: Damaged rows

        @Test(arguments: [false, true])
        func aRowOfTheOrderThatLeadsNowhereIsRemovedAndTold(_ hasLease: Bool) throws {
            try withFaults { store, _, events in
                for number in 0..<10 { try store.put([1], for: Key("k\(number)")) }
                try store.flush()
                let index = store.engine.index
                try index.environment.write { transaction in
                    try transaction.put(index.recency, 0, Array("nothing".utf8))
                    // The youngest entry, at the place of the oldest.
                    try transaction.put(index.recency, 1 << 40, Array("k0".utf8))
                    try transaction.put(index.expiry, Index.expiryKey(5, id: 9), Array("k9".utf8))
                }
                let lease = hasLease ? try store.lease("k1", for: .seconds(1000)) : nil
                try store.setBudget(Budget(entries: 5))
                for number in 10..<20 {
                    try store.put([1], for: Key("k\(number)"), PutOptions(durability: .durable))
                }
                lease?.release()
                _ = try index.environment.write { try $0.delete(index.recency, 1 << 40) }
                #expect(events.rowsRemoved == 2)
                try #expect(store.get("k19") != nil)
                try #expect(store.statistics().entryCount == 5)
            }
        }

        // MARK: Batches that fail

        /// Of what is committed one by one, files come first, and hold nothing that their displacement frees.
        @Test func filesOfABatchThatFailedComeFirstAndAreClosed() throws {
            try withFaults({ $0.commitDelay = .seconds(3600) }) { store, scope, _ in
                let pending = try #require(store.engine.writing?.pending)
                let content = body(90_000)
                try store.put([1], for: "before")
                try store.put(content, for: "file")
                try store.put([2], for: "after")
                guard case .put(let put) = pending.lookup("file", use: nil) else {
                    Issue.record("it is not pending")
                    return
                }
                try #expect(store.get("file")?.body.bytes() == content)
                #expect(put.openFile != nil)
                scope.set(try rules("mdb_txn_commit=EIO@1;mdb_txn_commit=stall@3"))
                _ = pending.requestFlush()
                scope.waitUntilStalled()
                #expect(pending.lookup("file", use: nil) == nil && put.openFile == nil)
                #expect(pending.lookup("before", use: nil) != nil && pending.lookup("after", use: nil) != nil)
                try #expect(store.get("file")?.body.bytes() == content)
                try #expect(store.get(["before", "file"]).map { try $0?.body.bytes() } == [[1], content])
                scope.lift()
                try store.flush()
                try #expect(store.keys().count == 3)
            }
        }

        // MARK: Touches

        /// Between being taken and being written they are in neither place: who wants exact figures waits for them.
        @Test func touchesThatAreBeingWrittenAreWaitedFor() throws {
            try withFaults({ $0.commitDelay = .seconds(3600) }) { store, _, _ in
                let buffer = try #require(store.engine.writing?.touchBuffer)
                try store.put([1], for: "k")
                try store.flush()
                _ = try store.get("k")
                let touches = buffer.drain(at: store.engine.uptime.uptime())
                #expect(touches.count == 1 && buffer.isDirty)
                buffer.noteWritten(touches.count, in: 0)
                #expect(!buffer.isDirty)
                #expect(buffer.drain(at: store.engine.uptime.uptime()).isEmpty && !buffer.isDirty)
            }
        }

        @Test func hitsOnACommittingBatchGoWithTheNextOne() throws {
            try withFaults({ $0.commitDelay = .zero }) { store, scope, _ in
                try store.put([0], for: "first", PutOptions(durability: .durable))
                scope.set(try rules("commit.before=stall@1"))
                try store.put([1], for: "k")
                scope.waitUntilStalled()
                for _ in 0..<3 { _ = try store.get("k") }
                // A touch is not a reason for a batch: nothing is due.
                #expect(store.engine.writing?.pending.isDue == false)
                try store.put([2], for: "other")
                scope.lift()
                try store.flush()
                #expect(scope.hits["mdb_txn_commit"] == 2)
                let attributes = try #require(try store.attributes(of: "k"))
                #expect(attributes.hitCount == 3)
                #expect(scope.hits["mdb_txn_commit"] == 2)
            }
        }
    }
#endif
