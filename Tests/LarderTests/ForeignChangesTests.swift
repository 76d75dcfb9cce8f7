import Logging
import Locks
import SystemPackage
import TestSupport
import Testing

@testable import Larder

#if LARDER_FAILPOINTS
    import Failpoints
#endif

/// What other programs do to the directory of a store: cleaners, backups, links, files of other kinds.
@Suite struct ForeignChangesTests {
    private static let durable = PutOptions(durability: .durable)

    private func fill(_ path: FilePath) throws {
        let store = try Store(at: path, .testing())
        for number in 0..<6 { try store.put(body(9000, number), for: Key("k\(number)"), Self.durable) }
        try store.close()
    }

    // MARK: Cleaners

    @Test func aLockFileRemovedUnderAnOpenStoreIsRefusedToTheNext() throws {
        try withDirectory { directory in
            let path = directory.appending("store")
            try fill(path)
            let worker = try Worker(store: path.string, mode: "idle", seed: 1, count: 1)
            worker.waitUntilReady()
            TestFiles.remove(path.appending("index/lock.mdb"))
            try #expect(code { try Store(at: path, .testing()) } == .locked)
            try #expect(code { try Store(at: path, .testing { $0.isReadOnly = true }) } == .locked)
            worker.kill()
            _ = worker.finish()
            try finish(Store(at: path, .testing()))
        }
    }

    @Test func anInstanceWhoseLockWasRemovedIsNotSweptWhileItMayLive() throws {
        try withDirectory { directory in
            let path = directory.appending("store")
            try fill(path)
            let worker = try Worker(store: path.string, mode: "idle", seed: 1, count: 1)
            worker.waitUntilReady()
            let staging = path.appending("staging")
            let lock = try #require(TestFiles.names(in: staging).first { $0.hasSuffix(".lock") })
            let instance = try #require(Layout.instance(ofStaged: lock))
            let staged = staging.appending(StagingToken(instance: instance, sequence: 99).name)
            try TestFiles.write([1], to: staged)
            TestFiles.remove(staging.appending(lock))
            let store = try Store(at: path, .testing())
            try store.collect()
            #expect(TestFiles.exists(staged))
            try #expect(code { try Store.rebuildIndex(at: path, .testing()) } == .locked)
            try store.close()
            try #expect(code { try Store.rebuildIndex(at: path, .testing()) } == .locked)
            worker.kill()
            _ = worker.finish()
            let again = try Store(at: path, .testing())
            #expect(!TestFiles.exists(staged))
            try finish(again)
        }
    }

    // MARK: Copies and links

    /// It is unknown which parts of a copy are on disk: its bodies are compared before they are returned. A move
    /// changes nothing.
    @Test func bodiesOfACopyAreSuspectAndThoseOfAMovedStoreAreNot() throws {
        try withDirectory { directory in
            let (first, copy) = (directory.appending("first"), directory.appending("copy"))
            let moved = directory.appending("moved")
            try fill(first)
            try TestFiles.copy(first, to: copy, isCopy: true)
            let digest = Digest.of(body(9000, 3))
            try TestFiles.flipByte(of: copy.appending("blobs").appending(Layout.blob(digest)), at: 5000)
            let store = try Store(at: copy, .testing { $0.isScrubbing = false })
            try #expect(store.get("k3") == nil)
            try #expect(store.bytes("k2") == body(9000, 2))
            _ = try store.check(repair: true)
            try finish(store)
            let again = try Store(at: copy, .testing())
            #expect(again.engine.damage.suspects.isEmpty)
            try finish(again)
            #expect(rename(first.string, moved.string) == 0)
            let other = try Store(at: moved, .testing())
            #expect(other.engine.damage.suspects.isEmpty)
            try finish(other)
        }
    }

    @Test func anIndexWithTwoNamesIsRefused() throws {
        try withDirectory { directory in
            let path = directory.appending("store")
            try fill(path)
            let second = directory.appending("second.mdb")
            #expect(link(IndexPages.data(path).string, second.string) == 0)
            try #expect(code { try Store(at: path, .testing()) } == .invalidArgument)
            TestFiles.remove(second)
            try finish(Store(at: path, .testing()))
        }
    }

    @Test func aFileOfTheStoreItselfIsNotMovedIntoIt() throws {
        try withStore { store in
            try store.put(body(9000, 1), for: "k", Self.durable)
            let blob = store.blobPath(Digest.of(body(9000, 1)))
            try #expect(code { try store.adopt(blob, for: "k2", method: .move) } == .invalidArgument)
            try #expect(store.bytes("k") == body(9000, 1))
        }
    }

    // MARK: What is lost or emptied

    @Test func aDamagedIndexOutlivesTheLossOfFormat() throws {
        try withDirectory { directory in
            let path = directory.appending("store")
            try fill(path)
            TestFiles.remove(path.appending("FORMAT"))
            try IndexPages.wipe(0, path)
            try #expect(code { try Store(at: path, .testing()) } == .corruption)
            try #expect(Store.rebuildIndex(at: path, .testing()).keptEntries == 6)
            let store = try Store(at: path, .testing())
            try #expect(store.bytes("k5") == body(9000, 5))
            try finish(store)
        }
    }

