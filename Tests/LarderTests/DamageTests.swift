import Foundation
import LMDB
import Locks
import SystemPackage
import TestSupport
import Testing

@testable import Larder

#if LARDER_FAILPOINTS
    import Failpoints
#endif

/// Bytes of any file of a store changed behind its back, as by a failing disk or another program.
@Suite struct DamageTests {
    /// Lookups, puts, gc and repairs on a store with one damaged place, twenty times; `tools/damage` does it at
    /// length. In a process of its own: a trap is a failure there, and the end of the test run here.
    @Test func damageAnywhereIsHarmlessOrFound() throws {
        let environment = ProcessInfo.processInfo.environment
        let seed = environment["LARDER_SEED"].flatMap(UInt64.init) ?? UInt64.random(in: 0..<1_000_000)
        let count = environment["LARDER_FLIPS"].flatMap(Int.init) ?? 20
        print("damageAnywhereIsHarmlessOrFound: LARDER_SEED=\(seed) LARDER_FLIPS=\(count)")
        try withDirectory { path in
            let worker = try Worker(store: path.string, mode: "damage", seed: seed, count: count)
            let lines = worker.finish()
            let round = String(decoding: (try? TestFiles.read(path.appending("round"))) ?? [], as: UTF8.self)
            try #require(lines.last == "OK", "\(lines) in \(round)")
        }
    }

    private func fill(_ path: FilePath, count: Int = 400) throws {
        let store = try Store(at: path, .testing())
        for number in 0..<count {
            try store.put(body(number % 10 == 0 ? 9000 : 50 + number, number), for: Key("http://damage.test/\(number)"))
        }
        try store.setBudget(Budget(bytes: .mebibytes(64)))
        try store.close()
    }

    @Test func whatCanBeReadOfADamagedIndexIsKept() throws {
        try withDirectory { path in
            try fill(path)
            let page = try IndexPages.leaf(of: "entries", path)
            try IndexPages.wipe(page, path)
            let error = try #require(throws: LarderError.self) { try Store(at: path, .testing()) }
            #expect(error.code == .corruption && error.message.contains("page \(page) (entries)"))
            let report = try Store.rebuildIndex(at: path, .testing())
            #expect(report.damages.contains { $0.contains("page \(page) (entries)") })
            #expect(report.countedEntries == 400 && report.keptEntries > 300 && report.keptEntries < 400)
            #expect(report.lostEntries == 400 - report.keptEntries && !report.hasLostBudget && report.removedFiles == 0)
            #expect(report.check.isRepaired)
            let store = try Store(at: path, .testing())
            try #expect(store.budget().bytes == .mebibytes(64))
            for key in try store.keys() {
                let number = try #require(Int(key.text.split(separator: "/").last ?? ""))
                try #expect(store.bytes(key) == body(number % 10 == 0 ? 9000 : 50 + number, number))
            }
            try finish(store)
        }
    }

    @Test func rowsThatFollowFromEntriesAreMadeAnew() throws {
        try withDirectory { path in
            try fill(path)
            for tree in ["recency", "digests"] { try IndexPages.wipe(try IndexPages.leaf(of: tree, path), path) }
            let report = try Store.rebuildIndex(at: path, .testing())
            #expect(report.keptEntries == 400 && report.lostEntries == 0)
            try finish(try Store(at: path, .testing()))
        }
    }

    #if LARDER_FAILPOINTS
        /// The next open relies on the new index: files that it does not name are removed.
        @Test func aRebuildThatIsKilledBeforeItsCheckLeavesAWholeIndex() throws {
            try withDirectory { directory in
                let (path, killed) = (directory.appending("store"), directory.appending("killed"))
                try fill(path)
                for tree in ["recency", "digests"] { try IndexPages.wipe(try IndexPages.leaf(of: tree, path), path) }
                let scope = FaultScope(under: path.string)
                scope.at("rebuild.index-replaced") {
                    #expect(throws: Never.self) { try TestFiles.copy(path, to: killed) }
                }
                try Store.rebuildIndex(at: path, .testing())
                let store = try Store(at: killed, .testing())
                try store.collect()
                for number in stride(from: 0, to: 400, by: 10) {
                    try #expect(store.bytes(Key("http://damage.test/\(number)")) == body(9000, number))
                }
                try finish(store)
            }
        }
    #endif

    @Test func theIndexOfTheCommitBeforeIsTakenWhereTheLastIsLost() throws {
        try withDirectory { path in
            try fill(path)
            let metas = try MetaPage.all(MemoryPages(try TestFiles.read(IndexPages.data(path))))
            // The head of the last commit: its parity says where it lies.
            try IndexPages.wipe(metas[0].transaction & 1, path)
            try #expect(code { try Store(at: path, .testing()) } == .corruption)
            let report = try Store.rebuildIndex(at: path, .testing())
            #expect(report.keptEntries >= 399)
            try finish(try Store(at: path, .testing()))
        }
    }

