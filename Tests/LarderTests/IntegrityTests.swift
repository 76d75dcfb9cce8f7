import Locks
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// Damaged and vanished bodies: a miss, never wrong bytes; quarantined; healed by the next put.
/// The fault modelled is a file changed behind the store's back, as by a failing disk.
@Suite struct IntegrityTests {
    final class Damage: Sendable {
        private let list = Mutex<[Digest]>([])

        var digests: [Digest] { list.withLock { $0 } }

        func note(_ event: StoreEvent) {
            if case .damaged(let digest, _) = event { list.withLock { $0.append(digest) } }
        }
    }

    private let bytes = body(50_000)
    private var digest: Digest { Digest.of(bytes) }

    private func blob(_ path: FilePath) -> FilePath { path.appending("blobs").appending(Layout.blob(digest)) }

    @Test(arguments: [0, 25_000, 49_999])
    func aFlippedByteIsFoundOnReadingWhereAllIsVerified(_ offset: Int64) throws {
        try withDirectory { path in
            let damage = Damage()
            let store = try Store(
                at: path,
                .testing {
                    $0.verification = .always
                    $0.observer = { damage.note($0) }
                })
            try store.put(bytes, for: "k")
            try store.put(bytes, for: "same")
            try store.put([1], for: "other")
            try store.flush()
            try #expect(store.bytes("k") == bytes)
            try TestFiles.flipByte(of: blob(path), at: offset)
            try expectDamaged(store)
            #expect(damage.digests == [digest])
            // The fault lifted: the next put of these bytes heals every entry that shares them.
            try store.put(bytes, for: "new")
            try store.flush()
            for key in ["k", "same", "new"] { try #expect(store.bytes(Key(key)) == bytes) }
            try finish(store)
        }
    }

    /// With `.never` bytes are returned as they are, after an unclean end, too; a check still finds them.
    @Test func whereNothingIsVerifiedTheBytesAreReturnedAsTheyAre() throws {
        try withDirectory { path in
            let damage = Damage()
            let configuration = Configuration.testing {
                $0.verification = .never
                $0.observer = { damage.note($0) }
            }
            let store = try Store(at: path, configuration)
            try store.put(bytes, for: "k")
            try store.flush()
            try TestFiles.flipByte(of: blob(path), at: 100)
            let found = try #require(try store.bytes("k"))
            #expect(found != bytes && found.count == bytes.count)
            #expect(damage.digests == [])
            try #expect(store.check(repair: true).violations.map(\.invariant) == [.I7])
            try #expect(store.get("k") == nil)
            try finish(store)
        }
    }

    private func expectDamaged(_ store: Store) throws {
        for key in ["k", "same"] {
            try #expect(store.get(Key(key)) == nil)
            try #expect(store.contains(Key(key)) == false)
            try #expect(store.withBody(of: Key(key)) { _ in 1 } == nil)
        }
        try #expect(store.bytes("other") == [1])
        #expect(TestFiles.names(in: store.path.appending("quarantine")) == [digest.hexadecimal])
        #expect(!TestFiles.exists(blob(store.path)))
        try #expect(store.statistics().allocatedBytes.bytes == recount(store.path))
    }

    @Test func aShortenedFileIsFoundWhereAllIsVerified() throws {
        try withStore(configuration: .testing { $0.verification = .always }) { store in
            try store.put(bytes, for: "k")
            try store.flush()
            try TestFiles.truncate(blob(store.path), to: 49_999)
            try #expect(store.get("k") == nil)
            try store.put(bytes, for: "k")
            try #expect(store.bytes("k") == bytes)
        }
    }

    @Test func aFlippedByteInTheIndexIsFoundWhereAllIsVerified() async throws {
        try await withDirectory { path in
            let inline = body(3000, 5)
            let damage = Damage()
            let store = try Self.withFlippedByte(of: inline, path, damage)
            // The finding is written down by a task, which needs a thread that this test must not hold.
            try await waitWhile { TestFiles.names(in: path.appending("quarantine")).isEmpty }
            try Self.putAgain(inline, store)
            #expect(damage.digests.allSatisfy { $0 == Digest.of(inline) })
            try finish(store)
        }
    }

    /// A store in which a byte of the body under "k" has changed, which a lookup has found.
    private static func withFlippedByte(of inline: [UInt8], _ path: FilePath, _ damage: Damage) throws -> Store {
        let first = try Store(at: path, .testing())
        try first.put(inline, for: "k")
        try first.close()
        let data = path.appending("index/data.mdb")
        let index = try TestFiles.read(data)
        let start = try #require(index.indices.first { index[$0...].starts(with: inline) })
        try TestFiles.flipByte(of: data, at: Int64(start + 1500))
        let store = try Store(
            at: path,
            .testing {
                $0.verification = .always
                $0.observer = { damage.note($0) }
            })
        try #expect(store.get("k") == nil)
        return store
    }

    private static func putAgain(_ inline: [UInt8], _ store: Store) throws {
        try store.flush()
        try store.put(inline, for: "k")
        try store.flush()
        try #expect(store.bytes("k") == inline)
    }

    // MARK: After a new start of the machine

    private func configuration(boot: UInt64, _ damage: Damage? = nil) -> Configuration {
        .testing {
            $0.bootIdentity = boot
            $0.isScrubbing = false
            if let damage { $0.observer = { damage.note($0) } }
        }
    }

    @Test func bodiesNotSyncedBeforeTheMachineWentDownAreVerifiedOnce() throws {
        try withPowerLoss(configuration(boot: 1)) { first in
            try first.put(bytes, for: "k")
            try first.put(bytes, for: "same")
            try first.put([1], for: "other")
        } _: { path in
            try TestFiles.flipByte(of: blob(path), at: 100)
            // In the same run of the machine nothing is suspect.
            let same = try Store(at: path, configuration(boot: 1))
            try #expect(same.bytes("k") != nil)
            try TestFiles.copy(path, to: path.appending("../second").lexicallyNormalized())
            try same.close()
            let damage = Damage()
            let second = try Store(
                at: path.appending("../second").lexicallyNormalized(), configuration(boot: 2, damage))
            try expectDamaged(second)
            #expect(damage.digests == [digest])
            try second.put(bytes, for: "k")
            try second.flush()
            try #expect(second.bytes("k") == bytes)
            try finish(second)
        }
    }

    @Test func bodiesFoundGoodAreNotVerifiedAgain() throws {
        try withPowerLoss(configuration(boot: 1), of: { try $0.put(bytes, for: "k") }) { path in
            let second = try Store(at: path, configuration(boot: 2))
            try #expect(second.bytes("k") == bytes)
            #expect(second.engine.damage.verifiedCount == 1)
            try finish(second)
        }
    }

    @Test func suspicionSurvivesSeveralStarts() throws {
        try withDirectory { directory in
            var path = directory.appending("0")
            for boot in 1...3 as ClosedRange<UInt64> {
                let store = try Store(at: path, configuration(boot: boot))
                try store.put(body(9000, Int(boot)), for: Key("k\(boot)"))
                if boot == 1 { try store.put(bytes, for: "k") }
                try store.flush()
                let next = directory.appending("\(boot)")
                try TestFiles.copy(path, to: next)
                try store.close()
                path = next
            }
            try TestFiles.flipByte(of: blob(path), at: 100)
            let last = try Store(at: path, configuration(boot: 4))
            try #expect(last.get("k") == nil)
            for boot in 1...3 { try #expect(last.bytes(Key("k\(boot)")) == body(9000, boot)) }
            try finish(last)
        }
    }

    @Test func bodiesOfACheckpointAreNotSuspect() throws {
        try withPowerLoss(configuration(boot: 1)) { first in
            try first.put(bytes, for: "synced")
            try first.flush()
            try first.engine.requireWriting().checkpoints.make()
            try first.put(body(9000), for: "later")
        } _: { path in
            let second = try Store(at: path, configuration(boot: 2))
            try #expect(second.bytes("synced") == bytes)
            try #expect(second.bytes("later") == body(9000))
            #expect(second.engine.damage.verifiedCount == 1)
            try finish(second)
        }
    }

    // MARK: Vanished

    @Test func aVanishedFileIsAMissAndHealsWithTheNextPut() throws {
        let damage = Damage()
        try withStore(configuration: .testing { $0.observer = { damage.note($0) } }) { store in
            try store.put(bytes, for: "k")
            try store.put(bytes, for: "same")
            try store.flush()
            TestFiles.remove(blob(store.path))
            try #expect(store.get("k") == nil)
            try #expect(store.get("k") == nil)
            try #expect(store.get("same") == nil)
            #expect(damage.digests == [digest])
            try #expect(store.statistics().allocatedBytes.bytes == recount(store.path))
            try store.put(bytes, for: "k")
            try store.flush()
            try #expect(store.bytes("k") == bytes)
            try #expect(store.bytes("same") == bytes)
        }
    }

    @Test func aReadOnlyStoreMissesWhatVanishedAndChangesNothing() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            try store.put(bytes, for: "k")
            try store.close()
            TestFiles.remove(blob(path))
            let reader = try Store(at: path, .testing { $0.isReadOnly = true })
            try #expect(reader.get("k") == nil)
            try #expect(reader.get("k") == nil)
            try reader.close()
            let again = try Store(at: path, .testing())
            try again.put(bytes, for: "k")
            try again.flush()
            try again.collect()
            try again.put(bytes, for: "k")
            try #expect(again.bytes("k") == bytes)
            try again.close()
        }
    }

