import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// The bytes on disk. A test that fails here is a change of format: raise the version, and change `docs/format.md`.
@Suite struct FormatTests {
    static var entry: EntryRecord {
        var record = EntryRecord()
        record.version = 0x0102
        record.policy = .session
        record.isPinned = true
        record.isPinnedByTag = true
        record.hits = 0x0304_0506
        record.id = 0x1122_3344_5566_7788
        record.blob = 42
        record.length = 65_537
        record.stamp = 7
        record.stored = 1_767_225_600_000_000
        record.accessed = 1_767_225_600_000_001
        record.expires = 1_767_225_660_000_000
        record.created = 1_767_225_599_999_999
        record.session = 0xFEDC_BA98_7654_3210
        record.tags = ["a", "ж"]
        record.metadata = [0xDE, 0xAD]
        return record
    }

    @Test func anEntryRecord() {
        expect(
            Self.entry.bytes,
            """
            01 13 0201 06050403 8877665544332211 2a00000000000000 0100010000000000 0700000000000000
            0040204648470600 0140204648470600 00c7b34948470600 ff3f204648470600 1032547698badcfe
            0500 0000 02000000 0161 02d0b6 dead
            """)
    }

    /// Two bytes of the body's digest above the blob's number, two of a CRC above the entry's own.
    @Test func anEntryRecordWithASeal() throws {
        var record = Self.entry
        record.id = 5
        let key = Array("http://format.test/".utf8)
        record.seal(for: key, Digest.of(Array("hello".utf8)))
        let bytes = record.bytes
        expect(
            bytes,
            """
            02 13 0201 06050403 0500000000001bce 2a00000000002cf2 0100010000000000 0700000000000000
            0040204648470600 0140204648470600 00c7b34948470600 ff3f204648470600 1032547698badcfe
            0500 0000 02000000 0161 02d0b6 dead
            """)
        let decoded = try #require(decode(bytes))
        #expect(decoded == record && decoded.isIntact(under: key) && decoded.fits(Digest.of(Array("hello".utf8))))
        #expect(!decoded.isIntact(under: key + [0]) && !decoded.fits(Digest.of([])))
        // What changes with every use is not part of it; whatever else changes shows.
        for (at, _) in bytes.enumerated() where at != 0 {
            var damaged = bytes
            damaged[at] ^= 0x10
            guard let other = decode(damaged) else { continue }
            let isFree = (4..<8).contains(at) || (32..<40).contains(at) || (48..<56).contains(at)
            #expect(other.isIntact(under: key) == isFree, "byte \(at)")
        }
    }

    @Test func aPlainEntryRecordIs88Bytes() {
        expect(
            EntryRecord().bytes,
            """
            01 00 0000 00000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000
            0000000000000000 0000000000000000 ffffffffffffff7f 0000000000000000 0000000000000000
            0000 0000 00000000
            """)
    }

    @Test func anEntryRecordOfALongKeyHoldsTheKeyAfterItsFields() throws {
        for length in [479, 65_536] {
            var record = Self.entry
            record.longKey = body(length)
            let bytes = record.bytes
            #expect(bytes[82] == UInt8(truncatingIfNeeded: length - 1))
            #expect(bytes[83] == UInt8((length - 1) >> 8))
            #expect(Array(bytes[88..<(88 + length)]) == record.longKey)
            #expect(decode(bytes) == record)
        }
    }

    @Test func entryRecordsRoundTrip() {
        for policy in StoragePolicy.allCases {
            for flags in 0..<4 {
                var record = Self.entry
                record.policy = policy
                record.isPinned = flags & 1 != 0
                record.isPinnedByTag = flags & 2 != 0
                record.metadata = body(flags * 1000)
                record.tags = (0..<flags).map { String(repeating: "t", count: 200 - $0) }
                #expect(decode(record.bytes) == record)
            }
        }
    }

    @Test func theHeadOfAnInlineBody() {
        var head = BlobRecord(digest: Digest.of([]))
        head.length = 5
        head.storedLength = 5
        expect(
            encode(head),
            """
            01 00 00 00 00000000 0500000000000000 0500000000000000
            e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
            """)
    }

    @Test func theRecordOfABodyInAFile() {
        var head = BlobRecord(digest: Digest.of([]))
        head.location = .file
        head.length = 100_000
        head.storedLength = 100_000
        head.allocated = 102_400
        head.epoch = 3
        head.token = StagingToken(instance: 0x1122_3344_5566_7788, sequence: 9)
        expect(
            encode(head),
            """
            01 01 00 00 00000000 a086010000000000 a086010000000000
            e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
            0090010000000000 0300000000000000 8877665544332211 0900000000000000
            """)
        #expect(encode(head).withUnsafeBytes { BlobRecord($0) } == head)
    }

