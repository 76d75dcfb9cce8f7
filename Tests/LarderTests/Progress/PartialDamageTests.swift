import LMDB
import SystemPackage
import TestSupport
import Testing

@testable import Larder

#if LARDER_FAILPOINTS
    import Failpoints
#endif

/// Bodies in progress after a power loss, a damaged index, a file that is not what it was.
struct PartialDamageTests {
    private let bytes = body(300_000)

    private func configuration(boot: UInt64) -> Configuration { .testing { $0.bootIdentity = boot } }

    /// Leaves two thirds of a body, without holes: a copy of the directory would fill them.
    private func leave(_ store: Store, _ key: Key = "k") throws {
        let writer = try store.partialWriter(for: key, PutOptions(tags: ["t"]), total: 300_000)
        try writer.write(bytes[..<100_000], at: 0)
        try writer.write(bytes[100_000..<200_000], at: 100_000)
        try writer.suspend()
    }

    private func path(_ store: Store, _ key: Key = "k") throws -> FilePath {
        let digest = try store.engine.read { transaction in
            let record = try transaction.get(store.engine.index.entries, key.bytes).flatMap { EntryRecord($0) }
            return try transaction.get(store.engine.index.blobs, record?.blob ?? 0).flatMap { BlobRecord($0) }?.digest
        }
        return store.blobPath(try #require(digest))
    }

    // MARK: Power loss

    @Test func whatNoCheckpointHasSyncedIsDropped() throws {
        try withPowerLoss(configuration(boot: 1), of: { try leave($0) }) { path in
            let reader = try Store(at: path, configuration(boot: 1).readOnly)
            try #expect(reader.partialBody(of: "k") != nil)
            try reader.close()
            let second = try Store(at: path, configuration(boot: 2).readOnly)
            try #expect(second.partialBody(of: "k") == nil)
            try second.close()
            let store = try Store(at: path, configuration(boot: 2))
            try #expect(store.partialBody(of: "k") == nil)
            let writer = try store.partialWriter(for: "k")
            #expect(writer.ranges.isEmpty && writer.total == nil)
            try writer.write(bytes, at: 0)
            try writer.commit()
            try #expect(store.bytes("k") == bytes)
            try finish(store)
        }
    }

    @Test func whatACheckpointHasSyncedStays() throws {
        try withPowerLoss(
            configuration(boot: 1),
            of: {
                try leave($0)
                try leave($0, "later")
                try $0.flush(.durable)
                let writer = try $0.partialWriter(for: "later")
                try writer.write(bytes[200_000..<250_000], at: 200_000)
            }
        ) { path in
            let store = try Store(at: path, configuration(boot: 2))
            let body = try #require(try store.partialBody(of: "k"))
            #expect(body.ranges == [0..<200_000])
            try #expect(body.bytes(in: 100_000..<300_000) == Array(bytes[100_000..<200_000]))
            try #expect(store.partialBody(of: "later") == nil)
            try finish(store)
        }
    }

    /// The scrubber, or a repair, ends the suspicion: what it was about must be gone by then.
    @Test(arguments: [true, false])
    func suspectBodiesAreGoneWhenTheSuspicionIs(_ isRepaired: Bool) async throws {
        try await withDirectory { directory in
            let crashed = directory.appending("copy")
            try withPowerLoss(configuration(boot: 1), of: { try leave($0) }) { try TestFiles.copy($0, to: crashed) }
            var settings = configuration(boot: 2)
            settings.isScrubbing = !isRepaired
            let store = try Store(at: crashed, settings)
            if isRepaired {
                _ = try await store.perform { try $0.check(repair: true) }
            } else {
                try await waitWhile { try !store.engine.state().suspects.isEmpty }
            }
            try #expect(store.engine.state().suspects.isEmpty)
            try await store.close()
            let again = try Store(at: crashed, configuration(boot: 2))
            try await #expect(again.partial("k") == nil)
            let writer = try await again.perform { try $0.partialWriter(for: "k") }
            #expect(writer.ranges.isEmpty)
            try finish(again)
        }
    }

    // MARK: Damage

    @Test func aFileThatIsTooShortIsFound() throws {
        try withStore { store in
            try leave(store)
            try TestFiles.truncate(path(store), to: 150_000)
            let report = try store.check()
            #expect(report.violations.map(\.invariant).contains(.I1))
            try #expect(store.partialBody(of: "k") == nil)
            try #expect(store.check(repair: true).isRepaired)
            try #expect(store.check().isClean && store.keys(.incomplete).isEmpty)
        }
    }

    @Test func aFileThatIsTooShortIsNotTakenOver() throws {
        try withStore { store in
            try leave(store)
            try TestFiles.truncate(path(store), to: 150_000)
            try #expect(store.partialWriter(for: "k").ranges.isEmpty)
        }
    }

    /// As below, but the writer continues: the file would have its length again, with zeros inside.
    @Test func aFileThatIsCutIsNotWrittenOn() throws {
        try withStore { store in
            let writer = try store.partialWriter(for: "k", total: 300_000)
            try writer.write(bytes[..<200_000], at: 0)
            let name = try #require(store.stagedFiles.first)
            try TestFiles.truncate(store.path.appending("staging").appending(name), to: 100_000)
            try #expect(code { try writer.write(bytes[200_000...], at: 200_000) } == .io)
            try #expect(code { try writer.commit() } == .incomplete)
            writer.cancel()
            try #expect(store.get("k") == nil)
        }
    }

    /// Another program cuts the file of a body while its writer has it: the rest is not made up of zeros.
    @Test func aFileThatIsCutWhileItIsWrittenIsNotStored() throws {
        try withStore { store in
            let writer = try store.partialWriter(for: "k", total: 300_000)
            try writer.write(bytes, at: 0)
            let follower = try #require(try store.partialBody(of: "k"))
            let name = try #require(store.stagedFiles.first)
            try TestFiles.truncate(store.path.appending("staging").appending(name), to: 100_000)
            #expect(throws: LarderError.self) { try follower.bytes(in: 50_000..<200_000) }
            try #expect(store.partialBody(of: "k") == nil)
            let error = #expect(throws: LarderError.self) { try writer.commit() }
            #expect(error?.code == .io)
            writer.cancel()
            try #expect(store.get("k") == nil)
            let next = try store.partialWriter(for: "k", total: 300_000)
            #expect(next.ranges.isEmpty)
            try next.write(bytes, at: 0)
            try next.commit()
            try #expect(store.bytes("k") == bytes)
        }
    }

    @Test func aFileThatIsGoneIsAMiss() throws {
        try withStore { store in
            try leave(store)
            try #require(unlink(path(store).string) == 0)
            try #expect(store.partialBody(of: "k") == nil)
            let writer = try store.partialWriter(for: "k")
            #expect(writer.ranges.isEmpty)
            try writer.write(bytes, at: 0)
            try writer.commit()
            try #expect(store.bytes("k") == bytes)
        }
    }

    @Test func rangesThatAreNotThoseOfTheBodyAreFound() throws {
        try withStore { store in
            let writer = try store.partialWriter(for: "k")
            try writer.write(bytes[..<100_000], at: 0)
            try writer.suspend()
            let index = store.engine.index
            try store.engine.mutate(.housekeeping) { mutation in
                var record = try #require(try mutation.record(Array("k".utf8)))
                record.progress?.ranges.insert(100_000..<120_000)
                record.reseal(for: Array("k".utf8))
                try mutation.transaction.put(index.entries, Array("k".utf8), record.bytes)
                mutation.noteChange(trees: 1)
            }
            try #expect(store.check().violations.map(\.invariant) == [.I1])
            try #expect(store.partialBody(of: "k") == nil)
            try #expect(store.partialWriter(for: "k").ranges.isEmpty)
            try store.flush()
        }
    }

    /// Every byte of a record that is damaged in every bit, or cut: never a trap, and never other ranges unless the
    /// seal is right by chance.
    @Test func damagedRecordsAreRefused() throws {
        var record = EntryRecord()
        record.tags = ["t"]
        record.metadata = [1, 2, 3]
        record.progress = EntryRecord.Progress(total: 50, ranges: try #require(StoredRanges([0..<10, 20..<50])))
        record.seal(for: [7], Digest.of([1]))
        let bytes = record.bytes
        #expect(bytes.withUnsafeBytes { EntryRecord($0) } == record)
        func isIntact(_ bytes: [UInt8]) -> Bool {
            bytes.withUnsafeBytes { EntryView($0)?.isIntact(under: [7]) ?? false }
        }
        #expect(isIntact(bytes))
        var accepted = 0
        for place in bytes.indices {
            for bit in 0..<8 {
                var damaged = bytes
                damaged[place] ^= 1 << UInt8(bit)
                let found = damaged.withUnsafeBytes { EntryRecord($0) }
                if let found, isIntact(damaged), found.progress != record.progress { accepted += 1 }
            }
            #expect(bytes[..<place].withUnsafeBytes { EntryRecord($0) } == nil)
        }
        #expect(accepted == 0)
    }

    @Test func aRebuildKeepsThem() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            try leave(store)
            try store.put(bytes, for: "whole")
            try store.close()
            try TestFiles.flipByte(of: path.appending("index/data.mdb"), at: 20)
            _ = try Store.rebuildIndex(at: path, .testing())
            let again = try Store(at: path, .testing())
            try #expect(again.bytes("whole") == bytes)
            if let body = try again.partialBody(of: "k") {
                try #expect(body.bytes(in: 0..<300_000) == Array(bytes[..<200_000]))
            }
            try finish(again)
        }
    }

