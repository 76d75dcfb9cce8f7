import SeededData
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// Bodies that are stored compressed.
@Suite struct CompressionTests {
    private static func configuration(_ change: (inout Configuration) -> Void = { _ in }) -> Configuration {
        .testing {
            $0.compression = .trial
            change(&$0)
        }
    }

    /// Text that shrinks to a fourth or so.
    static func text(_ length: Int, _ number: Int = 0) -> [UInt8] {
        var generator = SeededGenerator(seed: UInt64(number))
        let words = ["larder ", "cache ", "digest ", "displacement ", "entry ", "body ", "budget "]
        var text: [UInt8] = Array("\(number): ".utf8)
        while text.count < length { text += words.randomElement(using: &generator)!.utf8 }
        return Array(text.prefix(length))
    }

    private func blob(_ store: Store, _ body: [UInt8]) throws -> BlobRecord {
        try store.engine.read { transaction in
            let index = store.engine.index
            let shared = try #require(try index.shared(Digest.of(body), transaction))
            return try #require(try transaction.get(index.blobs, shared.blob).flatMap { BlobRecord($0) })
        }
    }

    /// In the index, in files that are decompressed at once, and in files that are read piece by piece.
    @Test(arguments: [300, 3_000, 20_000, 1_000_000, 3_000_000]) func bodiesComeBack(_ length: Int) throws {
        try withStore(configuration: Self.configuration()) { store in
            let body = Self.text(length)
            try store.put(body, for: "k", PutOptions(metadata: [1]))
            try #expect(store.get("k")?.body.bytes() == body, "pending")
            try store.flush()
            let record = try blob(store, body)
            #expect(record.encoding == .gzip && record.length == length && record.storedLength < length * 7 / 8)
            let entry = try #require(try store.get("k"))
            #expect(entry.body.length.bytes == length && entry.digest == Digest.of(body) && entry.metadata == [1])
            #expect(entry.attributes.encoding == .gzip && entry.attributes.storedLength.bytes < length * 7 / 8)
            try readInEachWay(entry.body, body)
            try #expect(store.withBody(of: "k") { $0.withUnsafeBytes { Array($0) } } == body)
            let space = UnsafeMutableRawBufferPointer.allocate(byteCount: length + 5, alignment: 1)
            defer { space.deallocate() }
            try #expect(store.read("k", into: space) == length)
            #expect(space.prefix(length).elementsEqual(body))
            let statistics = try store.statistics()
            #expect(statistics.logicalBytes.bytes == length)
            #expect(statistics.storedBytes.bytes + statistics.compressionGain.bytes == length)
            #expect(statistics.savedBytes == .zero)
            // The same bytes again, as they are: they are shared.
            try store.put(body, for: "other", PutOptions(compression: .off))
            try store.flush()
            try #expect(store.statistics().blobCount == 1)
            try withDirectory { directory in
                try #expect(store.export("k", to: directory.appending("exported")))
                try #expect(TestFiles.read(directory.appending("exported")) == body)
            }
            try store.remove("k")
            try store.remove("other")
            try store.flush()
            try #expect(store.statistics().compressionGain == .zero)
        }
    }

    private func readInEachWay(_ body: Body, _ expected: [UInt8]) throws {
        let length = Int64(expected.count)
        try #expect(body.bytes() == expected)
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<10 {
            let start = Int64.random(in: 0..<length, using: &generator)
            let end = Int64.random(in: start...length, using: &generator)
            try #expect(body.bytes(in: start..<end) == Array(expected[Int(start)..<Int(end)]))
        }
        try #expect(body.bytes(in: length - 1..<length + 100) == [expected[expected.count - 1]])
        try #expect(body.withBytes { $0.withUnsafeBytes { Array($0) } } == expected)
        try #expect(body.withMappedBytes { $0.withUnsafeBytes { Array($0) } } == expected)
        let fromFile = try body.withFileRange { descriptor, range in
            var bytes = [UInt8](repeating: 0, count: range.count)
            let count = try bytes.withUnsafeMutableBytes {
                try descriptor.read(fromAbsoluteOffset: range.lowerBound, into: $0)
            }
            return Array(bytes.prefix(count))
        }
        #expect(fromFile == expected)
    }

