import Foundation
import LMDB
import Larder
import SystemPackage
import Testing
import TestSupport

/// One test for each bug that was found and fixed; each failed before.
struct RegressionTests {
    private func withFreshStore(
        _ configuration: Configuration = Configuration(), _ body: (Store, FilePath) throws -> Void
    ) throws {
        let path = temporaryStorePath()
        defer { removeTree(path) }
        let store = try Store(at: path, configuration)
        try body(store, path)
        let report = try store.check()
        #expect(report.violations.map(\.description) == [])
        #expect(try store.statistics().allocatedBytes.bytes == recount(path))
        try store.close()
    }

    private func bytes(_ count: Int, _ seed: UInt64) -> [UInt8] {
        var generator = SeededGenerator(seed: seed)
        return (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
    }

    @Test func memoryOnlyEntryIsSeenBeforeTheNextCommit() throws {
        var configuration = Configuration()
        configuration.commitDelay = .seconds(3600)
        try withFreshStore(configuration) { store, _ in
            try store.put([1], for: "k")
            try store.put([2], for: "k", PutOptions(storagePolicy: .memoryOnly))
            #expect(try store.get("k")?.body.bytes() == [2])
            #expect(try store.contains("k"))
            try store.put([3], for: "k")
            #expect(try store.get("k")?.body.bytes() == [3])
        }
    }

    @Test func flushWritesAccessesEvenWithoutPuts() throws {
        var configuration = Configuration()
        configuration.commitDelay = .seconds(3600)
        try withFreshStore(configuration) { store, _ in
            try store.put([1], for: "k")
            try store.flush()
            for _ in 0..<3 { _ = try store.get("k") }
            #expect(try store.attributes(of: "k")?.hitCount == 3)
        }
    }

    @Test func keyThatIsOverwrittenAllTheTimeIsCommitted() throws {
        var configuration = Configuration()
        configuration.commitDelay = .milliseconds(5)
        try withFreshStore(configuration) { store, path in
            var round: UInt8 = 0
            // Another process sees it, although nothing is flushed here. Would it not be committed, this never ended.
            while recountEntries(path) != 1 {
                for _ in 0..<2000 {
                    round &+= 1
                    try store.put([round], for: "hot")
                }
            }
        }
    }

    private func recountEntries(_ path: FilePath) -> Int {
        let worker = try? Worker(store: path.string, mode: "count", seed: 0, count: 1)
        return worker?.finish().compactMap { $0.hasPrefix("N ") ? Int($0.dropFirst(2)) : nil }.first ?? -1
    }

    @Test(arguments: [TransferMethod.move, .link, .copy])
    func largeFileIsAdopted(method: TransferMethod) throws {
        try withFreshStore { store, path in
            let source = FilePath(path.string + ".source")
            defer { removeTree(source) }
            let body = bytes(3 << 20, 1)
            try Data(body).write(to: URL(fileURLWithPath: source.string))
            let digest = try store.adopt(source, for: "k", method: method)
            #expect(digest == Digest.of(body))
            #expect(try store.get("k")?.body.bytes() == body)
            #expect(FileManager.default.fileExists(atPath: source.string) == (method != .move))
        }
    }

    @Test func openThatFailsLateLeavesTheProcessAlive() throws {
        let path = temporaryStorePath()
        defer { removeTree(path) }
        let store = try Store(at: path)
        for number in 0..<12 {
            try store.put(bytes(200_000, UInt64(number)), for: Key("\(number)"), PutOptions(isPinned: true))
        }
        try store.close()
        let error = #expect(throws: LarderError.self) {
            _ = try Store(at: path, Configuration(budget: Budget(bytes: .mebibytes(1))))
        }
        #expect(error?.code == .noSpace)
        let again = try Store(at: path, Configuration(budget: .unlimited))
        #expect(try again.statistics().entryCount == 12)
        #expect(try again.check().isClean)
        try again.close()
    }

    @Test func accessesKeepTheByteBudget() throws {
        let budget = ByteCount.mebibytes(5)
        try withFreshStore(Configuration(budget: Budget(bytes: budget))) { store, path in
            for number in 0..<7000 { try store.put(bytes(100, UInt64(number)), for: Key("http://t.test/\(number)")) }
            try store.flush()
            let sampler = BudgetSampler(path: path)
            for _ in 0..<3 {
                for number in 0..<7000 { _ = try store.get(Key("http://t.test/\(number)")) }
                try store.flush()
            }
            #expect(sampler.stop() <= budget.bytes)
        }
    }

