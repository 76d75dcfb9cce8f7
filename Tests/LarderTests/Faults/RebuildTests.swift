import SystemPackage
import TestSupport
import Testing

@testable import LMDB
@testable import Larder

#if LARDER_FAILPOINTS
    import Failpoints
#endif

/// Indexes that are made again from what can be read of a damaged one, and repairs.
@Suite struct RebuildTests {
    private static let durable = PutOptions(durability: .durable)

    /// A copy of the directory of a store that is in use, as a crash would leave it.
    private func withCrash(
        _ configuration: Configuration = .testing(), of use: (Store) throws -> Void, _ body: (FilePath) throws -> Void
    ) throws {
        try withDirectory { directory in
            let (live, crashed) = (directory.appending("live"), directory.appending("crashed"))
            let store = try Store(at: live, configuration)
            try use(store)
            try TestFiles.copy(live, to: crashed)
            try store.close()
            try body(crashed)
        }
    }

    // MARK: What is kept

    #if LARDER_FAILPOINTS
        /// Committed, and not in its place yet: only its row keeps the next sweep from taking it for a leftover.
        @Test func aBodyThatWasNotPublishedIsKept() throws {
            try withCrash { store in
                let scope = FaultScope(under: store.path.string, try #require(FaultRule.list("rename=EIO")))
                try store.put(body(9000, 1), for: "k", Self.durable)
                #expect(store.stagedFiles.count == 1)
                scope.lift()
            } _: { path in
                try IndexPages.wipe(try IndexPages.leaf(of: "unpublished", path), path)
                let report = try Store.rebuildIndex(at: path, .testing())
                #expect(report.keptEntries == 1 && !report.damages.isEmpty)
                let store = try Store(at: path, .testing())
                try #expect(store.bytes("k") == body(9000, 1))
                try finish(store)
            }
        }
    #endif

    @Test func aFileThatNoCheckpointWouldFindIsAViolation() throws {
        try withStore { store in
            try store.put(body(9000, 1), for: "k")
            try store.flush()
            let index = store.engine.index
            try store.engine.mutate(.housekeeping) {
                try $0.transaction.removeAll(index.unpublished)
                $0.noteChange(trees: 1)
            }
            try #expect(store.check().violations.map(\.invariant) == [.I5])
            try #expect(store.check(repair: true).isRepaired)
            try #expect(store.engine.read { try $0.statistics(index.unpublished).entries } == 1)
        }
    }

    /// The state before the last commit has more entries, and is not the one to go back to.
    @Test func aRemovalIsNotUndoneForDamageElsewhere() throws {
        try withCrash { store in
            for number in 0..<50 { try store.put([1], for: Key("k\(number)"), PutOptions(tags: ["t"])) }
            try store.flush()
            try store.remove("k7", durability: .durable)
        } _: { path in
            try IndexPages.wipe(try IndexPages.leaf(of: "tags", path), path)
            let report = try Store.rebuildIndex(at: path, .testing())
            #expect(report.keptEntries == 49 && report.lostEntries == 0)
            let store = try Store(at: path, .testing())
            try #expect(store.get("k7") == nil)
            try #expect(store.keys(.tag("t")).count == 49)
            try finish(store)
        }
    }

    @Test func countersAndVersionsAreTakenFromTheCommitBefore() throws {
        try withCrash(.testing(budget: Budget(bytes: .mebibytes(50))) { $0.version = "1.0" }) { store in
            for number in 0..<50 { try store.put([1], for: Key("k\(number)"), Self.durable) }
        } _: { path in
            try IndexPages.wipe(try IndexPages.leaf(of: "meta", path), path)
            let report = try Store.rebuildIndex(at: path, .testing())
            #expect(report.keptEntries == 50 && !report.hasLostBudget)
            let store = try Store(at: path, .testing { $0.version = "2.0" })
            try #expect(store.statistics().budget.bytes == .mebibytes(50))
            try #expect(
                store.applicationVersions() == [
                    "1.0": #require(store.applicationVersions()["1.0"]), "2.0": #require(store.applicationVersion),
                ])
            try #expect(store.keys() == [])
            try finish(store)
        }
    }

