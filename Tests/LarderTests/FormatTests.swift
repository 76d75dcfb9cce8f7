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
        record.id = 5
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

    private static let key = Array("http://format.test/".utf8)
    private static let hello = Array("hello".utf8)

    /// The entry with the seal for a key and the body `hello`, which is in `blobs`.
    private static var sealed: EntryRecord {
        var record = entry
        record.seal(for: key, Digest.of(hello))
        return record
    }

    /// One of format 1, which has no seal, and of format 2: they are read, and not written any more.
    @Test(arguments: [
        (1, "0500000000000000 2a00000000000000"), (2, "0500000000001bce 2a00000000002cf2"),
    ])
    func entryRecordsOfOlderFormats(_ format: Int, _ numbers: String) throws {
        let bytes = bytes(
            """
            0\(format) 13 0201 06050403 \(numbers) 0100010000000000 0700000000000000
            0040204648470600 0140204648470600 00c7b34948470600 ff3f204648470600 1032547698badcfe
            0500 0000 02000000 0161 02d0b6 dead
            """)
        let decoded = try #require(decode(bytes))
        var expected = Self.entry
        if format == 2 { expected.seal = EntryRecord.Seal(digestTag: 0xF22C, check: 0xCE1B) }
        #expect(decoded == expected && decoded.fits(Digest.of(Self.hello)) && isIntact(bytes))
        #expect(isIntact(bytes, under: Self.key + [0]) == (format == 1))
        // Written again, it stays what it is, with a seal or without.
        #expect(decode(decoded.bytes) == decoded)
        var resealed = decoded
        resealed.reseal(for: Self.key)
        #expect(isIntact(resealed.bytes))
        // A use changes it in place.
        var touched = bytes
        touched.withUnsafeMutableBytes { EntryRecord.touch($0, stamp: 8, hits: 2, accessed: 1_767_225_600_000_009) }
        expected.stamp = 8
        expected.hits += 2
        expected.accessed = 1_767_225_600_000_009
        #expect(decode(touched) == expected && isIntact(touched))
    }

    /// Two bytes of the body's digest above the blob's number, two of a CRC above the entry's own.
    @Test func anEntryRecord() throws {
        let bytes = Self.sealed.bytes
        expect(
            bytes,
            """
            03 13 0201 06050403 050000000000fe95 2a00000000002cf2 0700000000000000 0040204648470600 0140204648470600
            6f00 0100010000000000 00c7b34948470600 ff3f204648470600 1032547698badcfe
            0500 02000000 0161 02d0b6 dead
            """)
        let decoded = try #require(decode(bytes))
        #expect(decoded == Self.sealed && isIntact(bytes) && decoded.fits(Digest.of(Self.hello)))
        #expect(!isIntact(bytes, under: Self.key + [0]) && !decoded.fits(Digest.of([])))
        expectSeal(of: bytes)
    }

    /// Eight bytes of the digest in place of a blob, and the body behind the metadata.
    @Test func anEntryRecordWithItsBody() throws {
        var record = EntryRecord()
        record.id = 5
        record.stamp = 7
        record.length = 5
        record.stored = 1_767_225_600_000_000
        record.created = record.stored
        record.accessed = record.stored + 1
        record.embedded = EntryRecord.Embedded(Self.hello, Digest.of(Self.hello))
        record.seal(for: Self.key, Digest.of(Self.hello))
        let bytes = record.bytes
        expect(
            bytes,
            """
            03 00 0000 00000000 0500000000003b41 2cf24dba5fb0a30e 0700000000000000 0040204648470600 0140204648470600
            0000 0500 68656c6c6f
            """)
        #expect(decode(bytes) == record && isIntact(bytes) && record.fits(Digest.of(Self.hello)))
        #expect(!record.fits(Digest.of([])))
        expectSeal(of: bytes, end: bytes.count - 5)
        for at in bytes.indices.suffix(5) {
            var damaged = bytes
            damaged[at] ^= 0x10
            #expect(decode(damaged)?.embedded?.isSound == false && isIntact(damaged))
        }
        let view = try #require(
            bytes.withUnsafeBytes { raw in EntryView(raw).map { ($0.blob, $0.length, $0.expires) } })
        #expect(view == (0, 5, .max))
    }

    /// What changes with every use is not part of the seal; whatever else changes shows.
    private func expectSeal(of bytes: [UInt8], end: Int? = nil) {
        for at in bytes.indices.prefix(end ?? bytes.count) where at != 0 {
            var damaged = bytes
            damaged[at] ^= 0x10
            guard decode(damaged) != nil else { continue }
            let isFree = (4..<8).contains(at) || (24..<32).contains(at) || (40..<48).contains(at)
            #expect(isIntact(damaged) == isFree, "byte \(at)")
        }
    }

    /// A bit that flips in what says where the parts lie makes no other body of the bytes.
    @Test func noFlippedBitMovesTheBody() throws {
        var record = Self.entry
        record.blob = 0
        record.length = 5
        record.embedded = EntryRecord.Embedded(Self.hello, Digest.of(Self.hello))
        record.seal(for: Self.key, Digest.of(Self.hello))
        let bytes = record.bytes
        for bit in 48 * 8..<bytes.count * 8 - 5 * 8 {
            var damaged = bytes
            damaged[bit / 8] ^= 1 << UInt8(bit % 8)
            let body = damaged.withUnsafeBytes { EntryView($0)?.embedded.map(Array.init) }
            #expect(body == nil || body == Self.hello, "bit \(bit)")
        }
        var unsealed = bytes
        unsealed[48] |= 128
        #expect(decode(unsealed) == nil)
    }

    @Test func aPlainEntryRecordIs58Bytes() {
        var record = EntryRecord()
        record.seal = EntryRecord.Seal(digestTag: 0, check: 0)
        expect(
            record.bytes,
            """
            03 00 0000 00000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000
            0100 0000000000000000
            """)
    }

    @Test func anEntryRecordOfALongKeyHoldsTheKeyAfterItsFields() throws {
        for length in [479, 65_536] {
            var record = Self.entry
            record.longKey = body(length)
            let bytes = record.bytes
            #expect(bytes[82] == UInt8(truncatingIfNeeded: length - 1))
            #expect(bytes[83] == UInt8((length - 1) >> 8))
            #expect(Array(bytes[90..<(90 + length)]) == record.longKey)
            #expect(decode(bytes) == record)
        }
    }

    /// Each combination of optional fields, with the body in the record and without.
    @Test func optionalFieldsRoundTrip() throws {
        for bits in 0..<256 {
            var record = EntryRecord()
            record.id = 1
            record.stored = 10
            record.created = bits & 1 != 0 ? 9 : 10
            if bits & 2 != 0 { record.expires = 11 }
            if bits & 4 != 0 { record.session = 12 }
            if bits & 8 != 0 { record.longKey = body(500) }
            if bits & 16 != 0 { record.tags = ["t"] }
            if bits & 32 != 0 { record.metadata = [1] }
            if bits & 64 != 0 { record.embedded = EntryRecord.Embedded(body(bits), Digest.of(body(bits))) }
            record.length = bits & 64 != 0 ? UInt64(bits) : 13
            record.blob = bits & 64 != 0 ? 0 : 2
            // Only what was written in format 1 has no seal, and no body with it.
            if bits & 192 != 0 { record.seal(for: Self.key, Digest.of(body(bits))) }
            let bytes = record.bytes
            #expect(bytes.count == record.byteCount && decode(bytes) == record && isIntact(bytes), "\(bits)")
            for end in bytes.indices {
                let cut = decode(Array(bytes[..<end]))
                #expect(cut == nil || cut?.embedded?.isSound == false, "\(bits), cut at \(end)")
            }
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
        state.strayCount = 20
        let fields = (1...20).map { Layout.hex(UInt64($0), width: 2) + "00000000000000" }
        // CRC-32 of the fields, as Python's zlib.crc32 has it.
        expect(state.bytes, "03000000 0dbfd1a7" + fields.joined())
        #expect(state.bytes.withUnsafeBytes { StoreState($0) } == state)
        var old = state
        old.strayCount = 0
        let format2 = [2, 0, 0, 0, 0x85, 0x96, 0x78, 0x0A] + state.bytes[8..<160]
        #expect(format2.withUnsafeBytes { StoreState($0) } == old)
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
        #expect(parts?.name == BlobName(digest))
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

    private func isIntact(_ bytes: [UInt8], under key: [UInt8] = FormatTests.key) -> Bool {
        bytes.withUnsafeBytes { EntryView($0)?.isIntact(under: key) ?? false }
    }

    private func bytes(_ hex: String) -> [UInt8] {
        let digits = hex.filter { !$0.isWhitespace }.map { UInt8($0.hexDigitValue ?? 0) }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }

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