    @Test func loweredBudgetKeepsWhatFits() throws {
        try withFreshStore { store, _ in
            for number in 0..<4000 { try store.put(bytes(4000, UInt64(number)), for: Key("\(number)")) }
            try store.setBudget(Budget(bytes: .mebibytes(12)))
            let statistics = try store.statistics()
            #expect(statistics.allocatedBytes <= .mebibytes(12))
            // 12 MiB hold some 1,200 entries of two pages each; the youngest stay.
            #expect(statistics.entryCount > 1000)
            #expect(try store.contains("3999"))
        }
    }

    @Test func removedShardDirectoryIsMadeAgain() throws {
        var configuration = Configuration()
        configuration.inlineThreshold = .kibibytes(1)
        try withFreshStore(configuration) { store, path in
            for shard in 0..<256 {
                let digits = String(shard, radix: 16)
                removeTree(path.appending("blobs").appending((shard < 16 ? "0" : "") + digits))
            }
            let body = bytes(5000, 3)
            try store.put(body, for: "k")
            try store.flush()
            #expect(try store.get("k")?.body.bytes() == body)
            try store.collect()
            #expect(try store.get("k")?.body.bytes() == body)
        }
    }

    @Test func putAfterRemovalStartsAnew() throws {
        var configuration = Configuration()
        configuration.commitDelay = .seconds(3600)
        try withFreshStore(configuration) { store, _ in
            try store.put([1], for: "k", PutOptions(isPinned: true))
            try store.flush()
            try store.remove("k")
            try store.put([2], for: "k")
            #expect(try store.attributes(of: "k")?.isPinned == false)
        }
    }

    @Test func emptyKeyIsAMissAndNoKeyToPut() throws {
        try withFreshStore { store, _ in
            let miss = try store.get("")
            #expect(miss == nil)
            #expect(try store.contains("") == false)
            let error = #expect(throws: LarderError.self) { try store.put([1], for: "") }
            #expect(error?.code == .invalidArgument)
        }
    }

    @Test func exportDoesNotOverwrite() throws {
        try withFreshStore { store, path in
            try store.put([1, 2], for: "k")
            let target = FilePath(path.string + ".out")
            defer { removeTree(target) }
            #expect(try store.export("k", to: target))
            let error = #expect(throws: LarderError.self) { try store.export("k", to: target) }
            #expect(error?.code == .invalidArgument)
        }
    }

    @Test func largeMetadataCountsAgainstThePendingLimit() throws {
        var configuration = Configuration()
        configuration.pendingLimit = .mebibytes(2)
        configuration.commitDelay = .seconds(3600)
        try withFreshStore(configuration) { store, path in
            let metadata = [UInt8](repeating: 7, count: 1 << 20)
            for number in 0..<12 { try store.put([1], for: Key("\(number)"), PutOptions(metadata: metadata)) }
            // Most of it was committed without a flush, as the limit asks.
            #expect(recountEntries(path) >= 8)
        }
    }

    @Test func movedFileThatCannotBeKeptGoesBack() throws {
        try withFreshStore(Configuration(budget: Budget(entries: 1))) { store, path in
            try store.put([1], for: "pinned", PutOptions(isPinned: true))
            try store.flush()
            let source = FilePath(path.string + ".source")
            defer { removeTree(source) }
            let body = bytes(1 << 20, 5)
            try Data(body).write(to: URL(fileURLWithPath: source.string))
            let error = #expect(throws: LarderError.self) { try store.adopt(source, for: "k", method: .move) }
            #expect(error?.code == .noSpace)
            #expect(try Data(contentsOf: URL(fileURLWithPath: source.string)) == Data(body))
            // A move waits as a durable put does: its failure is reported once.
            try store.flush()
        }
    }

