import LMDB
import Locks
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// Bodies that are part of their entry's record.
@Suite struct EmbeddedTests {
    private static let configuration = Configuration.testing { $0.embeddingThreshold = .kibibytes(1) }

    private func rows(_ database: KeyPath<Index, Database>, _ store: Store) throws -> Int {
        try store.engine.read { try $0.statistics(store.engine.index[keyPath: database]).entries }
    }

    private func isEmbedded(_ key: Key, _ store: Store) throws -> Bool {
        try store.flush()
        let record = try store.engine.read { try store.engine.index.entry(IndexKey.bytes(for: key), $0) }
        return try #require(record).embedded != nil
    }

    // MARK: What is embedded

    @Test(arguments: [(0, true), (1, true), (1024, true), (1025, false), (5000, false)])
    func bodiesUpToTheThresholdAre(_ length: Int, _ expected: Bool) throws {
        try withStore(configuration: Self.configuration) { store in
            let bytes = body(length)
            try #expect(store.put(bytes, for: "k") == Digest.of(bytes))
            try #expect(isEmbedded("k", store) == expected)
            try #expect(rows(\.blobs, store) == (expected ? 0 : 1) && rows(\.digests, store) == (expected ? 0 : 1))
            let statistics = try store.statistics()
            #expect(statistics.blobCount == 1 && statistics.storedBytes.bytes == Int64(length))
            #expect(statistics.logicalBytes.bytes == Int64(length))
            let attributes = try #require(try store.attributes(of: "k"))
            #expect(attributes.digest == Digest.of(bytes) && attributes.length.bytes == Int64(length))
            #expect(attributes.isInline == (length <= 4096) && attributes.references == 1)
            let entry = try #require(try store.get("k"))
            try #expect(entry.body.bytes() == bytes && entry.digest == Digest.of(bytes))
            #expect(entry.attributes.digest == attributes.digest && entry.attributes.length == attributes.length)
        }
    }

    @Test func noneIsWithAThresholdOfZero() throws {
        try withStore { store in
            try store.put(body(0), for: "a")
            try store.put(body(10), for: "b")
            try #expect(!isEmbedded("a", store) && !isEmbedded("b", store))
        }
    }

    /// A record that does not share a page with another has pages of its own, which cost a whole page at least.
    @Test func bodiesThatDoNotFitHalfAPageBesideTheRestAreNot() throws {
        try withStore(configuration: Self.configuration) { store in
            try store.put(body(1000), for: "a", PutOptions(metadata: body(500)))
            try #expect(isEmbedded("a", store))
            let rest = store.engine.index.environment.pageSize / 2
            try store.put(body(1000), for: "b", PutOptions(metadata: body(rest - 1000)))
            try #expect(!isEmbedded("b", store))
            let long = Key(String(repeating: "k", count: rest))
            try store.put(body(1000), for: long)
            try #expect(!isEmbedded(long, store))
        }
    }

    @Test func eachWayOfReadingFindsThem() async throws {
        try await withStore(configuration: Self.configuration) { store in
            let bytes = body(300)
            try await store.put(bytes, for: "k", PutOptions(tags: ["t"], metadata: [1, 2]))
            try await store.perform { try $0.flush() }
            try #expect(store.contains("k") && store.bytes("k") == bytes)
            try #expect(store.withBody(of: "k") { Array($0.withUnsafeBytes { Array($0) }) } == bytes)
            var buffer = [UInt8](repeating: 0, count: 400)
            let count = try buffer.withUnsafeMutableBytes { try store.read("k", into: $0) }
            #expect(count == 300 && Array(buffer[..<300]) == bytes)
            try await #expect(store.get("k")?.metadata == [1, 2])
            let many = try await store.perform { try $0.get(["k", "missing"]).map { try $0?.body.bytes() } }
            #expect(many == [bytes, nil])
            var listed: [Attributes] = []
            for try await attributes in try store.entries(.tag("t")) { listed.append(attributes) }
            #expect(listed.map(\.key) == ["k"] && listed.first?.digest == Digest.of(bytes))
        }
    }

    // MARK: Changes