    @Test func aDigestRecord() {
        let record = DigestRecord(blob: 0x0102, references: 3)
        expect(record.withBytes { Array($0) }, "0201000000000000 0300000000000000")
        #expect(record.withBytes { Array($0) }.withUnsafeBytes { DigestRecord($0) } == record)
    }

    @Test func theStateRow() {
        var state = StoreState()
        state.entryCount = 1
        state.blobCount = 2
        state.logicalBytes = 3
        state.storedBytes = 4
        state.fileAllocated = 5
        state.fileCount = 6
        state.nextID = 7
        state.nextStamp = 8
        state.epoch = 9
        state.syncedEpoch = 10
        state.suspectFrom = 11
        state.suspectTo = 12
        state.boot = 13
        state.clock = 14
        state.budget = Budget(bytes: 15, entries: 16, largestEntry: 17, freeDiskFloor: 18)
        state.clockOffset = 19
        let fields = (1...19).map { Layout.hex(UInt64($0), width: 2) + "00000000000000" }
        // CRC-32 of the fields, as Python's zlib.crc32 has it.
        expect(state.bytes, "02000000 8596780a" + fields.joined())
        #expect(state.bytes.withUnsafeBytes { StoreState($0) } == state)
        var old = state
        old.clockOffset = .min
        let format1 = [1, 0, 0, 0, 0, 0, 0, 0] + state.bytes[8..<152]
        #expect(format1.withUnsafeBytes { StoreState($0) } == old)
        let unlimited = StoreState()
        #expect(unlimited.bytes.withUnsafeBytes { StoreState($0) } == unlimited)
        #expect(unlimited.budget == .unlimited)
    }

    /// A flipped bit of the budget would empty the store.
    @Test func noFlippedBitOfTheStateRowGoesUnnoticed() {
        var state = StoreState()
        state.budget = Budget(bytes: .mebibytes(64))
        for bit in 0..<state.bytes.count * 8 {
            var bytes = state.bytes
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(bytes.withUnsafeBytes { StoreState($0) } == nil, "bit \(bit)")
        }
    }

    @Test func theFormatFile() throws {
        let text = "larder\nformat 1\nstore 00112233445566778899aabbccddeeff\n"
        let file = try FormatFile(contents: text, path: "/s/FORMAT")
        #expect(file.version == 1)
        #expect(file.storeID == "00112233445566778899aabbccddeeff")
        #expect(file.contents == text)
        #expect(FormatFile.fresh().storeID.utf8.count == 32)
        #expect(FormatFile.fresh() != FormatFile.fresh())
    }

    @Test func theNamesOnDisk() {
        let digest = Digest.of(Array("abc".utf8))
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        let token = StagingToken(instance: 0x1F, sequence: 2)
        #expect(Layout.blob(digest) == "ba/" + hex)
        #expect(token.name == "000000000000001f-0000000000000002")
        #expect(Layout.instanceLock(0x1F) == "000000000000001f.lock")
        #expect(Layout.trash(token, digest) == "000000000000001f-0000000000000002-" + hex)
        #expect(Layout.shards.count == 256)
        #expect(Layout.shards.first == "00")
        #expect(Layout.shards.last == "ff")
        #expect(Layout.directories == ["index", "blobs", "staging", "trash", "quarantine"])
        #expect([Layout.data, Layout.lock, Layout.ledger] == ["data.mdb", "lock.mdb", "ledger"])
        #expect(Layout.counters == "counters")
        #expect([Layout.format, Layout.tag] == ["FORMAT", "CACHEDIR.TAG"])
        #expect(Layout.tagContents.hasPrefix("Signature: 8a477f597d28d172789f06886806bc55\n"))
        #expect(StagingToken(name: token.name) == token)
        #expect(token.indexKey.withUnsafeBytes { StagingToken(indexKey: $0) } == token)
        expect(token.indexKey, "000000000000001f 0000000000000002")
        let parts = Layout.parseTrash(Layout.trash(token, digest))
        #expect(parts?.token == token)
        #expect(parts?.digest == digest)
        #expect(Layout.instance(ofStaged: token.name) == 0x1F)
        #expect(Layout.instance(ofStaged: Layout.instanceLock(0x1F)) == 0x1F)
    }