    @Test func collectionLeavesThem() throws {
        try withStore { store in
            try leave(store)
            let report = try store.collect()
            #expect(report.danglingEntries == 0 && report.orphanBlobs == 0)
            try #expect(store.partialBody(of: "k") != nil)
        }
    }

    #if LARDER_FAILPOINTS
        @Test(arguments: ["pwrite=ENOSPC", "pwrite=EIO@2", "mdb_txn_commit=ENOSPC@1", "fstat=EIO@3"])
        func aFailingDiskLeavesAWriterThatGoesOn(_ fault: String) throws {
            try withStore { store in
                let writer = try store.partialWriter(for: "k", total: 300_000)
                try writer.write(bytes[..<50_000], at: 0)
                let scope = FaultScope(under: store.path.string, try #require(FaultRule.list(fault)))
                for start in stride(from: 50_000, to: 300_000, by: 50_000) {
                    _ = try code { try writer.write(bytes[start..<start + 50_000], at: Int64(start)) }
                }
                let refusal = try code { try writer.commit() }
                scope.lift()
                if refusal != nil {
                    try writer.write(bytes, at: 0)
                    try writer.commit()
                }
                try #expect(store.bytes("k") == bytes)
                try expectNothingReserved(store)
            }
        }

        /// What was written before a failure may be written again, with other bytes.
        @Test func theDigestIsOfTheBytesThatAreThereAfterAFailure() throws {
            try withStore { store in
                let writer = try store.partialWriter(for: "k", total: 300_000)
                try writer.write(bytes[100_000..<200_000], at: 100_000)
                let scope = FaultScope(under: store.path.string, try #require(FaultRule.list("pwrite=EIO@2")))
                try #expect(code { try writer.write([UInt8](repeating: 9, count: 300_000), at: 0) } == .io)
                #expect(scope.injected == 1)
                scope.lift()
                try writer.write(bytes, at: 0)
                try #expect(writer.commit() == Digest.of(bytes))
                try #expect(store.bytes("k") == bytes)
            }
        }
    #endif

    @Test func whatOthersChangeStaysAsTheyChangedIt() throws {
        try withStore { store in
            let writer = try store.partialWriter(for: "k", total: 300_000)
            try writer.use(PutOptions(tags: ["a"]))
            try store.flush()
            try #expect(store.keys(.incomplete && .tag("a")) == ["k"])
            var batch = WriteBatch()
            batch.change("k", EntryChange(tags: ["b"]))
            try #expect(store.results(batch) == ["done"])
            try writer.write([1], at: 0)
            try store.flush()
            try #expect(store.keys(.incomplete && .tag("b")) == ["k"])
            try writer.suspend()
        }
    }

    /// As cleaners of old temporary files do.
    @Test func aBodyWhoseFileWasRemovedIsGoneAtItsCommit() throws {
        try withStore { store in
            let writer = try store.partialWriter(for: "k", total: 300_000)
            try writer.write(bytes, at: 0)
            try store.flush()
            for name in store.stagedFiles { TestFiles.remove(store.path.appending("staging").appending(name)) }
            try #expect(code { try writer.commit() } == .gone)
            try #expect(store.get("k") == nil)
            try store.remove("k")
        }
    }
}

extension Configuration {
    fileprivate var readOnly: Configuration {
        var copy = self
        copy.isReadOnly = true
        return copy
    }
}