    /// Counters are compared with what is there when the store is finished.
    @Test func aKeyChangesItsFormWithItsBody() throws {
        try withStore(configuration: Self.configuration) { store in
            for (step, length) in [10, 2000, 20, 9000, 30, 30, 0, 1024, 1025, 5].enumerated() {
                try store.put(body(length, step), for: "k", PutOptions(isPinned: step == 1))
                if step % 2 == 0 { try store.flush() }
                try #expect(store.bytes("k") == body(length, step))
            }
            try store.flush()
            try #expect(rows(\.blobs, store) == 0 && store.statistics().blobCount == 1)
            try #expect(store.attributes(of: "k")?.isPinned == true)
            try store.remove("k")
            try store.flush()
            let statistics = try store.statistics()
            #expect(statistics.blobCount == 0 && statistics.storedBytes == .zero && statistics.logicalBytes == .zero)
        }
    }

    @Test func whatIsChangedBesideTheBodyKeepsIt() throws {
        try withStore(configuration: Self.configuration) { store in
            try store.put(body(1000), for: "k")
            try store.flush()
            let entry = try #require(try store.get("k"))
            try #expect(store.update(entry, metadata: body(3000)))
            try #expect(store.pin("k") && store.touch("k", lifetime: .duration(.seconds(50))))
            try #expect(isEmbedded("k", store) && store.bytes("k") == body(1000))
            try #expect(store.get("k")?.metadata == body(3000))
            _ = try store.get("k")
            try store.flush()
            try #expect(store.attributes(of: "k")?.hitCount == 4)
            let last = try #require(try store.get("k"))
            try #expect(store.update(last, metadata: []) && store.bytes("k") == body(1000))
        }
    }

    @Test func displacementTakesTheLeastRecentlyUsed() throws {
        let configuration = Configuration.testing(budget: Budget(entries: 10)) { $0.embeddingThreshold = 100 }
        try withStore(configuration: configuration) { store in
            for number in 0..<10 { try store.put(body(number, number), for: Key("\(number)")) }
            try store.flush()
            for number in 0..<5 { _ = try store.get(Key("\(number)")) }
            try store.flush()
            for number in 10..<13 { try store.put(body(number), for: Key("\(number)")) }
            try store.flush()
            let left = Set(try store.keys())
            #expect(left.count <= 10 && left.isSuperset(of: (0..<5).map { Key("\($0)") }) && !left.contains("5"))
        }
    }

    // MARK: By content

    private func expect(_ store: Store, finds bytes: [UInt8]) throws {
        let digest = Digest.of(bytes)
        try #expect(store.contains(digest: digest) && store.missing(of: [digest, Digest.of([])]) == [Digest.of([])])
        try #expect(store.body(digest: digest)?.bytes() == bytes)
        try #expect(store.bodies(digests: [digest, Digest.of([])]).map { try $0?.bytes() } == [bytes, nil])
    }

    private func strays(_ store: Store) throws -> UInt64 {
        try store.flush()
        return try store.engine.state().strayCount
    }

    /// Its digest leads to it where it was put by content; elsewhere a walk does.
    @Test func theyAreFoundByDigest() throws {
        try withStore(configuration: Self.configuration) { store in
            let (bytes, digest) = (body(100), Digest.of(body(100)))
            try store.put(bytes, for: "elsewhere")
            try #expect(strays(store) == 1)
            try expect(store, finds: bytes)
            let key = try store.putByContent(bytes)
            try #expect(key == Key(digest) && isEmbedded(key, store) && strays(store) == 1)
            try store.remove("elsewhere")
            try #expect(strays(store) == 0)
            try expect(store, finds: bytes)
            try store.remove(key)
            try #expect(!store.contains(digest: digest) && store.body(digest: digest) == nil)
        }
    }

    /// The object server asks for what it put by content, and for a lot that is not there.
    @Test func serversDoNotWalk() async throws {
        try await withStore(configuration: Self.configuration) { store in
            let digest = try await store.put(body(100), for: "elsewhere")
            try await #expect(store.missing(of: [digest], lengths: [:]) == [digest])
            try await #expect(store.body(digest: digest) == nil)
            try await store.put(body(100), for: "shared", PutOptions().withSharedBody)
            try await #expect(store.missing(of: [digest], lengths: [:]) == [])
            try await #expect(store.body(digest: digest)?.bytes() == body(100))
        }
    }

