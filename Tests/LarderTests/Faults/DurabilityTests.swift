#if LARDER_FAILPOINTS
    import Failpoints
    import Locks
    import SystemPackage
    import Testing
    import TestSupport

    @testable import Larder

    /// What a call promises to survive power loss is synced before it returns, and a failure is reported with its keys.
    struct DurabilityTests {
        private func rules(_ text: String) throws -> [FaultRule] { try #require(FaultRule.list(text)) }

        @Test func durableChangesAreSyncedBeforeTheyReturn() throws {
            let calls: [(String, (Store, Durability) throws -> Void)] = [
                ("remove", { try $0.remove("k", durability: $1) }),
                ("remove entry", { try $0.remove(#require(try $0.get("k")), durability: $1) }),
                ("remove selection", { try $0.remove(.tag("t"), durability: $1) }),
                ("clear", { try $0.clear(durability: $1) }), ("pin", { try $0.pin("k", durability: $1) }),
                (
                    "unpin",
                    {
                        try $0.pin("k", durability: .relaxed)
                        try $0.unpin("k", durability: $1)
                    }
                ), ("pin tag", { try $0.pin(tag: "t", durability: $1) }),
                (
                    "unpin tag",
                    {
                        try $0.pin(tag: "t", durability: .relaxed)
                        try $0.unpin(tag: "t", durability: $1)
                    }
                ),
                ("touch", { try $0.touch("k", durability: $1) }),
                ("lease", { _ = try $0.lease("k", durability: $1) }),
                ("update", { try $0.update(#require(try $0.get("k")), metadata: [1], durability: $1) }),
                ("flush", { try $0.flush($1) }),
            ]
            for (name, call) in calls {
                try withStore { store in
                    try store.put([1], for: "k", PutOptions(tags: ["t"]))
                    try store.flush()
                    if name == "flush" { try store.put([2], for: "l", PutOptions(durability: .relaxed)) }
                    let scope = FaultScope(under: store.path.string)
                    try call(store, .durable)
                    #expect((scope.hits["mdb_env_sync"] ?? 0) > 0, "\(name)")
                    scope.lift()
                    // Again as it was: what changes nothing has nothing to sync.
                    try store.unpin(tag: "t")
                    try store.clear()
                    try store.put([1], for: "k", PutOptions(tags: ["t"]))
                    try store.flush()
                    let failing = FaultScope(under: store.path.string, try rules("mdb_env_sync=EIO;syncfs=EIO"))
                    if name == "flush" { try store.put([3], for: "l") }
                    try #expect(code { try call(store, .durable) } == .io, "\(name)")
                    failing.lift()
                    _ = try? store.flush()
                }
            }
        }

        @Test func flushSyncsRemovalsAndOnlyWhatIsNew() throws {
            try withStore { store in
                try store.put([1], for: "k")
                try store.flush()
                try store.remove("k")
                let scope = FaultScope(under: store.path.string)
                try store.flush()
                #expect(scope.hits["mdb_env_sync"] == 1)
                try store.flush()
                #expect(scope.hits["mdb_env_sync"] == 1)
                try store.put(body(9000), for: "file")
                try store.flush()
                #expect(scope.hits["fdatasync"] == nil)
                try store.flush(.durable)
                #expect((scope.hits["fdatasync"] ?? 0) > 0)
                scope.lift()
            }
        }

        @Test func aDurableRemovalThatFailsIsToldToItsCaller() throws {
            try withStore { store in
                try store.put([1], for: "k")
                try store.flush()
                let scope = FaultScope(under: store.path.string, try rules("mdb_txn_commit=ENOSPC"))
                try #expect(code { try store.remove("k", durability: .durable) } == .noSpace)
                scope.lift()
                // Not told again, and the entry is still there.
                try store.flush()
                try #expect(store.bytes("k") == [1])
            }
        }

        @Test func aFlushTellsEveryKeyOfEveryCauseToTheStoreThatPutIt() throws {
            let told = Mutex<[LarderError]>([])
            let holding = Configuration.testing {
                $0.commitDelay = .seconds(3600)
                $0.observer = { if case .commitFailed(let error) = $0 { told.withLock { $0.append(error) } } }
            }
            try withDirectory { path in
                let first = try Store(at: path, holding)
                let second = try Store(at: path, holding)
                try first.put([1], for: "removed")
                try first.flush()
                for number in 0..<5 { try first.put([UInt8(number)], for: Key("a\(number)")) }
                try first.remove("removed")
                try second.put([9], for: "b")
                let scope = FaultScope(under: path.string, try rules("mdb_txn_commit=ENOSPC"))
                let error = try #require(throws: LarderError.self) { try first.flush() }
                #expect(error.code == .noSpace && error.keyCount == 6 && error.failures.isEmpty)
                #expect(Set(error.keys) == ["a0", "a1", "a2", "a3", "a4", "removed"])
                #expect(error.description.hasSuffix("and 3 more"))
                let other = try #require(throws: LarderError.self) { try second.flush() }
                #expect(other.keys == ["b"])
                scope.lift()
                let events = told.withLock { $0 }
                // Both stores observe.
                #expect(events.count == 2 && events.allSatisfy { $0.keyCount == 7 })
                // Told once.
                try first.flush()
                try second.close()
                try #expect(first.bytes("removed") == [1])
                try finish(first)
            }
        }

        private func removal(_ key: String) -> PendingRemoval {
            PendingRemoval(key: Key(key), owner: 1, version: nil, isDurable: false, uptime: 0)
        }

        @Test func causesAreTold() {
            var failures = CommitFailures()
            for (number, code) in [LarderError.Code.io, .noSpace, .io].enumerated() {
                let removal = removal("k\(number)")
                removal.fail(LarderError(code, "\(code)"))
                failures.add(removal)
            }
            #expect(failures.errors.map(\.keys) == [["k0", "k2"], ["k1"]])
            let error = failures.error
            #expect(error?.code == .io && error?.keyCount == 3 && error?.failures.count == 2)
            for number in 0..<20_000 {
                let removal = removal("n\(number)")
                removal.fail(LarderError(.io, "io"))
                failures.add(removal)
            }
            #expect(failures.error?.keyCount == 20_003 && failures.error?.keys.count == CommitFailures.keyLimit)
        }

        @Test func closingOneOfTwoStoresTellsItsFailures() throws {
            try withDirectory { path in
                let first = try Store(at: path, .holding)
                let second = try Store(at: path, .holding)
                try second.put([1], for: "k")
                let scope = FaultScope(under: path.string, try rules("mdb_txn_commit=ENOSPC"))
                let error = try #require(throws: LarderError.self) { try second.close() }
                #expect(error.keys == ["k"])
                scope.lift()
                try finish(first)
            }
        }

        @Test func clearingKeepsEntriesInMemoryIfTheDiskRefuses() throws {
            try withStore { store in
                try store.put([1], for: "m", PutOptions(storagePolicy: .memoryOnly))
                try store.put([1], for: "d")
                try store.flush()
                let scope = FaultScope(under: store.path.string, try rules("mdb_txn_commit=ENOSPC"))
                try #expect(code { try store.clear() } == .noSpace)
                scope.lift()
                try #expect(store.bytes("m") == [1] && store.bytes("d") == [1])
                try #expect(store.clear() == 2)
            }
        }

        @Test(arguments: [100, 20_000], ["pwrite=ENOSPC", "link=EIO;rename=EIO", "pwrite=short@1;pwrite=EIO@2+"])
        func anExportThatFailsLeavesNothingAndIsTriedAgain(_ length: Int, _ faults: String) throws {
            try withStore { store in
                try store.put(body(length), for: "k")
                try store.flush()
                try withDirectory { directory in
                    let target = directory.appending("exported")
                    let scope = FaultScope(
                        under: directory.string, try rules(faults + ";clone=EIO;copy_file_range=EIO"))
                    #expect(throws: LarderError.self) { try store.export("k", to: target) }
                    scope.lift()
                    #expect(TestFiles.names(in: directory) == [])
                    try #expect(store.export("k", to: target) == true)
                    try #expect(TestFiles.read(target) == body(length))
                    #expect(TestFiles.names(in: directory) == ["exported"])
                    try #expect(code { try store.export("k", to: target) } == .invalidArgument)
                }
            }
        }

        @Test func aLeaseThatGoesWaitsForNobody() throws {
            try withStore { store in
                var lease: Lease? = try store.lease("k")
                withExtendedLifetime(lease) {}
                // The writer lock is not recursive: waiting for it here would never end.
                let transaction = try store.engine.index.environment.beginWrite()
                lease = nil
                transaction.abort()
                try store.put([1], for: "other")
                try store.flush()
                let rows = try store.engine.read { try $0.statistics(store.engine.index.leases).entries }
                #expect(rows == 0)
            }
        }
    }
#endif