    @Test func piecesAreReadInOrder() async throws {
        try await withStore(configuration: Self.configuration()) { store in
            let body = Self.text(3_000_000)
            try await store.put(body, for: "k")
            try await store.perform { try $0.flush() }
            var joined: [UInt8] = []
            for try await piece in try #require(try await store.get("k")).body.chunks(ofSize: .kibibytes(100)) {
                joined += piece
            }
            #expect(joined == body)
        }
    }

    @Test(arguments: [10_000, 1_500_000]) func streamsAreCompressedAtTheirEnd(_ length: Int) throws {
        try withStore(configuration: Self.configuration()) { store in
            let body = Self.text(length)
            let writer = try store.writer(for: "k")
            for start in stride(from: 0, to: length, by: 70_000) {
                try writer.write(body[start..<min(start + 70_000, length)])
            }
            try writer.commit()
            try #expect(writer.bytes(in: 0..<Int64(length)) == body)
            try store.flush()
            try #expect(store.get("k")?.body.bytes() == body)
            #expect(try blob(store, body).encoding == .gzip)
        }
    }

    @Test func onlyWhatShrinksIsCompressed() throws {
        try withStore(configuration: Self.configuration { $0.embeddingThreshold = 400 }) { store in
            func encoding(_ body: [UInt8], _ compression: Compression? = nil) throws -> BodyEncoding? {
                try store.put(body, for: "k", PutOptions(compression: compression))
                try store.flush()
                return try store.get("k")?.attributes.encoding
            }
            try #expect(encoding(Self.text(255)) == .identity)
            try #expect(encoding(Self.text(400)) == .identity, "part of the record")
            try #expect(encoding(Self.text(401)) == .gzip)
            try #expect(encoding(body(100_000)) == .identity, "random bytes")
            try #expect(encoding(body(400_000)) == .identity, "random bytes in a file")
            try #expect(encoding(Self.text(10_000, 1), .off) == .identity)
            try #expect(encoding(Self.text(10_000, 2), .mediaType("text/html; charset=utf-8")) == .gzip)
            try #expect(encoding(Self.text(10_000, 3), .mediaType("Application/Problem+JSON")) == .gzip)
            try #expect(encoding(Self.text(10_000, 4), .mediaType("image/png")) == .identity)
            try #expect(encoding(Self.text(10_000, 5), .mediaType("")) == .identity)
        }
    }

    /// What a caller finds in the index's mapping: whether it is a member, its bytes, and the length of the body.
    private func visit(_ store: Store, _ key: Key) throws -> (isMember: Bool, bytes: [UInt8], length: Int64)? {
        var found: (isMember: Bool, bytes: [UInt8], length: Int64)?
        _ = try store.visitAtHand(key, includingExpired: false, HeldKind<Int>()) { _, body, length in
            switch body {
            case .bytes(let bytes): found = (false, Array(bytes), length)
            case .member(let bytes): found = (true, Array(bytes), length)
            }
        } held: { _, _ in
        }
        return found
    }

    @Test func membersAreFoundInPlace() throws {
        try withStore(configuration: Self.configuration()) { store in
            let (text, plain) = (Self.text(3_000), body(1_500))
            try store.put(text, for: "member", PutOptions(metadata: [1]))
            try store.put(plain, for: "plain", PutOptions(metadata: [1]))
            try store.flush()
            let member = try #require(try visit(store, "member"))
            #expect(member.isMember && member.length == 3_000 && member.bytes.count < 2_000)
            let inflated = try member.bytes.withUnsafeBytes { try GzipReader.body(of: $0, length: 3_000) }
            #expect(inflated == text)
            let own = try #require(try visit(store, "plain"))
            #expect(!own.isMember && own.bytes == plain && own.length == 1_500)
            // Who wants the body has to decompress it.
            try #expect(store.visit("member", includingExpired: false) { _, _ in } == false)
        }
    }

    /// A flipped bit makes no member of a body, and no body of a member.
    @Test(arguments: [BodyEncoding.identity, .gzip]) func anotherEncodingIsNotBelieved(_ encoding: BodyEncoding) throws
    {
        try withStore(configuration: Self.configuration()) { store in
            let body = encoding == .gzip ? Self.text(3_000) : body(1_500)
            try store.put(body, for: "k", PutOptions(metadata: [1]))
            try store.flush()
            try store.engine.mutate(.housekeeping) { mutation in
                let blobs = store.engine.index.blobs
                let (id, raw) = try lastBlob(mutation, blobs)
                #expect(raw[2] == encoding.rawValue)
                try mutation.transaction.put(blobs, id, raw[..<2] + [raw[2] ^ 1] + raw[3...])
                mutation.noteChange(trees: 1)
            }
            #expect(try visit(store, "k") == nil)
            try #expect(store.get("k") == nil)
            _ = try store.check(repair: true)
        }
    }

    /// A store is one of the newer format from its first compressed body on.
    @Test func codeThatLacksCompressionIsKeptOut() throws {
        try withDirectory { directory in
            let path = directory.appending("store")
            func version() throws -> Int {
                let text = String(decoding: try TestFiles.read(path.appending("FORMAT")), as: UTF8.self)
                return try FormatFile(contents: text, path: path).version
            }
            let store = try Store(at: path, Self.configuration())
            try store.put(Self.text(10_000), for: "plain", PutOptions(compression: .off))
            try store.flush()
            try #expect(version() == 4)
            try store.put(Self.text(10_000), for: "text")
            try store.flush()
            try #expect(version() == 5)
            try store.close()
            // It stays open to code that knows it, with compression off, too.
            let again = try Store(at: path, .testing())
            try #expect(again.get("text")?.body.bytes() == Self.text(10_000))
            try finish(again)
        }
    }

    @Test func aKillFindsBodiesWhole() throws {
        try withDirectory { directory in
            let path = directory.appending("store")
            let store = try Store(at: path, Self.configuration())
            for number in 0..<20 { try store.put(Self.text(30_000, number), for: Key("\(number)")) }
            try store.flush()
            try store.close()
            var configuration = Self.configuration()
            configuration.bootIdentity = 99
            configuration.verification = .always
            let again = try Store(at: path, configuration)
            for number in 0..<20 { try #expect(again.get(Key("\(number)"))?.body.bytes() == Self.text(30_000, number)) }
            try #expect(again.check().violations.isEmpty)
            try finish(again)
        }
    }
}