    @Test func putOverAVanishedBodyStoresItAgain() throws {
        var configuration = Configuration()
        configuration.inlineThreshold = .kibibytes(1)
        configuration.logger.logLevel = .critical
        try withFreshStore(configuration) { store, path in
            let body = bytes(9000, 6)
            try store.put(body, for: "k")
            try store.flush()
            let name = Digest.of(body).hexadecimal
            removeTree(path.appending("blobs").appending(String(name.prefix(2))).appending(name))
            try store.put(body, for: "k", PutOptions(durability: .durable))
            #expect(try store.get("k")?.body.bytes() == body)
        }
    }

    @Test func orphanIsNotTakenForABodyThatIsPutLater() throws {
        var configuration = Configuration()
        configuration.inlineThreshold = .kibibytes(1)
        try withFreshStore(configuration) { store, path in
            let body = bytes(9000, 7)
            let name = Digest.of(body).hexadecimal
            let orphan = path.appending("blobs").appending(String(name.prefix(2))).appending(name)
            try Data(bytes(9000, 8)).write(to: URL(fileURLWithPath: orphan.string))
            try store.put(body, for: "k")
            try store.flush()
            #expect(try store.get("k")?.body.bytes() == body)
        }
    }

    @Test func failureOfARelaxedPutIsKeptForTheCallersFlush() throws {
        var configuration = Configuration(budget: Budget(entries: 1))
        configuration.commitDelay = .seconds(3600)
        configuration.logger.logLevel = .critical
        try withFreshStore(configuration) { store, _ in
            try store.put([1], for: "pinned", PutOptions(isPinned: true))
            try store.flush()
            try store.put([2], for: "one too many")
            _ = try store.statistics()
            let error = #expect(throws: LarderError.self) { try store.flush() }
            #expect(error?.code == .noSpace)
        }
    }

    @Test func absurdLengthIsRefused() throws {
        try withFreshStore { store, _ in
            let error = #expect(throws: LarderError.self) {
                _ = try store.writer(for: "k", length: ByteCount(Int64.max))
            }
            #expect(error?.code == .tooLarge)
        }
    }

    @Test func collectionOfAStoreFullOfPinnedEntriesIsNoError() throws {
        var configuration = Configuration(budget: Budget(bytes: .mebibytes(2)))
        configuration.logger.logLevel = .critical
        try withFreshStore(configuration) { store, _ in
            for number in 0..<400 {
                do {
                    let options = PutOptions(isPinned: true, durability: .durable)
                    try store.put(bytes(9000, UInt64(number)), for: Key("\(number)"), options)
                } catch let error as LarderError where error.code == .noSpace {
                    break
                }
            }
            let count = try store.statistics().entryCount
            try store.collect()
            #expect(try store.statistics().entryCount == count && count > 20)
        }
    }

    /// Puts rows into the index of a closed store and removes them, so that pages are joined. Returns whether the file
    /// is shorter than its head says then.
    private func shorten(_ path: FilePath, _ count: Int) throws -> Bool {
        let environment = try Environment(path: path.appending("index").string)
        defer { environment.close() }
        let entries = try #require(try environment.openDatabase("entries", order: .bytes, create: false))
        let keys = (0..<count).map { Array("~\($0)".utf8) }
        try environment.write { transaction in for key in keys { try transaction.put(entries, key, body(200)) } }
        let transaction = try environment.readUnpooled { _ in
            try environment.write { try $0.put(entries, keys[0], [1]) }
            let transaction = try environment.beginWrite()
            for key in keys { try transaction.delete(entries, key) }
            return transaction
        }
        try transaction.commit()
        return try TestFiles.read(path.appending("index/data.mdb")).count / Int(getpagesize()) < environment.lastPage
            + 1
    }

    /// LMDB does not write pages that were given back before the commit; where those are the last, the file is shorter.
    @Test func anIndexWithoutItsLastFreePagesOpens() throws {
        var found = 0
        for count in 300..<400 where found < 3 {
            try withDirectory { path in
                let store = try Store(at: path, .testing())
                for number in 0..<200 { try store.put(body(300, number), for: Key("\(number)")) }
                try store.close()
                guard try shorten(path, count) else { return }
                found += 1
                let again = try Store(at: path, .testing())
                for number in 0..<200 { try #expect(again.bytes(Key("\(number)")) == body(300, number)) }
                for number in 0..<400 { try again.put(body(300, number), for: Key("new \(number)")) }
                try finish(again)
            }
        }
        try #require(found > 0, "no file was shorter than its head says: this shows nothing")
    }
}