    @Test func straysAreCountedThroughEachChange() throws {
        try withStore(configuration: Self.configuration) { store in
            let other = Digest.of(body(10))
            for (step, (key, length, count)) in [
                ("a", 10, 1), ("a", 2000, 0), ("a", 20, 1), ("b", 20, 2), (Key(other).text, 10, 2),
                (Key(other).text, 11, 3), (Key(other).text, 10, 2), ("b", 9000, 1),
            ].enumerated() {
                try store.put(body(length), for: Key(key))
                try #expect(strays(store) == UInt64(count), "step \(step)")
            }
            try store.clear()
            try #expect(strays(store) == 0)
        }
    }

    @Test func bytesUnderTheKeyOfAnotherDigestAreNotItsContent() throws {
        try withStore(configuration: Self.configuration) { store in
            let digest = Digest.of([1, 2, 3])
            try store.put([4, 5], for: Key(digest))
            try #expect(!store.contains(digest: digest) && store.body(digest: digest) == nil)
        }
    }

    @Test func contentIsPutUnderFurtherKeys() throws {
        try withStore(configuration: Self.configuration) { store in
            let bytes = body(100)
            _ = try store.putByContent(bytes)
            try store.put(body(50), for: "stray")
            var batch = WriteBatch()
            batch.put(contentOf: Digest.of(body(50)), for: "another")
            batch.put(contentOf: Digest.of(bytes), for: "copy")
            batch.put(contentOf: Digest.of([9]), for: "none")
            let results = try store.write(batch)
            try #expect(store.bytes("copy") == bytes && isEmbedded("copy", store))
            try #expect(store.bytes("another") == body(50))
            guard results.count == 3, case .absent = results[2] else {
                Issue.record("\(results)")
                return
            }
        }
    }

    @Test func aRemovalOfContentFindsThemAll() throws {
        try withStore(configuration: Self.configuration) { store in
            let (bytes, other) = (body(100), body(100, 1))
            for number in 0..<5 { try store.put(bytes, for: Key("\(number)")) }
            try store.put(other, for: "other")
            try store.flush()
            try #expect(store.keys(.content(Digest.of(bytes))).count == 5)
            var batch = WriteBatch()
            batch.put(bytes, for: "of this batch")
            batch.remove(digest: Digest.of(bytes))
            try store.write(batch)
            try #expect(store.keys() == ["other"])
        }
    }

    @Test func aLeaseOfContentKeepsThem() throws {
        let configuration = Configuration.testing(budget: Budget(entries: 5)) { $0.embeddingThreshold = 100 }
        try withStore(configuration: configuration) { store in
            try store.put(body(50), for: "kept")
            var batch = WriteBatch()
            batch.lease(digest: Digest.of(body(50)), for: .seconds(60))
            try store.write(batch)
            for number in 0..<10 { try store.put(body(50, number + 1), for: Key("\(number)")) }
            try store.flush()
            try #expect(store.contains("kept"))
            try #expect(store.attributes(of: "kept")?.leases?.count == 1)
        }
    }

    // MARK: Damage

    /// Changes a byte of the body of an entry, in the index.
    private func damage(_ key: String, _ store: Store) throws {
        try store.flush()
        try store.engine.mutate(.housekeeping) { mutation in
            let key = Array(key.utf8)
            var record = try #require(try mutation.record(key))
            record.embedded?.bytes[0] ^= 1
            try mutation.transaction.put(store.engine.index.entries, key, record.bytes)
            mutation.noteChange(trees: 1)
        }
    }

    @Test func aDamagedBodyIsAMissWhereReadsAreVerified() throws {
        try withStore(
            configuration: .testing {
                $0.embeddingThreshold = 100; $0.verification = .always
            }
        ) { store in
            try store.put(body(50), for: "k")
            try damage("k", store)
            try #expect(store.get("k") == nil)
            try #expect(store.withBody(of: "k") { _ in 1 } == nil)
            // The next put heals it.
            try store.put(body(50), for: "k")
            try #expect(store.bytes("k") == body(50))
        }
    }