    @Test(arguments: [true, false]) func anEmptyIndexIsToldAsOneThatIsGone(isThere: Bool) throws {
        try withDirectory { directory in
            let path = directory.appending("store")
            try fill(path)
            TestFiles.remove(IndexPages.data(path))
            if isThere { try TestFiles.write([], to: IndexPages.data(path)) }
            let lines = Mutex<[String]>([])
            let logger = Logger(label: "test") { _ in Recorder { text in lines.withLock { $0.append(text) } } }
            let store = try Store(at: path, .testing { $0.logger = logger })
            #expect(lines.withLock { $0.contains { $0.hasPrefix("the index was gone") } })
            try store.collect()
            try finish(store)
        }
    }

    // MARK: Files of other kinds

    @Test func aFIFOHoldsNobodyUp() throws {
        try withDirectory { directory in
            let path = directory.appending("store")
            try fill(path)
            let lock = path.appending("staging").appending(Layout.instanceLock(0x1234))
            #expect(mkfifo(lock.string, 0o600) == 0)
            let store = try Store(at: path, .testing { $0.verification = .always })
            let blob = store.blobPath(Digest.of(body(9000, 1)))
            TestFiles.remove(blob)
            #expect(mkfifo(blob.string, 0o600) == 0)
            try #expect(store.get("k1") == nil)
            try store.collect()
            _ = try store.check(repair: true)
            try finish(store)
        }
    }

    @Test func aDirectoryAmongTheBodiesStopsNoCollection() throws {
        try withDirectory { directory in
            let path = directory.appending("store")
            try fill(path)
            for name in ["blobs/ab/directory", "index/rebuilt"] {
                #expect(mkdir(path.appending(name).string, 0o700) == 0)
            }
            let store = try Store(at: path, .testing())
            try store.collect()
            _ = try store.check(repair: true)
            try finish(store)
        }
    }

    // MARK: Budgets

    @Test func aBudgetThatIsSetOnceMoreIsMadeToHold() throws {
        try withStore { store in
            for number in 0..<40 {
                try store.put(body(60_000, number), for: Key("p\(number)"), PutOptions(isPinned: true))
            }
            let budget = Budget(bytes: .mebibytes(1), entries: 100)
            try #expect(code { try store.setBudget(budget) } == .noSpace)
            // Not `unpin`: the thread that would commit it begins to displace.
            try store.engine.mutate(.housekeeping) { mutation in
                for number in 0..<40 { try mutation.update(Array("p\(number)".utf8)) { $0.isPinned = false } }
            }
            try store.engine.requireWriting().watermarks.steer()
            let isDisplacing = store.engine.writing?.watermarks.isDisplacing == true
            #expect(isDisplacing)
            try store.setBudget(budget)
            #expect(recount(store.path) <= 1 << 20)
        }
    }

    @Test func allLimitsAreSetThoughTheEntriesArePinned() throws {
        try withStore { store in
            for number in 0..<5 { try store.put([1], for: Key("p\(number)"), PutOptions(isPinned: true)) }
            try #expect(code { try store.setBudget(Budget(bytes: .mebibytes(20), entries: 2)) } == .noSpace)
            try #expect(store.budget().bytes == .mebibytes(20))
            try #expect(store.budget().entries == 2)
            try #expect(code { try store.put([1], for: "more", Self.durable) } == .noSpace)
            for number in 0..<5 { try store.unpin(Key("p\(number)")) }
            try store.put([1], for: "more", Self.durable)
            try #expect(store.keys().count == 2)
        }
    }

    #if LARDER_FAILPOINTS
        // MARK: Order of failures

        @Test(arguments: [false, true]) func lostPutsAreToldBeforeTheSyncThatFailsToo(isClosing: Bool) throws {
            try withDirectory { directory in
                let path = directory.appending("store")
                let store = try Store(at: path, .testing())
                try store.put([1], for: "committed")
                try store.flush()
                try store.put([1], for: "unsynced", Self.durable)
                try store.put([1], for: "relaxed")
                store.engine.commitPending()
                let rules = "mdb_txn_commit=EROFS;mdb_env_sync=EROFS;unlink=EROFS"
                let scope = FaultScope(under: directory.string, try #require(FaultRule.list(rules)))
                try store.put([1], for: "lost")
                let error = #expect(throws: LarderError.self) {
                    if isClosing { try store.close() } else { try store.flush() }
                }
                #expect(error?.keys == ["lost"])
                scope.lift()
                if !isClosing { try store.close() }
                try finish(Store(at: path, .testing()))
            }
        }

        /// A power loss must not bring a note back that speaks for files written since.
        @Test func theNoteOfACleanEndIsTakenBackOnDisk() throws {
            try withDirectory { directory in
                let path = directory.appending("store")
                try fill(path)
                let scope = FaultScope(under: directory.string)
                let store = try Store(at: path, .testing())
                #expect(scope.hits["msync"] == 1)
                scope.lift()
                try finish(store)
            }
        }
    #endif
}