    @Test func theBudgetIsKeptThoughNoEntryIs() throws {
        try withCrash(.testing(budget: Budget(bytes: .mebibytes(50)))) { store in
            try store.put([1], for: "k", Self.durable)
        } _: { path in
            try IndexPages.wipe(try IndexPages.leaf(of: "entries", path), path)
            let report = try Store.rebuildIndex(at: path, .testing())
            #expect(report.keptEntries == 0 && !report.hasLostBudget && !report.isEmptied)
            let store = try Store(at: path, .testing())
            try #expect(store.statistics().budget.bytes == .mebibytes(50))
            try finish(store)
        }
    }

    /// Or the next version would get the number, and with it the entries.
    @Test func aVersionThatLostItsNameKeepsItsNumber() throws {
        try withDirectory { path in
            let old = try Store(at: path, .testing { $0.version = "1.0" })
            try old.put([1], for: "k", Self.durable)
            let index = old.engine.index
            try old.engine.mutate(.housekeeping) {
                try $0.transaction.delete(index.meta, Index.versionKey("1.0"))
                $0.noteChange(trees: 1)
            }
            try #expect(old.check(repair: true).isRepaired)
            try old.close()
            let new = try Store(at: path, .testing { $0.version = "2.0" })
            #expect(new.applicationVersion?.number == 2)
            try #expect(new.get("k") == nil)
            try finish(new)
        }
    }