/// Compressed bodies that are damaged.
@Suite struct CompressionDamageTests {
    /// A byte at each place of the stored form; what is behind it is missing, or follows it.
    @Test func noDamageOfAMemberGoesUnnoticed() throws {
        let body = CompressionTests.text(3_000)
        let member = try #require(body.withUnsafeBytes { GzipWriter.compressed($0) })
        func result(_ bytes: [UInt8], _ length: Int? = nil) -> [UInt8]? {
            bytes.withUnsafeBytes { try? GzipReader.body(of: $0, length: length ?? body.count) }
        }
        #expect(result(member) == body)
        for place in member.indices {
            for bit in 0..<8 {
                var flipped = member
                flipped[place] ^= 1 << bit
                // Time and system in the head (RFC 1952, section 2.3) may change, and one copy of a word is as good as
                // another.
                if let found = result(flipped) { #expect(found == body, "byte \(place), bit \(bit)") }
            }
            #expect(result(Array(member.prefix(place))) == nil, "cut off at \(place)")
        }
        #expect(result(member + [0]) == nil && result(member + member) == nil)
        for length in [0, 1, body.count - 1, body.count + 1, .max, -1] { #expect(result(member, length) == nil) }
    }

    /// The length in the record bounds what a member may become.
    @Test func aMemberThatWouldFillTheMemoryDoesNot() throws {
        let zeros = [UInt8](repeating: 0, count: 16 << 20)
        let member = try #require(zeros.withUnsafeBytes { GzipWriter.compressed($0) })
        #expect(member.count < 20_000)
        #expect(member.withUnsafeBytes { try? GzipReader.body(of: $0, length: 1000) } == nil)
        #expect(member.withUnsafeBytes { try? GzipReader.body(of: $0, length: zeros.count) } == zeros)
    }

    /// Each bit of the record of a compressed body and of one that is stored as it is.
    @Test(arguments: [BodyEncoding.gzip, .identity], [BlobRecord.Location.inline, .file])
    func noDamageOfARecordMakesAnotherBody(_ encoding: BodyEncoding, _ location: BlobRecord.Location) {
        var head = BlobRecord(digest: Digest.of([1]))
        (head.encoding, head.location) = (encoding, location)
        (head.length, head.storedLength) = (3_000, encoding == .gzip ? 500 : 3_000)
        let count = head.headLength + (location == .inline ? Int(head.storedLength) : 0)
        var raw = [UInt8](repeating: 0, count: count)
        raw.withUnsafeMutableBytes { head.write(to: $0) }
        #expect(raw.withUnsafeBytes { BlobRecord($0) } == head)
        for bit in 0..<head.headLength * 8 {
            raw[bit / 8] ^= 1 << (bit % 8)
            if let found = raw.withUnsafeBytes({ BlobRecord($0) }), encoding == .gzip || found.encoding == .gzip {
                // What was marked as damaged is a body of nothing.
                #expect(found.isDamaged && !found.isComplete, "bit \(bit)")
            }
            raw[bit / 8] ^= 1 << (bit % 8)
        }
    }

    private static let configuration = Configuration.testing { $0.compression = .trial }

    /// A stream that is stored plain when there is no room for both of its forms, and displaces nothing for that.
    @Test func aStreamInAFullStoreIsStoredAsItIs() throws {
        try withStore(
            configuration: .testing(budget: Budget(bytes: .mebibytes(6))) { $0.compression = .trial }
        ) { store in
            for number in 0..<2 { try store.put(body(1_000_000, number), for: Key("\(number)")) }
            try store.flush()
            let text = CompressionTests.text(2_500_000)
            let writer = try store.writer(for: "k", length: ByteCount(Int64(text.count)))
            try writer.write(text)
            try writer.commit()
            try store.flush()
            try #expect(store.get("k")?.body.bytes() == text)
            try #expect(store.statistics().entryCount == 3)
        }
    }

    /// Readers of one body do not send each other back to its start.
    @Test func severalReadInOrderAtOnce() throws {
        try withStore(configuration: Self.configuration) { store in
            let text = CompressionTests.text(8_000_000)
            try store.put(text, for: "k")
            try store.flush()
            let stored = try #require(try store.get("k")).body
            for start in stride(from: 0, to: 4_000_000, by: 50_000) {
                for offset in [start, start + 4_000_000] {
                    let range = Int64(offset)..<Int64(offset + 50_000)
                    try #expect(stored.bytes(in: range) == Array(text[offset..<offset + 50_000]))
                }
                try #expect(stored.bytes(in: 8_000_000..<8_000_001) == [])
            }
        }
    }

    @Test func aDamagedFileIsAMissAndIsHealedByAPut() throws {
        try withStore(configuration: Self.configuration) { store in
            let body = CompressionTests.text(500_000)
            try store.put(body, for: "k")
            try store.flush()
            try TestFiles.flipByte(of: file(store, body), at: 20_000)
            try #expect(store.get("k") == nil)
            // Recorded in the background.
            try blockWhile { try store.statistics().counters.damagedBodies == 0 }
            _ = try store.check(repair: true)
            try store.put(body, for: "k")
            try store.flush()
            try #expect(store.get("k")?.body.bytes() == body)
        }
    }

    /// A long one is decompressed when it is read: an error then, and a miss from then on.
    @Test func aDamagedLongFileIsAnErrorOfItsReader() throws {
        try withStore(configuration: Self.configuration) { store in
            let body = CompressionTests.text(3_000_000)
            try store.put(body, for: "k")
            try store.flush()
            try TestFiles.flipByte(of: file(store, body), at: 200_000)
            let entry = try #require(try store.get("k"))
            try #expect(entry.body.bytes(in: 0..<1000) == Array(body.prefix(1000)))
            #expect(throws: LarderError.self) { try entry.body.bytes() as [UInt8] }
            try blockWhile { try store.get("k") != nil }
            _ = try store.check(repair: true)
            try store.put(body, for: "k")
            try store.flush()
            try #expect(store.get("k")?.body.bytes() == body)
        }
    }

    private func file(_ store: Store, _ body: [UInt8]) -> FilePath {
        store.path.appending("blobs/" + Layout.blob(Digest.of(body)))
    }
}