    @Test func aDestroyedIndexIsReplacedByAnEmptyOne() throws {
        try withDirectory { path in
            try fill(path)
            try TestFiles.write(body(300_000), to: IndexPages.data(path))
            let error = try #require(throws: LarderError.self) { try Store(at: path, .testing()) }
            #expect(error.code == .corruption && error.message.contains("is not an LMDB file"))
            let report = try Store.rebuildIndex(at: path, .testing())
            #expect(
                report.keptEntries == 0 && report.removedFiles == 40 && report.lostEntries == nil
                    && report.hasLostBudget)
            #expect(TestFiles.tree(path.appending("blobs")) == [])
            let store = try Store(at: path, .testing())
            try store.put(body(9000), for: "k")
            try finish(store)
        }
    }

    @Test func bodiesOfAnIndexThatIsGoneAreReclaimed() throws {
        try withDirectory { path in
            try fill(path)
            TestFiles.remove(IndexPages.data(path))
            let store = try Store(at: path, .testing())
            try #expect(store.keys() == [])
            #expect(try store.collect().orphanBlobs == 40)
            #expect(TestFiles.tree(path.appending("blobs")) == [])
            try store.put(body(9000), for: "k")
            try finish(store)
        }
    }

    @Test func aDamagedFormatFileIsWrittenAnewANewerOneIsNot() throws {
        try withDirectory { path in
            try fill(path, count: 20)
            let format = path.appending("FORMAT")
            try TestFiles.flipByte(of: format, at: 3)
            try #expect(code { try Store(at: path, .testing()) } == .formatMismatch)
            let report = try Store.rebuildIndex(at: path, .testing())
            #expect(report.hasRestoredFormat && report.damages == [] && report.keptEntries == 20)
            try TestFiles.write(Array("larder\nformat \(FormatFile.newestVersion + 1)\nstore x\n".utf8), to: format)
            try #expect(code { try Store.rebuildIndex(at: path, .testing()) } == .formatMismatch)
        }
    }

    /// A file of that name that is not ours, in a directory without a store.
    @Test func aFormatFileOfAnotherProgramIsNotReplaced() throws {
        try withDirectory { path in
            try TestFiles.write([], to: path.appending("holiday.jpg"))
            try TestFiles.write([1], to: path.appending("FORMAT"))
            try #expect(code { try Store.rebuildIndex(at: path, .testing()) } == .formatMismatch)
            #expect(TestFiles.names(in: path) == ["FORMAT", "holiday.jpg"])
            try #expect(TestFiles.read(path.appending("FORMAT")) == [1])
        }
    }

    /// LMDB frees as many pages as the head of a big value says; a wrong number would free pages of others.
    @Test func aDamagedHeadOfABigValueIsNotFreedBy() throws {
        try withDirectory { path in
            let bytes = body(3000)
            let store = try Store(at: path, .testing())
            try store.put(bytes, for: "k")
            try store.put(body(3000, 2), for: "other")
            try store.flush()
            let index = try TestFiles.read(IndexPages.data(path))
            let start = try #require(index.indices.first { index[$0] == bytes[0] && index[$0...].starts(with: bytes) })
            let head = Int64(start - BlobRecord.inlineLength - 16)
            #expect(head % 4096 == 0)
            try TestFiles.flipByte(of: IndexPages.data(path), at: head + 13)
            try #expect(
                code {
                    try store.remove("k"); try store.flush()
                } == .corruption)
            try #expect(store.bytes("other") == body(3000, 2))
            try #expect(code { try store.check() } == .corruption)
            try? store.close()
            _ = try Store.rebuildIndex(at: path, .testing())
            let again = try Store(at: path, .testing())
            try #expect(again.bytes("other") == body(3000, 2))
            try finish(again)
        }
    }

    // MARK: Seals

    /// Writes the record of an entry again, without the rows that follow from it.
    private func rewrite(_ store: Store, _ key: String, _ change: (inout EntryRecord) -> Void) throws {
        try store.engine.mutate(.housekeeping) { mutation in
            var record = try #require(try mutation.record(Array(key.utf8)))
            change(&record)
            try mutation.transaction.put(store.engine.index.entries, Array(key.utf8), record.bytes)
            mutation.noteChange(trees: 1)
        }
    }

    @Test func anEntryThatLeadsToTheBodyOfAnotherIsAMiss() throws {
        try withStore { store in
            try store.put(body(100, 1), for: "a")
            try store.put(body(100, 2), for: "b")
            try store.flush()
            let other = try store.engine.read {
                try $0.get(store.engine.index.entries, Array("b".utf8)).flatMap(EntryRecord.init)
            }
            try rewrite(store, "a") { $0.blob = other?.blob ?? 0 }
            try #expect(store.get("a") == nil)
            try #expect(store.contains("a") == false)
            try #expect(store.withBody(of: "a") { _ in 1 } == nil)
            let report = try store.check(repair: true)
            #expect(report.violations.contains { $0.description.contains("a is damaged") } && report.isRepaired)
            try #expect(store.bytes("b") == body(100, 2))
        }
    }

    @Test func anEntryWithAnEmptyTagIsDamaged() throws {
        var record = FormatTests.entry
        record.tags = [""]
        #expect(record.bytes.withUnsafeBytes { EntryRecord($0) } == nil)
    }

    /// The last number of a tree may become any greater one without being out of order; the next number must not follow
    /// it.
    @Test func aBlobWithAnAbsurdNumberIsRepaired() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            try store.put(body(100), for: "k")
            try store.put(body(100, 2), for: "lost")
            try store.flush()
            try store.engine.mutate(.housekeeping) { mutation in
                let blobs = store.engine.index.blobs
                let (id, raw) = try lastBlob(mutation, blobs)
                try mutation.transaction.delete(blobs, id)
                try mutation.transaction.put(blobs, id | 1 << 60, raw)
                mutation.noteChange(trees: 1)
            }
            try #expect(store.check(repair: true).isRepaired)
            try store.close()
            let again = try Store(at: path, .testing())
            try #expect(again.bytes("k") == body(100))
            try again.put(body(100, 2), for: "lost")
            try #expect(again.bytes("lost") == body(100, 2))
            try finish(again)
        }
    }

    @Test func aChangedRecordIsFoundWhereAllIsVerified() throws {
        try withStore(configuration: .testing { $0.verification = .always }) { store in
            try store.put(body(100), for: "k", PutOptions(metadata: [1, 2, 3]))
            try store.flush()
            try rewrite(store, "k") { $0.metadata = [1, 2, 4] }
            try #expect(store.get("k") == nil)
            try #expect(store.check(repair: true).isRepaired)
            try store.put(body(100), for: "k")
            try #expect(store.bytes("k") == body(100))
        }
    }

    // MARK: When the pages are walked

    private func find(_ path: FilePath, boot: UInt64 = 1) throws -> IndexTrust.Finding {
        let environment = try Environment(path: path.appending("index").string)
        defer { environment.close() }
        let files = try StoreFiles(root: Directory(path: path))
        return try IndexTrust(files: files, configuration: .testing { $0.bootIdentity = boot }).find(environment)
    }

    private func isWalkDue(_ path: FilePath) throws -> Bool { try find(path).walk != .none }

    @Test func pagesAreWalkedUnlessTheStoreWasClosedAndNotChangedSince() throws {
        try withDirectory { path in
            let configuration = Configuration.testing {
                $0.bootIdentity = 1; $0.inlineThreshold = .kibibytes(64)
            }
            let store = try Store(at: path, configuration)
            for number in 0..<200 { try store.put(body(30_000, number), for: Key("\(number)")) }
            try store.flush()
            try store.close()
            try #expect(!isWalkDue(path))
            // Nor after a start of the machine.
            try #expect(find(path, boot: 2) == .init(wasClosed: true, isShared: false, walk: .none))
            // A store that only reads leaves it so, as does one that changes nothing and closes.
            try Store(
                at: path,
                .testing {
                    $0.bootIdentity = 1; $0.isReadOnly = true
                }
            ).close()
            try #expect(!isWalkDue(path))
            try Store(at: path, configuration).close()
            try #expect(!isWalkDue(path))
            let note = try TestFiles.read(path.appending("index/ledger"))
            try TestFiles.flipByte(of: IndexPages.data(path), at: 700_000)
            try #expect(isWalkDue(path))
            try TestFiles.flipByte(of: IndexPages.data(path), at: 700_000)
            try #expect(isWalkDue(path))
            try Store(at: path, configuration).close()
            try #expect(!isWalkDue(path))
            try TestFiles.write(note, to: path.appending("index/ledger"))
            try #expect(isWalkDue(path))
        }
    }

    /// Another process may commit between the sync of a closing store and its note.
    @Test func aNoteSpeaksForTheTransactionThatWasSyncedOnly() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            try store.put(body(100), for: "k")
            try store.flush()
            let words = try #require(store.engine.writing).ledger.words
            let environment = store.engine.index.environment
            let trust = IndexTrust(files: store.engine.files, configuration: .testing())
            let latest = try environment.latestTransaction()
            for (last, isTrusted) in [(latest - 1, false), (latest, true)] {
                ClosedNote(words).set(try trust.mark(environment, last: last))
                try #expect(trust.find(environment).wasClosed == isTrusted)
            }
            ClosedNote(words).set(0)
            try finish(store)
        }
    }

    @Test func aStoreInUseIsNotWalkedAgainUntilAProcessDied() throws {
        try withDirectory { path in
            let configuration = Configuration.testing {
                $0.bootIdentity = 1; $0.inlineThreshold = .kibibytes(64)
            }
            let store = try Store(at: path, configuration)
            for number in 0..<200 { try store.put(body(30_000, number), for: Key("\(number)")) }
            try store.flush()
            let words = try #require(store.engine.writing).ledger.words
            let trust = IndexTrust(files: store.engine.files, configuration: configuration)
            try #expect(trust.find(store.engine.index.environment).walk == .none)
            try TestFiles.write([], to: path.appending("staging").appending(Layout.instanceLock(0x1234)))
            try #expect(trust.find(store.engine.index.environment).walk == .behind)
            TestFiles.remove(path.appending("staging").appending(Layout.instanceLock(0x1234)))
            // The one that walks behind its open may end before it is through.
            WalkRecord(words).begin(run: trust.run, isAlone: true)
            try #expect(trust.find(store.engine.index.environment).walk == .behind)
            WalkRecord(words).end()
            try TestFiles.write([], to: path.appending("staging").appending(Layout.instanceLock(0x1234)))
            // Another process looks at the same moment.
            let looking = try FileSystem.open(
                Layout.instanceLock(0x1234), in: store.engine.files.staging, flags: O_RDONLY)
            try #require(try FileSystem.lock(looking, .shared, wait: false, path: nil))
            try #expect(trust.find(store.engine.index.environment).walk == .behind)
            withExtendedLifetime(looking) {}
            TestFiles.remove(path.appending("staging").appending(Layout.instanceLock(0x1234)))
            try finish(store)
        }
    }

    /// Where a pattern is in megabytes of a file, searched by optimised code.
    private static func offsets(of pattern: [UInt8], in bytes: [UInt8]) -> [Int] {
        let (data, pattern) = (Data(bytes), Data(pattern))
        var found: [Int] = []
        var start = 0
        while let match = data.range(of: pattern, in: start..<data.count) {
            found.append(match.lowerBound)
            start = match.lowerBound + 1
        }
        return found
    }

    /// The open does not wait for a walk over a large index; what that finds ends the use of the store, and the next
    /// open refuses it.
    @Test func damageThatIsFoundBehindAnOpenStoreEndsItsUse() throws {
        let configuration = Configuration.testing {
            $0.bootIdentity = 1; $0.inlineThreshold = .kibibytes(64)
        }
        try withPowerLoss(configuration) { store in
            for number in 0..<200 {
                try store.put(body(30_000, number), for: Key("\(number)"), PutOptions(tags: ["needle"]))
            }
        } _: { path in
            // A tree that an open does not look at: so the walk is what finds it.
            let row = Array("needle".utf8) + [0, 0, 0, 0]
            let bytes = try TestFiles.read(IndexPages.data(path))
            for offset in Self.offsets(of: row, in: bytes) {
                // Where a page of another tree has no rows, bytes of an earlier life of its memory may stand.
                let page = offset / 4096 * 4096
                let upper = Int(bytes[page + 14]) | Int(bytes[page + 15]) << 8
                if offset - page >= upper { try IndexPages.wipe(UInt64(offset) / 4096, path) }
            }
            let found = Mutex<LarderError?>(nil)
            let isFound = Latch()
            var watching = configuration
            watching.bootIdentity = 2
            watching.observer = { event in
                guard case .indexDamaged(let error) = event else { return }
                found.withLock { $0 = error }
                isFound.open()
            }
            let store = try Store(at: path, watching)
            isFound.block()
            #expect(found.withLock { $0?.code } == .corruption)
            try #expect(code { try store.get("1") } == .corruption)
            try #expect(code { try store.put([1], for: "k", PutOptions(durability: .durable)) } == .corruption)
            try? store.close()
            // However long it takes to come to the damage.
            let next = try find(path, boot: 2)
            #expect(next.walk == .first && next.limit == nil)
            try #expect(code { try Store(at: path, watching) } == .corruption)
            try Store.rebuildIndex(at: path, configuration)
            try finish(Store(at: path, configuration))
        }
    }
}
