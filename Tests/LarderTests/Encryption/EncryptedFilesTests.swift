import Foundation
import LMDB
import SeededData
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// What lies on disk of an encrypted store: nothing that can be read, and nothing that can be exchanged.
@Suite struct EncryptedFilesTests {
    private func configuration(_ change: (inout Configuration) -> Void = { _ in }) throws -> Configuration {
        try EncryptionTests.configuration(change)
    }

    // MARK: What can be seen

    private static let words = ["SECRETKEY", "SECRETTAG", "SECRETMETA", "SECRETBODY", "SECRETVERSION", "SECRETPIN"]

    private func secret(_ length: Int, _ number: Int) -> [UInt8] {
        Array(String(repeating: "SECRETBODY \(number) ", count: length / 12 + 1).utf8.prefix(length))
    }

    private func expectNothingReadable(
        in path: FilePath, _ digests: [Digest], _ when: String, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        for finding in try readable(in: path, digests) {
            Issue.record("\(when): \(finding)", sourceLocation: sourceLocation)
        }
    }

    /// What of the words and digests the files of a store, and their names, hold.
    private func readable(in path: FilePath, _ digests: [Digest]) throws -> [String] {
        var findings: [String] = []
        var needles = Self.words.map { Array($0.utf8) }
        for digest in digests {
            needles.append(Array(digest.bytes.prefix(12)))
            needles.append(Array(digest.hexadecimal.utf8.prefix(24)))
        }
        for name in TestFiles.tree(path) {
            let contents = try TestFiles.read(path.appending(name)) + Array(name.utf8)
            for needle in needles where Self.contains(contents, needle) {
                findings.append("\(name) holds \(String(decoding: needle, as: UTF8.self))")
            }
        }
        return findings
    }

