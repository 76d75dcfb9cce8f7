import LMDB
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// What a review of encryption found.
@Suite struct EncryptionRegressionTests {
    private func configuration(_ change: (inout Configuration) -> Void = { _ in }) throws -> Configuration {
        try EncryptionTests.configuration(change)
    }

    /// Displacement looks at many rows for an entry with many tags, and still knows which entry it looks at.
    @Test func entriesWithManyTagsAreDisplaced() throws {
        let configuration = try configuration {
            $0.budget = Budget(bytes: .mebibytes(2))
            $0.version = "1"
        }
        try withStore(configuration: configuration) { store in
            // A claim, behind which every look at a lease opens a row.
            let claim = try store.partialWriter(for: "claimed")
            let lease = try store.lease(tag: "tag 7", for: .seconds(1000))
            let tags = (0..<60).map { "tag \($0 + 100)" }
            for number in 0..<300 {
                let options = PutOptions(tags: number == 3 ? tags + ["tag 7"] : tags, metadata: body(2_000, number))
                try store.put(body(3_000, number), for: Key("\(number)"), options)
            }
            try store.flush()
            try #expect(store.bytes("3") == body(3_000, 3) && store.bytes("299") == body(3_000, 299))
            #expect(try store.statistics().entryCount < 300)
            lease.release()
            claim.cancel()
        }
    }

    /// Changes the rows of a database as one does who has the files only.
    private func changeRows(
        _ path: FilePath, _ name: String, _ change: (Int, inout [UInt8]) -> Void
    ) throws {
        let environment = try Environment(path: path.appending("index").string)
        defer { environment.close() }
        let database = try #require(try environment.openDatabase(name, order: .bytes, create: false))
        try environment.write { transaction in
            var rows: [([UInt8], [UInt8])] = []
            try transaction.reading.withCursor(database) { cursor in
                var pair = try cursor.first()
                while let (key, value) = pair {
                    rows.append((Array(key), Array(value)))
                    pair = try cursor.next()
                }
            }
            for (place, (key, value)) in rows.enumerated() {
                var value = value
                change(place, &value)
                try transaction.put(database, key, value)
            }
        }
    }

    /// In the state, and the names of versions.
    @Test func damagedRowsOfTheStoreItselfEndNothing() throws {
        let configuration = try configuration { $0.version = "1" }
        for damaged in 0..<3 {
            try withDirectory { directory in
                let path = directory.appending("store")
                let store = try Store(at: path, configuration)
                try store.put([1], for: "k")
                try store.close()
                try changeRows(path, "meta") { if $0 == damaged { $1[20] ^= 1 } }
                do {
                    let again = try Store(at: path, configuration)
                    _ = try again.get("k")
                    try again.close()
                } catch let error as LarderError {
                    #expect(error.code == .corruption)
                    try Store.rebuildIndex(at: path, configuration)
                    try finish(Store(at: path, configuration))
                }
            }
        }
    }

    /// The other entries of a tag are still found, and removed.
    @Test func aDamagedRowOfATagHidesNoOther() throws {
        let configuration = try configuration()
        try withDirectory { directory in
            let path = directory.appending("store")
            let store = try Store(at: path, configuration)
            for number in 0..<10 { try store.put([1], for: Key("\(number)"), PutOptions(tags: ["t"])) }
            try store.close()
            try changeRows(path, "tags") { if $0 == 4 { $1[20] ^= 1 } }
            let again = try Store(at: path, configuration)
            try #expect(again.keys(.tag("t")).count == 9)
            try #expect(again.remove(.tag("t")) == 9)
            _ = try again.check(repair: true)
            try #expect(again.remove(.tag("t")) == 1)
            try finish(again)
        }
    }

    /// A walk over all entries in several steps passes those that cannot be read.
    @Test func aWalkPassesDamagedEntries() throws {
        let configuration = try configuration()
        try withDirectory { directory in
            let path = directory.appending("store")
            let store = try Store(at: path, configuration)
            for number in 0..<3_000 { try store.put([1], for: Key("\(number)")) }
            try store.close()
            try changeRows(path, "entries") { if $0 % 10 == 0 { $1[20] ^= 1 } }
            let again = try Store(at: path, configuration)
            try #expect(Set(again.keys()).count == 2_700 && again.keys().count == 2_700)
            _ = try again.check(repair: true)
            try #expect(again.statistics().entryCount == 2_700)
            try finish(again)
        }
    }

    /// Nothing was ever stored: it becomes what is asked for.
    @Test(arguments: [true, false]) func anInterruptedCreationIsBegunAgain(_ isEncryptedFirst: Bool) throws {
        try withDirectory { directory in
            let path = directory.appending("store")
            let first = try configuration { $0.encryption = isEncryptedFirst ? .random() : nil }
            try Store(at: path, first).close()
            // As it is before `FORMAT` is written.
            for name in ["FORMAT", "index/ledger"] { TestFiles.remove(path.appending(name)) }
            let second = try configuration { if isEncryptedFirst { $0.encryption = nil } }
            let store = try Store(at: path, second)
            #expect(store.isEncrypted != isEncryptedFirst)
            try store.put([1], for: "k")
            try finish(store)
        }
    }