    @Test func collectingRemovesDanglingEntriesAndOrphanFiles() throws {
        try withStore { store in
            try store.put(bytes, for: "dangling")
            try store.put(body(9000), for: "fine")
            try store.flush()
            TestFiles.remove(blob(store.path))
            let orphan = Digest.of([42])
            try TestFiles.write(body(7000), to: store.blobPath(orphan))
            let report = try store.collect()
            #expect(report.danglingEntries == 1)
            #expect(report.orphanBlobs == 1)
            try #expect(store.keys() == ["fine"])
            #expect(TestFiles.tree(store.path.appending("blobs")).count == 1)
        }
    }

    @Test func filesOfAStoreThatDiedAreSweptAtTheNextOpen() throws {
        try withDirectory { path in
            let first = try Store(at: path, .testing())
            try first.put([1], for: "k")
            try first.close()
            let dead = StagingToken(instance: 0x1234, sequence: 7)
            try TestFiles.write(body(9000), to: path.appending("staging").appending(dead.name))
            try TestFiles.write([], to: path.appending("staging").appending(Layout.instanceLock(0x1234)))
            try TestFiles.write(body(9000), to: path.appending("trash").appending(Layout.trash(dead, digest)))
            let second = try Store(at: path, .testing())
            #expect(second.stagedFiles == [])
            #expect(TestFiles.names(in: path.appending("trash")) == [])
            try #expect(second.bytes("k") == [1])
            try finish(second)
        }
    }
}