    @Test func aHeadThatSaysFarTooManyPagesIsDamage() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            try store.put(body(100), for: "k", Self.durable)
            try store.close()
            let metas = try MetaPage.all(MemoryPages(try TestFiles.read(IndexPages.data(path))))
            let head = Int64(metas[0].page) * 4096 + Int64(metas[0].format.headerLength)
            // Bit 46 of the number of the last page.
            try TestFiles.write(
                {
                    var bytes = try TestFiles.read(IndexPages.data(path)); bytes[Int(head) + 125] ^= 0x40; return bytes
                }(),
                to: IndexPages.data(path))
            try #expect(code { try Store(at: path, .testing()) } == .corruption)
            try Store.rebuildIndex(at: path, .testing())
            let again = try Store(at: path, .testing())
            try #expect(again.bytes("k") == body(100))
            try finish(again)
        }
    }

    // MARK: Other state on disk

    /// A rebuild that was killed, or a backup, may leave a store without it; a reader without a row in it is in danger.
    @Test func aReaderMakesTheLockFileThatIsMissing() throws {
        try withDirectory { path in
            try Store(at: path, .testing()).close()
            let lock = path.appending("index/lock.mdb")
            TestFiles.remove(lock)
            let reader = try Store(at: path, .testing { $0.isReadOnly = true })
            #expect(TestFiles.exists(lock))
            try reader.close()
        }
    }

    /// The torn one comes first or last, as the directory lists them.
    @Test(arguments: [0, 1, 2, 3]) func ofTwoDiscardedFilesTheWholeOneIsPutBack(torn: UInt64) throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            try store.put(body(9000, 1), for: "k", Self.durable)
            let blob = store.blobPath(Digest.of(body(9000, 1)))
            try store.close()
            let whole = try TestFiles.read(blob)
            TestFiles.remove(blob)
            for number in UInt64(0)..<4 {
                let token = StagingToken(instance: number % 2 == 0 ? 77 : 78, sequence: 1 + number / 2)
                try TestFiles.write(
                    number == torn ? whole : [UInt8](repeating: 0, count: whole.count),
                    to: path.appending("trash").appending(Layout.trash(token, Digest.of(body(9000, 1)))))
            }
            let reader = try Store(at: path, .testing { $0.isReadOnly = true })
            try #expect(reader.bytes("k") == body(9000, 1))
            try reader.close()
            let again = try Store(at: path, .testing())
            try #expect(again.bytes("k") == body(9000, 1))
            try finish(again)
        }
    }

    /// A flipped bit in the length of a blob's record.
    @Test(arguments: [100, 9000]) func aBodyHasTheLengthThatIsStored(length: Int) throws {
        try withStore { store in
            try store.put(body(length), for: "k", Self.durable)
            let blobs = store.engine.index.blobs
            try store.engine.mutate(.housekeeping) { mutation in
                let (id, raw) = try lastBlob(mutation, blobs)
                var bytes = raw
                bytes[8 + 5] ^= 0x20
                try mutation.transaction.put(blobs, id, bytes)
                mutation.noteChange(trees: 1)
            }
            try #expect(store.bytes("k") == body(length))
            _ = try store.check(repair: true)
            try #expect(store.bytes("k") == body(length))
        }
    }

    @Test func numbersFromDiskEndNoProcess() throws {
        #expect(Versions.freeVersion([.max]) == 1)
        try withStore(configuration: .testing(budget: Budget(bytes: .mebibytes(16)))) { store in
            try store.put([1], for: "k", Self.durable)
            try store.engine.mutate(.housekeeping) {
                $0.state.nextStamp = 0
                $0.state.entryCount = 1 << 60
                $0.noteChange(trees: 1)
            }
            try store.pin("k")
            try store.clear()
            try store.put([2], for: "k", Self.durable)
            _ = try store.check(repair: true)
            try #expect(store.check().isClean)
        }
    }

    #if LARDER_FAILPOINTS
        @Test func aRebuildThatFindsNoRoomLeavesNothingBehind() throws {
            try withDirectory { path in
                let store = try Store(at: path, .testing())
                for number in 0..<50 { try store.put([1], for: Key("k\(number)"), PutOptions(tags: ["t"])) }
                try store.close()
                try IndexPages.wipe(try IndexPages.leaf(of: "tags", path), path)
                let scope = FaultScope(under: path.string, try #require(FaultRule.list("mdb_txn_commit=ENOSPC@2+")))
                try #expect(code { try Store.rebuildIndex(at: path, .testing()) } == .noSpace)
                #expect(!TestFiles.exists(path.appending("index/rebuilt")))
                scope.lift()
                try #expect(Store.rebuildIndex(at: path, .testing()).keptEntries == 50)
                try finish(Store(at: path, .testing()))
            }
        }

        /// A sweep may be about to unlink what a dead store left in `staging/`.
        @Test func aCommittedFileGoesBackToItsPlaceAndNotToStaging() throws {
            try withStore { store in
                let scope = FaultScope(under: store.path.string, try #require(FaultRule.list("rename=EIO")))
                try store.put(body(9000, 1), for: "k", PutOptions(tags: ["t"], durability: .durable))
                #expect(store.stagedFiles.count == 1)
                scope.set(try #require(FaultRule.list("mdb_txn_commit=EIO@1")))
                #expect(throws: LarderError.self) { try store.remove(.tag("t")) }
                scope.lift()
                #expect(store.stagedFiles == [])
                #expect(TestFiles.exists(store.blobPath(Digest.of(body(9000, 1)))))
                try #expect(store.bytes("k") == body(9000, 1))
            }
        }

        /// A removal that fails and is tried again has the file whenever the repair looks.
        @Test func aRepairThatCouldNotCompareAFileLeavesItSuspect() throws {
            try withStore { store in
                try store.put(body(9000, 1), for: "k", Self.durable)
                let blob = store.blobPath(Digest.of(body(9000, 1)))
                try store.engine.mutate(.housekeeping) {
                    ($0.state.suspectFrom, $0.state.suspectTo) = (1, $0.state.epoch + 1)
                }
                let trash = store.path.appending("trash").appending(
                    Layout.trash(try #require(store.engine.writing).staged.nextToken(), Digest.of(body(9000, 1))))
                let scope = FaultScope(under: store.path.string)
                scope.at("open") { if TestFiles.exists(blob) { #expect(rename(blob.string, trash.string) == 0) } }
                _ = try store.check(repair: true)
                scope.lift()
                try #expect(store.engine.state().isSuspect(epoch: 1))
                _ = try store.check(repair: true)
                try #expect(!store.engine.state().isSuspect(epoch: 1))
                try #expect(store.bytes("k") == body(9000, 1))
            }
        }
    #endif
}