    /// A store that lost `FORMAT` and the ledger is not one in the making, though it has no body files.
    @Test func aStoreOfSmallBodiesIsNotBegunAgain() throws {
        let configuration = try configuration()
        try withDirectory { directory in
            let path = directory.appending("store")
            let store = try Store(at: path, configuration)
            for number in 0..<3 { try store.put(body(100, number), for: Key("\(number)")) }
            try store.close()
            for name in ["FORMAT", "index/ledger"] { TestFiles.remove(path.appending(name)) }
            try #expect(code { try Store(at: path, self.configuration { $0.encryption = .random() }) } == .wrongKey)
            try #expect(code { try Store(at: path, .testing { $0.encryption = nil }) } == .wrongKey)
            let again = try Store(at: path, configuration)
            try #expect(again.statistics().entryCount == 3)
            try finish(again)
        }
    }

    /// Its process has the lock that a change would wait for.
    @Test func theKeyOfAnEphemeralStoreStays() throws {
        let key = EncryptionKey.random()
        let store = try Store.ephemeral(configuration { $0.encryption = key })
        try #expect(code { try Store.changeKey(at: store.path, from: key, to: .random()) } == .locked)
        try store.close()
    }

    /// All that says so from outside is lost: the index says it, and nothing is changed until the file is back.
    @Test func anIndexWithoutItsKeyIsLeftAlone() throws {
        let configuration = try configuration()
        let plain = Configuration.testing { $0.encryption = nil }
        try withDirectory { directory in
            let path = directory.appending("store")
            let store = try Store(at: path, configuration)
            for number in 0..<50 { try store.put(body(9_000, number), for: Key("\(number)")) }
            try store.close()
            let (key, format) = (
                try TestFiles.read(path.appending("encryption")), try TestFiles.read(path.appending("FORMAT"))
            )
            for contents in [nil, [], Array("larder\nformat 4\nstore \(String(repeating: "0", count: 32))\n".utf8)] {
                TestFiles.remove(path.appending("encryption"))
                TestFiles.remove(path.appending("FORMAT"))
                if let contents { try TestFiles.write(contents, to: path.appending("FORMAT")) }
                try #expect(code { try Store(at: path, plain) } != nil)
                try #expect(code { try Store.rebuildIndex(at: path, plain) } == .corruption)
                try #expect(code { try Store(at: path, plain) } == .corruption)
            }
            try TestFiles.write(key, to: path.appending("encryption"))
            try TestFiles.write(format, to: path.appending("FORMAT"))
            let again = try Store(at: path, configuration)
            try #expect(again.statistics().entryCount == 50)
            try finish(again)
        }
    }

    /// The sealed key of another store, which its key opens.
    @Test func theKeyFileOfAnotherStoreIsRefused() throws {
        let configuration = try configuration()
        try withDirectory { directory in
            let (one, two) = (directory.appending("one"), directory.appending("two"))
            for path in [one, two] {
                let store = try Store(at: path, configuration)
                try store.put([1], for: "k")
                try store.close()
            }
            let own = try TestFiles.read(one.appending("encryption"))
            try TestFiles.write(try TestFiles.read(two.appending("encryption")), to: one.appending("encryption"))
            let before = try TestFiles.read(one.appending("index/data.mdb"))
            try #expect(code { try Store(at: one, configuration) } == .wrongKey)
            try #expect(code { try Store.rebuildIndex(at: one, configuration) } == .wrongKey)
            #expect(try TestFiles.read(one.appending("index/data.mdb")) == before)
            try TestFiles.write(own, to: one.appending("encryption"))
            let again = try Store(at: one, configuration)
            try #expect(again.bytes("k") == [1])
            try finish(again)
        }
    }

    /// The last chunk of most bodies is short: to read on behind it is not damage.
    @Test(arguments: [300_000, 1 << 20, 1 << 20 | 1]) func bodiesOfPartsAreCompleted(_ length: Int) throws {
        try withStore(configuration: configuration()) { store in
            let bytes = body(length)
            let first = try store.partialWriter(for: "k", total: ByteCount(length))
            try first.write(bytes[..<100], at: 0)
            try first.suspend()
            let second = try store.partialWriter(for: "k", total: ByteCount(length))
            try second.write(bytes[100...], at: 100)
            try second.commit()
            try #expect(store.bytes("k") == bytes)
        }
    }

    @Test func aDamagedBodyInProgressIsAMiss() throws {
        try withStore(configuration: configuration()) { store in
            let bytes = body(200_000)
            let writer = try store.partialWriter(for: "k", total: 300_000)
            try writer.write(bytes, at: 0)
            try writer.suspend()
            try store.flush()
            let file = try #require(TestFiles.tree(store.path.appending("blobs")).first { $0.contains("/") })
            try TestFiles.flipByte(of: store.path.appending("blobs").appending(file), at: 300)
            let partial = try #require(try store.partialBody(of: "k"))
            try #expect(code { try partial.bytes(in: 0..<100) as [UInt8] } == .corruption)
            while try store.partialBody(of: "k") != nil { usleep(1_000) }
            try store.put(bytes, for: "k")
            try #expect(store.bytes("k") == bytes)
        }
    }

    /// Damage makes a miss where the body is read at once.
    @Test func aDamagedFileIsAMiss() throws {
        try withStore(configuration: configuration()) { store in
            try store.put(body(100_000), for: "k")
            try store.flush()
            let name = try #require(TestFiles.tree(store.path.appending("blobs")).first)
            try TestFiles.flipByte(of: store.path.appending("blobs").appending(name), at: 50_000)
            try #expect(store.get("k") == nil)
            try store.put(body(100_000), for: "k")
            try store.flush()
            try #expect(store.bytes("k") == body(100_000))
        }
    }
}