    @Test(arguments: [
        "", "x", "-", "lock", ".lock", "000000000000001f", "000000000000001f-2", "zzzzzzzzzzzzzzzz.lock",
        "000000000000001f-0000000000000002-", "000000000000001f-0000000000000002-ab", "../../../etc/passwd",
    ])
    func namesThatAreNotOursAreNotTakenForOurs(_ name: String) {
        #expect(StagingToken(name: name) == nil)
        #expect(Layout.parseTrash(name) == nil)
        #expect(Layout.instance(ofStaged: name) == nil)
    }

    @Test func indexKeys() {
        #expect(IndexKey.bytes(for: "k") == Array("k".utf8))
        let longest = Key(bytes: body(478))
        #expect(IndexKey.bytes(for: longest) == longest.bytes)
        let long = Key(bytes: body(479))
        #expect(IndexKey.bytes(for: long) == long.bytes.prefix(478) + [0] + Digest.of(long.bytes).bytes)
        #expect(IndexKey.bytes(for: Key(bytes: body(65_536))).count == 511)
    }

    @Test func keysOfRows() {
        expect(Index.expiryKey(0x0102, id: 3), "0000000000000102 0000000000000003")
        expect(Index.expiryKey(-5, id: 3), "0000000000000000 0000000000000003")
        expect(Index.tagKey("ab", id: 3), "6162 00 0000000000000003")
        expect(Index.sessionKey(0x1F, id: 3), "000000000000001f 0000000000000003")
        expect(Index.versionKey("1.0"), "76657273696f6e3a 312e30")
        #expect(Index.leasePrefix(.key, [1]) == [1] + Digest.of([1]).bytes)
        #expect(Index.leasePrefix(.tag, [1]) == [2] + Digest.of([1]).bytes)
    }

    // MARK: Bytes that are not records

    /// Decoders answer nil for what is not theirs; they never trap. What they accept, they write back.
    @Test(arguments: 1...4)
    func decodersNeverTrap(_ seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        var file = BlobRecord(digest: Digest.of([]))
        file.location = .file
        var long = Self.entry
        long.longKey = body(600)
        let samples = [
            Self.entry.bytes, long.bytes, encode(BlobRecord(digest: Digest.of([]))), encode(file),
            DigestRecord(blob: 1, references: 1).withBytes { Array($0) }, StoreState().bytes,
        ]
        for round in 0..<3000 {
            var bytes: [UInt8]
            if round % 3 == 0 {
                bytes = body(Int.random(in: 0..<200, using: &generator), round + seed * 10_000)
                if !bytes.isEmpty, round % 2 == 0 { bytes[0] = 1 }
            } else {
                bytes = samples[round % samples.count]
                for _ in 0..<Int.random(in: 1..<6, using: &generator) where !bytes.isEmpty {
                    switch Int.random(in: 0..<4, using: &generator) {
                    case 0: bytes.removeLast(Int.random(in: 0..<bytes.count, using: &generator))
                    case 1: bytes.append(UInt8.random(in: 0...255, using: &generator))
                    default:
                        bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(
                            in: 0...255, using: &generator)
                    }
                }
            }
            bytes.withUnsafeBytes { raw in
                if let record = EntryRecord(raw) {
                    #expect(decode(record.bytes) == record, "seed \(seed), round \(round)")
                }
                if let view = EntryView(raw) {
                    _ = (view.version, view.blob, view.length, view.stamp, view.expires)
                    _ = view.hasLongKey(Key(bytes: body(600)))
                    _ = view.hasLongKey(Key(bytes: body(65_536)))
                }
                if let head = BlobRecord(raw) { _ = head.headLength }
                _ = DigestRecord(raw)
                _ = StoreState(raw)
                _ = StagingToken(indexKey: raw)
            }
            let text = String(decoding: bytes, as: UTF8.self)
            _ = StagingToken(name: text)
            _ = Layout.parseTrash(text)
            _ = Digest(hexadecimal: text)
            _ = try? FormatFile(contents: text, path: "/s/FORMAT")
        }
    }

    // MARK: Helpers

    private func decode(_ bytes: [UInt8]) -> EntryRecord? { bytes.withUnsafeBytes { EntryRecord($0) } }

    private func encode(_ head: BlobRecord) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: head.headLength)
        bytes.withUnsafeMutableBytes { head.write(to: $0) }
        return bytes
    }

    private func expect(_ bytes: [UInt8], _ hex: String, sourceLocation: SourceLocation = #_sourceLocation) {
        let digits = bytes.map { Layout.hex(UInt64($0), width: 2) }.joined()
        #expect(digits == hex.filter { !$0.isWhitespace }, sourceLocation: sourceLocation)
    }
}