    /// A put that an entry is in the way of heals one that no lookup would find.
    @Test func aDamagedBodyIsNotPresent() throws {
        try withStore(configuration: Self.configuration) { store in
            try store.put(body(50), for: "k")
            try damage("k", store)
            var batch = WriteBatch()
            batch.put(body(60), for: "k", unlessPresent: true)
            try store.write(batch).throwIfFailed()
            try #expect(store.bytes("k") == body(60))
        }
    }

    /// What works out the digest of a body finds that it is damaged; a hit copies the bytes and does not.
    @Test func aDamagedBodyIsReportedByWhatWorksOutItsDigest() throws {
        let reports = EngineMutex<[Digest]>([])
        try withStore(
            configuration: .testing {
                $0.embeddingThreshold = 100
                $0.observer = { event in
                    if case .damaged(let digest, _) = event { reports.withLock { $0.append(digest) } }
                }
            }
        ) { store in
            try store.put(body(50), for: "k")
            try store.put(body(51), for: "sound")
            try damage("k", store)
            let entry = try #require(try store.get("k"))
            #expect(!entry.isIntact && reports.withLock { $0.isEmpty })
            let found = entry.digest
            try #expect(store.attributes(of: "k") == nil)
            #expect(reports.withLock { $0 } == [found])
            try #expect(store.keys() == ["sound"])
            #expect(reports.withLock { $0 } == [found, found])
            try #expect(store.get("sound")?.isIntact == true)
            #expect(store.damagedBodies == 2)
            try store.remove("k")
        }
    }

    @Test func aDamagedRowOfTheAccessOrderHoldsNoCommitUp() throws {
        try withStore(configuration: Self.configuration) { store in
            for name in ["a", "b"] { try store.put(body(50), for: Key(name)) }
            try store.flush()
            let stamp = try store.engine.mutate(.housekeeping) { mutation in
                let record = try #require(try mutation.record(Array("a".utf8)))
                try mutation.transaction.put(store.engine.index.recency, record.stamp, [])
                mutation.noteChange(trees: 1)
                return record.stamp
            }
            #expect(stamp > 0)
            for name in ["a", "b"] { try #expect(store.bytes(Key(name)) == body(50)) }
            try #expect(store.touch("b"))
            _ = try store.touch("a")
            try store.flush()
            try #expect(store.check(repair: true).isRepaired)
            try #expect(store.bytes("a") == body(50))
        }
    }

    @Test func aCheckFindsDamageAndARepairRemovesTheEntry() throws {
        try withStore(configuration: Self.configuration) { store in
            for name in ["a", "b"] { try store.put(body(50), for: Key(name)) }
            try damage("a", store)
            let report = try store.check()
            #expect(report.violations.count == 1 && report.violations.first?.invariant == .I7)
            try #expect(store.check(repair: true).isRepaired)
            try #expect(store.keys() == ["b"] && store.bytes("b") == body(50))
        }
    }

    @Test func gcRemovesADamagedEntry() throws {
        try withStore(configuration: Self.configuration) { store in
            for name in ["a", "b"] { try store.put(body(50), for: Key(name)) }
            try damage("a", store)
            try #expect(store.collect().danglingEntries == 1)
            try #expect(store.keys() == ["b"])
        }
    }

    @Test func aRepairKeepsThem() throws {
        try withStore(configuration: Self.configuration) { store in
            for number in 0..<200 { try store.put(body(number * 10, number), for: Key("\(number)")) }
            try store.flush()
            try store.engine.mutate(.housekeeping) { mutation in
                mutation.state.storedBytes &+= 1
                mutation.noteChange(trees: 1)
            }
            try #expect(store.check(repair: true).isRepaired)
            for number in 0..<200 { try #expect(store.bytes(Key("\(number)")) == body(number * 10, number)) }
        }
    }

    @Test func aRebuildKeepsThem() throws {
        try withDirectory { path in
            let store = try Store(at: path, Self.configuration)
            for number in 0..<200 { try store.put(body(number, number), for: Key("\(number)")) }
            try store.close()
            try IndexPages.wipe(IndexPages.leaf(of: "recency", path), path)
            try #expect(Store.rebuildIndex(at: path, Self.configuration).lostEntries == 0)
            let again = try Store(at: path, Self.configuration)
            for number in 0..<200 { try #expect(again.bytes(Key("\(number)")) == body(number, number)) }
            try finish(again)
        }
    }
}
