#if LARDER_FAILPOINTS
    import Failpoints
    import SystemPackage
    import Locks
    import TestSupport
    import Testing

    @testable import Larder

    /// Writers of bodies in progress whose steps fail, or meet other work at a bad moment.
    struct PartialFailureTests {
        private let bytes = body(600_000)

        /// A follower that checks that the body is still there must not take a commit for a removal.
        @Test func aCommitThatTheWriterHasNotHeardOfIsNoRemoval() async throws {
            try await withDirectory { path in
                let store = try Store(at: path, .testing())
                let writer = try await store.perform { try $0.partialWriter(for: "k", total: 600_000) }
                try await writer.write(bytes, at: 0)
                let partials = try #require(store.engine.writing?.partials)
                let work = try #require(partials.find("k"))
                let place = try #require(work.place)
                let (gate, scope) = (Gate(), FaultScope(under: path.string))
                scope.at("commit.after") { gate.pass() }
                let committing = Threads(1) { _ in try writer.commit() }
                await gate.arrival()
                scope.at("wait.commit") { gate.open() }
                #expect(try partials.endUnlessStanding(work, place))
                gate.open()
                try committing.join()
                #expect(work.ending == .committed)
                scope.lift()
                try finish(store)
            }
        }

        enum End: CaseIterable { case suspended, dropped, droppedAfterCommit, cancelled }

        @Test(arguments: End.allCases)
        func aLastStepThatFailedIsMadeUpFor(_ end: End) throws {
            try withDirectory { path in
                let clock = TestClock()
                let store = try Store(at: path, .testing(clock: clock) { $0.commitDelay = .seconds(3600) })
                let scope = FaultScope(under: path.string)
                let ledger = try #require(store.engine.writing?.ledger)
                var writer: PartialWriter? = try store.partialWriter(for: "k", total: 600_000)
                try writer?.write(bytes[..<300_000], at: 0)
                if end == .droppedAfterCommit { try writer?.write(bytes[300_000...], at: 300_000) }
                scope.set(try #require(FaultRule.list("mdb_txn_commit=EIO")))
                switch end {
                case .suspended: try #expect(code { try writer?.suspend() } == .io)
                case .dropped: break
                case .droppedAfterCommit: try #expect(code { try writer?.commit() } == .io)
                case .cancelled: writer?.cancel()
                }
                writer = nil
                store.pass()
                #expect(ledger.own > 0)
                scope.lift()
                // It is tried again, with growing pauses.
                for _ in 0..<40 {
                    clock.advance(by: .seconds(20))
                    store.pass()
                }
                #expect(ledger.own == 0)
                let left = try #require(try store.partialBody(of: "k"))
                #expect(!left.isBeingWritten)
                #expect(left.ranges == [0..<(end == .droppedAfterCommit ? 600_000 : 300_000)])
                try finish(store)
            }
        }

        /// The checkpoint sees the file where its earlier writer left it, a moment before it gets its new name.
        @Test func aCheckpointDuringATakeoverKeepsTheRowOfTheFile() throws {
            try withDirectory { path in
                let store = try Store(at: path, .testing())
                let first = try store.partialWriter(for: "k", total: 600_000)
                try first.write(bytes[..<300_000], at: 0)
                try first.suspend()
                let scope = FaultScope(under: path.string)
                scope.at("partial.taken") {
                    #expect(throws: Never.self) { try store.engine.writing?.checkpoints.make() }
                }
                let second = try store.partialWriter(for: "k")
                #expect(scope.hits["partial.taken"] == 1)
                scope.lift()
                let found = try #require(try store.engine.partials.look("k", nil))
                // Without it the sweep that follows a kill removes the file.
                let index = store.engine.index
                let row = try store.engine.read { try $0.get(index.unpublished, found.head.token.indexKey) != nil }
                #expect(row)
                #expect(second.ranges == [0..<300_000])
                second.cancel()
                try finish(store)
            }
        }

        /// Two calls that waited for the digest would hold both threads of the pool.
        @Test func callsThatWaitForADigestHoldNoThread() async throws {
            try await withDirectory { path in
                let slow = try Store(at: path.appending("slow"), .testing())
                let quick = try Store(at: path.appending("quick"), .testing())
                let writer = try await slow.perform { try $0.partialWriter(for: "k", total: 600_000) }
                try await writer.write(bytes[300_000...], at: 300_000)
                try await writer.write(bytes[..<300_000], at: 0)
                let scope = FaultScope(under: path.appending("slow").string)
                let gate = Gate()
                scope.at("pread") { gate.pass() }
                let commit = Task { try await writer.commit() }
                await gate.arrival()
                let calls = (0..<4).map { number in
                    Task {
                        if number == 3 { return await writer.cancel() }
                        // Over, once it is its turn.
                        _ = try? await writer.write([1], at: 0)
                    }
                }
                // Would puts wait for the digest of a body of another store, this never ended.
                for number in 0..<50 { try await quick.put(body(20_000, number), for: "k") }
                gate.open()
                try await #expect(commit.value == Digest.of(bytes))
                for call in calls { await call.value }
                scope.lift()
                try #expect(slow.bytes("k") == bytes)
                try finish(slow)
                try finish(quick)
            }
        }
    }
#endif