    /// The search finds each of them where nothing is encrypted.
    @Test func thePlainStoreTellsAll() throws {
        try withStore(configuration: .testing { ($0.version, $0.encryption) = ("SECRETVERSION", nil) }) { store in
            let options = PutOptions(tags: ["SECRETTAG"], metadata: Array("SECRETMETA".utf8))
            try store.put(secret(3_000, 1), for: "SECRETKEY", options)
            try store.put(secret(9_000, 2), for: "SECRETKEY 2")
            try store.pin(tag: "SECRETPIN")
            try store.flush()
            let found = try readable(in: store.path, [Digest.of(secret(3_000, 1)), Digest.of(secret(9_000, 2))])
            for word in Self.words { #expect(found.contains { $0.contains(word) }, "\(word)") }
            #expect(found.contains { $0.hasPrefix("blobs/") })
        }
    }

    private static func contains(_ bytes: [UInt8], _ needle: [UInt8]) -> Bool {
        Data(bytes).range(of: Data(needle)) != nil
    }

    /// In every state a store can be in: written, changed, removed, in quarantine, being written, after a kill.
    @Test func noFileTellsWhatIsStored() throws {
        let configuration = try configuration {
            $0.version = "SECRETVERSION"
            $0.embeddingThreshold = 512
        }
        try withDirectory { path in
            let store = try Store(at: path, configuration)
            var digests: [Digest] = []
            for number in 0..<60 {
                let bytes = secret([20, 600, 3_000, 20_000][number % 4], number)
                digests.append(Digest.of(bytes))
                let options = PutOptions(
                    lifetime: .duration(.seconds(1000)), tags: ["SECRETTAG \(number % 5)"],
                    metadata: Array("SECRETMETA \(number)".utf8))
                try store.put(bytes, for: Key("https://SECRETKEY.test/\(number)"), options)
            }
            let long = Key("SECRETKEY " + String(repeating: "long ", count: 500))
            try store.put(secret(100, 100), for: long)
            _ = try store.putByContent(secret(9_000, 101))
            try store.pin(tag: "SECRETPIN")
            let lease = try store.lease(long, for: .seconds(100))
            try store.flush()
            try expectNothingReadable(in: path, digests, "written")
            let writer = try store.writer(for: "SECRETKEY stream")
            try writer.write(secret(100_001, 102))
            let partial = try store.partialWriter(for: "SECRETKEY partial", PutOptions(tags: ["SECRETTAG"]))
            try partial.write(secret(50_000, 103), at: 20_000)
            try store.put(secret(40_000, 104), for: "SECRETKEY relaxed")
            try expectNothingReadable(in: path, digests, "being written")
            try writer.commit()
            try partial.suspend()
            for number in 0..<60 where number % 2 == 0 {
                try store.put(secret(700, 200 + number), for: Key("https://SECRETKEY.test/\(number)"))
            }
            try store.flush()
            // Damaged bodies go to quarantine, those of the index, too.
            for name in TestFiles.tree(path) where name.hasPrefix("blobs/") {
                try TestFiles.flipByte(of: path.appending(name), at: 200)
            }
            for number in 0..<60 { _ = try? store.bytes(Key("https://SECRETKEY.test/\(number)")) }
            _ = try store.check(repair: true)
            try expectNothingReadable(in: path, digests, "damaged")
            #expect(!TestFiles.names(in: path.appending("quarantine")).isEmpty)
            try store.remove(.prefix("https://"))
            _ = lease
            try store.flush()
            // Free pages of the index hold what was there.
            try expectNothingReadable(in: path, digests, "removed")
            try finish(store)
            try expectNothingReadable(in: path, digests, "closed")
        }
    }

    /// Lengths of keys and tags show only roughly, and the same body has another name in another store.
    @Test func namesAndLengthsTellLittle() throws {
        try withDirectory { directory in
            var sizes: Set<Int> = []
            for length in [1, 20, 60] {
                let path = directory.appending("\(length)")
                let store = try Store(at: path, configuration { $0.encryption = .random() })
                let key = Key(String(repeating: "k", count: length))
                try store.put(body(20_000), for: key, PutOptions(tags: [String(repeating: "t", count: length)]))
                try store.flush()
                sizes.formUnion(try rowLengths(path))
                try finish(store)
            }
            // Entries, their orders and tags: one length for all keys.
            #expect(sizes.count <= 3)
            let names = [1, 20, 60].flatMap { length in
                TestFiles.tree(directory.appending("\(length)/blobs")).map { $0.suffix(64) }
            }
            #expect(Set(names).count == 3)
        }
    }

    /// Lengths of the rows of entries, recency and tags, as the file has them.
    private func rowLengths(_ path: FilePath) throws -> [Int] {
        var lengths: [Int] = []
        let pages = try FilePages(descriptor: FileDescriptor.open(path.appending("index/data.mdb"), .readOnly).rawValue)
        let meta = try #require(try MetaPage.all(pages).first)
        var walk = PageWalk(pages, meta, bigValues: .heads, isTolerant: false)
        try walk.run { tree, key, value in
            if ["entries", "recency", "tags"].contains(tree) { lengths.append(value.count) }
        }
        return lengths
    }

    // MARK: What is changed

    private func file(of digest: Digest, in store: Store) -> FilePath {
        store.path.appending("blobs").appending(Layout.blob(store.engine.files.name(of: digest)))
    }

    /// A miss or an error, never other bytes; and the next put heals it.
    private func expectNothingWrong(_ store: Store, _ key: Key, _ bytes: [UInt8], _ what: String) throws {
        do {
            if let found = try store.get(key)?.body.bytes() { #expect(found == bytes, "\(what)") }
        } catch let error as LarderError {
            #expect(error.code == .corruption, "\(what): \(error)")
        }
        do {
            if let found = try store.get(key)?.body.bytes(in: 16_000..<16_500) {
                #expect(found == Array(bytes[16_000..<16_500]), "\(what)")
            }
        } catch let error as LarderError {
            #expect(error.code == .corruption, "\(what): \(error)")
        }
    }

    private func expectDamage(
        _ length: Int, _ what: String, _ configuration: Configuration? = nil,
        _ change: (FilePath, inout [UInt8]) throws -> Void
    ) throws {
        let configuration = try configuration ?? self.configuration()
        try withStore(configuration: configuration) { store in
            let bytes = body(length, 1)
            try store.put(bytes, for: "k")
            try store.flush()
            let path = file(of: Digest.of(bytes), in: store)
            var contents = try TestFiles.read(path)
            try change(path, &contents)
            try TestFiles.write(contents, to: path)
            try expectNothingWrong(store, "k", bytes, what)
            // It is found, whether or not it was read: no part of it may come back as sound.
            let report = try store.check(repair: true)
            try #expect(!report.violations.isEmpty || store.get("k") == nil, "\(what)")
            try #expect(store.bytes("k") == nil, "\(what)")
            try store.put(bytes, for: "k")
            try store.flush()
            try #expect(store.bytes("k") == bytes, "\(what)")
        }
    }

    /// Each byte of the head and of the frame of a chunk, and some of the rest.
    @Test func aFlippedBitIsDamage() throws {
        let slot = BodySeal.headLength
        let next = slot + BodySeal.slotLength
        var places = Array(0..<32) + Array(64..<96) + Array(slot..<slot + 20) + Array(next - 17..<next + 17)
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<40 { places.append(Int.random(in: slot..<next * 2, using: &generator)) }
        for place in places {
            try expectDamage(40_000, "byte \(place)") { $1[place] ^= 1 << UInt8(place % 8) }
        }
    }

    @Test func aFileThatIsCutIsDamage() throws {
        for length in [0, 1, 95, 96, 97, 112, 5_000, 16_511, 16_512, 16_513, 30_000, 40_191] {
            try expectDamage(40_000, "cut to \(length)") { $1.removeLast($1.count - length) }
        }
        try expectDamage(40_000, "a byte more") { $1.append(0) }
    }

    @Test func chunksThatAreExchangedAreDamage() throws {
        let (start, slot) = (BodySeal.headLength, BodySeal.slotLength)
        try expectDamage(60_000, "two chunks of a file") { _, bytes in
            let first = Array(bytes[start..<start + slot])
            bytes.replaceSubrange(start..<start + slot, with: bytes[start + slot..<start + 2 * slot])
            bytes.replaceSubrange(start + slot..<start + 2 * slot, with: first)
        }
    }

    /// The whole file of another body, of the same length; a chunk of it; and a chunk of the same body that was stored
    /// before.
    @Test func filesThatAreExchangedAreDamage() throws {
        let (start, slot) = (BodySeal.headLength, BodySeal.slotLength)
        for what in ["file", "chunk", "earlier"] {
            try withStore(configuration: configuration()) { store in
                let (one, two) = (body(40_000, 1), body(40_000, 2))
                try store.put(one, for: "one")
                try store.put(two, for: "two")
                try store.flush()
                let path = file(of: Digest.of(one), in: store)
                var bytes = try TestFiles.read(path)
                let other = try TestFiles.read(file(of: Digest.of(two), in: store))
                switch what {
                case "file": bytes = other
                case "chunk": bytes.replaceSubrange(start..<start + slot, with: other[start..<start + slot])
                default:
                    let old = bytes
                    try store.remove("one")
                    try store.put(one, for: "one")
                    try store.flush()
                    bytes = try TestFiles.read(path)
                    bytes.replaceSubrange(start..<start + slot, with: old[start..<start + slot])
                }
                try TestFiles.write(bytes, to: path)
                try expectNothingWrong(store, "one", one, what)
                _ = try store.check(repair: true)
                try #expect(store.bytes("one") == nil && store.bytes("two") == two)
            }
        }
    }

    /// Rows of the index that are exchanged, or changed in any bit: entries of small bodies are misses.
    @Test func rowsThatAreChangedAreMisses() throws {
        let configuration = try configuration()
        for tree in ["entries", "blobs"] {
            try withDirectory { directory in
                let path = directory.appending("store")
                let store = try Store(at: path, configuration)
                for number in 0..<4 { try store.put(body(100, number), for: Key("k\(number)")) }
                try store.close()
                try changeRows(path, tree) { rows in
                    let first = rows[0].value
                    rows[0].value = rows[1].value
                    rows[1].value = first
                    rows[2].value[rows[2].value.count / 2] ^= 4
                }
                let again = try Store(at: path, configuration)
                var found = 0
                for number in 0..<4 {
                    if let bytes = try again.bytes(Key("k\(number)")) {
                        #expect(bytes == body(100, number))
                        found += 1
                    }
                }
                #expect(found == 1)
                _ = try again.check(repair: true)
                for number in 0..<4 { try again.put(body(100, number), for: Key("k\(number)")) }
                try again.flush()
                for number in 0..<4 { try #expect(again.bytes(Key("k\(number)")) == body(100, number)) }
                try finish(again)
            }
        }
    }

    /// Changes rows as one does who has the files and no key.
    private func changeRows(
        _ path: FilePath, _ tree: String, _ change: (inout [(key: [UInt8], value: [UInt8])]) -> Void
    ) throws {
        let environment = try Environment(path: path.appending("index").string)
        defer { environment.close() }
        let order: KeyOrder = tree == "blobs" ? .integer : .bytes
        let database = try #require(try environment.openDatabase(tree, order: order, create: false))
        try environment.write { transaction in
            var rows: [(key: [UInt8], value: [UInt8])] = []
            try transaction.reading.withCursor(database) { cursor in
                var pair = try cursor.first()
                while let (key, value) = pair {
                    rows.append((Array(key), Array(value)))
                    pair = try cursor.next()
                }
            }
            change(&rows)
            for (key, value) in rows { try transaction.put(database, key, value) }
        }
    }

    /// The files of another store, whose key is known: what they hold belongs there.
    @Test func bodiesOfAnotherStoreAreDamage() throws {
        let configuration = try configuration()
        try withDirectory { directory in
            let bytes = body(40_000, 1)
            let one = try Store(at: directory.appending("one"), configuration)
            let two = try Store(at: directory.appending("two"), configuration)
            for store in [one, two] {
                try store.put(bytes, for: "k")
                try store.flush()
            }
            let (from, to) = (file(of: Digest.of(bytes), in: one), file(of: Digest.of(bytes), in: two))
            #expect(from.lastComponent != to.lastComponent)
            try TestFiles.write(try TestFiles.read(from), to: to)
            try expectNothingWrong(two, "k", bytes, "another store's file")
            _ = try two.check(repair: true)
            try #expect(two.bytes("k") == nil && one.bytes("k") == bytes)
            try finish(one)
            try finish(two)
        }
    }

    /// A body in progress that is damaged is an error of its reader, and no other bytes.
    @Test func damagedBodiesInProgressAreNotRead() throws {
        for place in [3, 40, 96, 100, 108, 200, 16_511, 16_530, 30_000] {
            try withDirectory { path in
                let bytes = body(60_000, 1)
                let first = try Store(at: path, configuration())
                let writer = try first.partialWriter(for: "k", total: 70_000)
                try writer.write(bytes, at: 0)
                try writer.suspend()
                try first.close()
                let file = try #require(
                    TestFiles.tree(path).first {
                        $0.hasPrefix("blobs/") || $0.hasPrefix("staging/") && !$0.hasSuffix("lock")
                    })
                try TestFiles.flipByte(of: path.appending(file), at: Int64(place))
                let store = try Store(at: path, configuration())
                do {
                    if let found = try store.partialBody(of: "k")?.bytes(in: 0..<60_000) { #expect(found == bytes) }
                } catch let error as LarderError {
                    #expect(error.code == .corruption)
                }
                do {
                    let again = try store.partialWriter(for: "k", total: 70_000)
                    try again.write(body(70_000, 1)[60_000...], at: 60_000)
                    try again.commit()
                    try #expect(store.bytes("k") == body(70_000, 1))
                } catch let error as LarderError {
                    #expect([.corruption, .incomplete, .gone].contains(error.code), "\(error)")
                }
                try store.close()
            }
        }
    }
}
