import SystemPackage
import TestSupport
import Testing

@testable import Larder

@Suite struct OpeningTests {
    @Test func aNewStoreIsLaidOutAsDocumented() throws {
        try withStore { store in
            #expect(
                TestFiles.names(in: store.path)
                    == ["CACHEDIR.TAG", "FORMAT", "blobs", "index", "quarantine", "staging", "trash"])
            #expect(
                TestFiles.names(in: store.path.appending("index")) == ["counters", "data.mdb", "ledger", "lock.mdb"])
            #expect(TestFiles.names(in: store.path.appending("blobs")).count == 256)
            #expect(store.identifier.utf8.count == 32)
            let format = try TestFiles.read(store.path.appending("FORMAT"))
            #expect(String(decoding: format, as: UTF8.self) == "larder\nformat 4\nstore \(store.identifier)\n")
        }
    }

    @Test func missingDirectoriesAboveAreMade() throws {
        try withDirectory { path in
            let store = try Store(at: path.appending("a/b/c"), .testing())
            try store.put([1], for: "k")
            try finish(store)
        }
    }

    @Test func entriesAndIdentityArePresentAfterReopening() throws {
        try withDirectory { path in
            let first = try Store(at: path, .testing())
            let identifier = first.identifier
            try first.put(body(100), for: "small")
            try first.put(body(100_000), for: "large")
            try first.close()
            let second = try Store(at: path, .testing())
            #expect(second.identifier == identifier)
            try #expect(second.bytes("small") == body(100))
            try #expect(second.bytes("large") == body(100_000))
            try finish(second)
        }
    }

    @Test func twoOpensOfAPathShareTheStore() throws {
        try withDirectory { path in
            let first = try Store(at: path, .testing())
            let second = try Store(at: path.appending("../\(path.lastComponent?.string ?? "")"), .testing())
            try first.put([1], for: "k")
            // Not committed yet: only a shared engine can show it.
            try #expect(second.bytes("k") == [1])
            try first.close()
            try #expect(second.bytes("k") == [1])
            try #expect(code { try first.get("k") } == .closed)
            try finish(second)
        }
    }

    @Test func closeIsIdempotentAndGivesTheFilesBack() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            try store.put([1], for: "k")
            try store.close()
            try store.close()
            #expect(TestFiles.names(in: path.appending("staging")) == [])
        }
    }

    @Test func aStoreThatGoesIsClosed() throws {
        try withDirectory { path in
            do {
                let store = try Store(at: path, .testing())
                try store.put([1], for: "k")
            }
            #expect(TestFiles.names(in: path.appending("staging")) == [])
            let again = try Store(at: path, .testing())
            try #expect(again.bytes("k") == [1])
            try finish(again)
        }
    }

    @Test func aCreationThatWasInterruptedIsCompleted() throws {
        try withDirectory { path in
            let first = try Store(at: path, .testing())
            try first.close()
            for name in ["FORMAT", "index/data.mdb", "index/lock.mdb", "index/ledger"] {
                TestFiles.remove(path.appending(name))
            }
            TestFiles.remove(path.appending("blobs/00"))
            let second = try Store(at: path, .testing())
            try second.put(body(100_000), for: "k")
            try finish(second)
        }
    }

    // MARK: Read-only

    @Test func aReadOnlyStoreReadsAndRefusesEveryChange() throws {
        try withDirectory { path in
            let writer = try Store(at: path, .testing())
            try writer.put(body(100), for: "small")
            try writer.put(body(100_000), for: "large")
            try writer.close()
            let before = TestFiles.tree(path)
            let reader = try Store(at: path, .testing { $0.isReadOnly = true })
            try #expect(reader.bytes("small") == body(100))
            try #expect(reader.bytes("large") == body(100_000))
            try #expect(reader.keys() == ["large", "small"])
            try #expect(reader.contains("small") == true)
            try #expect(reader.statistics().entryCount == 2)
            try #expect(reader.statistics().allocatedBytes.bytes == recount(path))
            let refused: [(String, () throws -> Void)] = [
                ("put", { try reader.put([1], for: "k") }), ("large", { try reader.put(body(9000), for: "k") }),
                ("memory", { try reader.put([1], for: "k", PutOptions(storagePolicy: .memoryOnly)) }),
                ("remove", { try reader.remove("small") }), ("removeAll", { try reader.remove(.all) }),
                ("clear", { try reader.clear() }), ("touch", { try reader.touch("small") }),
                ("pin", { try reader.pin("small") }), ("pinTag", { try reader.pin(tag: "t") }),
                ("lease", { _ = try reader.lease("small") }), ("writer", { _ = try reader.writer(for: "k") }),
                ("budget", { try reader.setBudget(.unlimited) }), ("collect", { try reader.collect() }),
                ("session", { try reader.endSession() }), ("repair", { _ = try reader.check(repair: true) }),
            ]
            for (name, call) in refused { try #expect(code(call) == .readOnly, "\(name)") }
            try #expect(reader.check().isClean == true)
            try reader.close()
            #expect(TestFiles.tree(path) == before)
        }
    }

    @Test func readOnlyAndWritingDoNotMixInOneProcess() throws {
        try withStore { store in
            try #expect(code { try Store(at: store.path, .testing { $0.isReadOnly = true }) } == .locked)
            try store.put([1], for: "k")
        }
    }

    @Test func aReadOnlyOpenMakesNothing() throws {
        try withDirectory { path in
            let configuration = Configuration.testing { $0.isReadOnly = true }
            try #expect(code { try Store(at: path.appending("none"), configuration) } == .invalidArgument)
            try #expect(code { try Store(at: path, configuration) } == .invalidArgument)
            #expect(TestFiles.names(in: path) == [])
        }
    }

    // MARK: Default and shared

    @Test func theDefaultPathIsInTheUsersCacheDirectory() {
        #expect(Store.defaultPath.isAbsolute)
        #expect(Store.defaultPath.lastComponent == "larder")
    }

    @Test func theSharedStoreIsWhatTheProgramSets() throws {
        #expect(Store.shared == nil)
        try withStore { store in
            Store.shared = store
            #expect(Store.shared === store)
            Store.shared = nil
            #expect(Store.shared == nil)
            try store.put([1], for: "k")
        }
    }

    // MARK: Ephemeral

    @Test func anEphemeralStoreLeavesNothing() throws {
        let store = try Store.ephemeral(.testing())
        let path = store.path
        try store.put(body(100_000), for: "k")
        try #expect(store.bytes("k") == body(100_000))
        try verify(store)
        try store.close()
        #expect(!TestFiles.exists(path))
    }

    @Test func anEphemeralStoreThatDiedIsSweptAndALivingOneIsNot() throws {
        let living = try Store.ephemeral(.testing())
        // What a crash leaves: the directory of a store, made some time ago, that no process has locked.
        // Under its name when it is whole: the sweep of another test may come at any time.
        let dead = Ephemeral.newPath()
        let made = Ephemeral.parent.appending("larder-made-\(dead.lastComponent?.string ?? "")")
        let store = try Store(at: made, .testing())
        try store.put(body(100_000), for: "k")
        try store.close()
        try #require(rename(made.string, dead.string) == 0)
        // A cleaner of temporary files leaves no file of a store alone that lies idle.
        for name in TestFiles.names(in: living.path.appending("staging")) {
            unlink(living.path.appending("staging").appending(name).string)
        }
        try #require(setModificationTime(of: living.path, secondsAgo: 3600))
        let next = try Store.ephemeral(.testing())
        // Another process, or another test, may be the one that sweeps it, and not be done.
        blockWhile { TestFiles.exists(dead) }
        #expect(TestFiles.exists(living.path))
        try living.put([1], for: "k")
        try living.close()
        #expect(!TestFiles.exists(living.path))
        try next.close()
    }

    @Test func anEphemeralStoreOfAnotherProcessIsRefused() throws {
        let store = try Store.ephemeral(.testing())
        // Past the registry: as another process would.
        let error = #expect(throws: LarderError.self) { try Opening.open(store.path, .testing()) }
        #expect(error?.code == .locked)
        #expect(error?.message.contains("ephemeral store of another process") ?? false)
        // The same process shares it, and reading needs no lock.
        let second = try Store(at: store.path, .testing())
        try second.put([1], for: "k")
        try second.close()
        try #expect(store.bytes("k") == [1])
        try store.close()
        #expect(!TestFiles.exists(store.path))
    }

    /// Apps and extensions have little address space: a small store takes little, and more only when it grows.
    @Test(.disabled(if: Sanitizer.isOn)) func theMapOfTheIndexFollowsTheBudget() throws {
        func mapSize(_ store: Store) throws -> Int { try store.engine.index.environment.mapSize() }
        try withDirectory { path in
            for (budget, size) in [(2, 64), (100, 200), (8_192, 16_384)] as [(Int64, Int)] {
                let place = path.appending("\(budget)")
                let store = try Store(at: place, .testing(budget: Budget(bytes: .mebibytes(budget))))
                try #expect(mapSize(store) == size << 20)
                try store.close()
            }
            let store = try Store(at: path.appending("2"), .testing(budget: Budget(bytes: .mebibytes(2))))
            try store.setBudget(Budget(bytes: .mebibytes(200)))
            for number in 0..<12_000 { try store.put(body(4_000, number), for: Key("k\(number)")) }
            try store.flush()
            try #expect(mapSize(store) >= 128 << 20)
            try #expect(store.bytes("k11999") == body(4_000, 11_999))
            try #expect(store.check().isClean)
            try store.close()
        }
    }

    @Test func ephemeralStoresOfManyThreadsDoNotSweepEachOther() throws {
        try Threads.run(8) { _ in
            for _ in 0..<5 {
                let store = try Store.ephemeral(.testing())
                try store.put(body(9000), for: "k")
                try store.flush()
                try #expect(store.bytes("k") == body(9000))
                try store.close()
                #expect(!TestFiles.exists(store.path))
            }
        }
    }
}

/// utimensat(2).
private func setModificationTime(of path: FilePath, secondsAgo: Int) -> Bool {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    let then = timespec(tv_sec: now.tv_sec - secondsAgo, tv_nsec: 0)
    return utimensat(AT_FDCWD, path.string, [then, then], 0) == 0
}
