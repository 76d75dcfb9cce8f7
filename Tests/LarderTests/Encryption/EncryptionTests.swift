import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// Stores that are encrypted, as their users see them.
@Suite struct EncryptionTests {
    static func configuration(_ change: (inout Configuration) -> Void = { _ in }) throws -> Configuration {
        let key = try Configuration.testKey
        return .testing {
            $0.encryption = key
            change(&$0)
        }
    }

    /// In records, in the index, in files of one chunk and of many.
    @Test(arguments: [0, 1, 300, 3_000, 4_097, 16_384, 16_385, 400_000]) func bodiesComeBack(_ length: Int) throws {
        let configuration = try Self.configuration { $0.embeddingThreshold = 512 }
        try withDirectory { path in
            let bytes = body(length, 1)
            let store = try Store(at: path.appending("store"), configuration)
            try store.put(bytes, for: "k", PutOptions(tags: ["t"], metadata: [1, 2]))
            try #expect(store.get("k")?.body.bytes() == bytes, "pending")
            try store.flush()
            try expect(bytes, in: store)
            try finish(store)
            let again = try Store(at: path.appending("store"), configuration)
            try expect(bytes, in: again)
            try again.put(bytes, for: "other")
            try again.flush()
            if length > 512 { try #expect(again.statistics().blobCount == 1) }
            try finish(again)
        }
    }

    private func expect(_ bytes: [UInt8], in store: Store) throws {
        let entry = try #require(try store.get("k"))
        #expect(entry.metadata == [1, 2] && entry.digest == Digest.of(bytes) && entry.attributes.tags == ["t"])
        try #expect(entry.body.bytes() == bytes)
        try #expect(store.attributes(of: "k")?.digest == Digest.of(bytes))
        let length = Int64(bytes.count)
        for range in [0..<length, min(3, length)..<min(40, length), length / 2..<length] {
            try #expect(entry.body.bytes(in: range) == Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)]))
        }
        try #expect(entry.body.withBytes { Array($0.withUnsafeBytes { Array($0) }) } == bytes)
        try #expect(entry.body.withMappedBytes { Array($0.withUnsafeBytes { Array($0) }) } == bytes)
        try #expect(store.withBody(of: "k") { $0.withUnsafeBytes { Array($0) } } == bytes)
        try #expect(store.body(digest: Digest.of(bytes))?.bytes() == bytes)
        try withDirectory { directory in
            try #expect(store.export("k", to: directory.appending("file"), method: .link))
            try #expect(TestFiles.read(directory.appending("file")) == bytes)
        }
        let isRead = try entry.body.withFileRange { file, range in
            var read = [UInt8](repeating: 0, count: range.count)
            let count = try read.withUnsafeMutableBytes {
                try file.read(fromAbsoluteOffset: range.lowerBound, into: $0)
            }
            return count == bytes.count && read == bytes
        }
        #expect(isRead)
    }

    @Test func streamsAreEncryptedAsTheyArrive() throws {
        try withStore(configuration: Self.configuration()) { store in
            let bytes = body(300_001, 2)
            let writer = try store.writer(for: "k")
            for start in stride(from: 0, to: bytes.count, by: 7_001) {
                try writer.write(bytes[start..<min(start + 7_001, bytes.count)])
                let read = try writer.bytes(in: Int64(start / 2)..<Int64(start + 1))
                #expect(read == Array(bytes[start / 2..<start + 1]))
            }
            try writer.commit()
            try #expect(writer.bytes(in: 0..<Int64(bytes.count)) == bytes)
            try store.flush()
            try #expect(store.bytes("k") == bytes)
        }
    }

    /// Compressed first: what is encrypted does not shrink.
    @Test(arguments: [3_000, 100_000, 2_000_000]) func compressedBodiesAreEncrypted(_ length: Int) throws {
        let key = try Configuration.testKey
        try withStore(configuration: .testing { ($0.encryption, $0.compression) = (key, .trial) }) { store in
            let text = CompressionTests.text(length)
            try store.put(text, for: "k")
            let writer = try store.writer(for: "stream")
            try writer.write(CompressionTests.text(length, 1))
            try writer.commit()
            try store.flush()
            try #expect(store.bytes("k") == text)
            try #expect(store.bytes("stream") == CompressionTests.text(length, 1))
            try #expect(store.statistics().compressionGain > .zero)
        }
    }

    @Test(arguments: [TransferMethod.copy, .move, .link]) func filesAreTakenInAndEncrypted(_ method: TransferMethod)
        throws
    {
        let configuration = try Self.configuration()
        try withDirectory { directory in
            let file = directory.appending("file")
            try withStore(configuration: configuration) { store in
                try TestFiles.write(body(70_000, 3), to: file)
                try store.adopt(file, for: "k", method: method)
                try store.flush()
                try #expect(store.bytes("k") == body(70_000, 3))
                #expect(TestFiles.exists(file) == (method != .move))
                // A link is a copy here: what is in the store does not change with the file.
                if method == .link { try TestFiles.flipByte(of: file, at: 5) }
                try #expect(store.bytes("k") == body(70_000, 3))
            }
        }
    }

    /// Keys lie in no order: listings look at each entry, and find the same.
    @Test func selectionsFindWhatTheyFindElsewhere() throws {
        let configuration = try Self.configuration { $0.version = "1.0" }
        try withStore(configuration: configuration) { store in
            for number in 0..<300 {
                let host = number % 3 == 0 ? "a.test" : "b.test"
                let options = PutOptions(tags: ["n\(number % 7)", "all"])
                try store.put(body(20, number), for: Key("https://\(host)/\(number)"), options)
            }
            let long = Key("https://a.test/" + String(repeating: "x", count: 2_000))
            try store.put(body(20, 1), for: long)
            try store.flush()
            try #expect(store.keys().count == 301)
            try #expect(store.keys(.host("a.test")).count == 101)
            try #expect(store.keys(.prefix("https://b.test/1")).allSatisfy { $0.text.hasPrefix("https://b.test/1") })
            try #expect(store.keys(.prefix("https://b.test/1")).count == 75)
            try #expect(store.keys(.tag("n3")).count == 43)
            try #expect(store.keys(.keys([long, "https://a.test/3", "none"])).count == 2)
            try #expect(store.get(long)?.key == long)
            try store.pin(tag: "n3")
            try store.pin(tag: "a tag")
            try #expect(store.pinnedTags() == ["a tag", "n3"])
            try #expect(store.remove(.prefix("https://b.test/1")) == 75)
            try #expect(store.keys(.all).count == 226)
            try #expect(store.applicationVersions().keys.contains("1.0"))
        }
    }

    @Test func bodiesInProgressAreEncrypted() throws {
        let configuration = try Self.configuration()
        try withDirectory { path in
            let bytes = body(100_003, 5)
            func piece(_ range: Range<Int>) -> ArraySlice<UInt8> { bytes[range] }
            let first = try Store(at: path, configuration)
            let writer = try first.partialWriter(for: "k", total: ByteCount(bytes.count))
            for range in [60_000..<60_010, 0..<10, 16_380..<16_390, 99_000..<100_003, 5..<20_000] {
                try writer.write(piece(range), at: Int64(range.lowerBound))
                try #expect(writer.bytes(in: Int64(range.lowerBound)..<Int64(range.upperBound)) == Array(piece(range)))
            }
            let partial = try #require(try first.partialBody(of: "k"))
            try #expect(partial.bytes(in: 100..<20_000) == Array(piece(100..<20_000)))
            let isSame = try partial.withFileRange(in: 100..<30_000) { file, range in
                var read = [UInt8](repeating: 0, count: range.count)
                _ = try read.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: range.lowerBound, into: $0) }
                return read == Array(piece(100..<20_000))
            }
            #expect(isSame)
            try writer.suspend()
            try finish(first)
            let store = try Store(at: path, configuration)
            let second = try store.partialWriter(for: "k", total: ByteCount(bytes.count))
            #expect(second.ranges == [0..<20_000, 60_000..<60_010, 99_000..<100_003])
            try #expect(second.bytes(in: 0..<20_000) == Array(piece(0..<20_000)))
            for start in stride(from: 15_000, to: bytes.count, by: 9_999) {
                try second.write(piece(start..<min(start + 9_999, bytes.count)), at: Int64(start))
            }
            try #expect(second.commit() == Digest.of(bytes))
            try store.flush()
            try #expect(store.bytes("k") == bytes)
            try finish(store)
        }
    }

    /// Without a total length, the last chunk grows; and it is cut where bytes of it were never told.
    @Test func aBodyInProgressOfUnknownLengthEndsWithItsLastByte() throws {
        try withStore(configuration: Self.configuration()) { store in
            let bytes = body(40_000, 6)
            let writer = try store.partialWriter(for: "k")
            for start in stride(from: 0, to: bytes.count, by: 1_111) {
                try writer.write(bytes[start..<min(start + 1_111, bytes.count)], at: Int64(start))
            }
            try writer.commit()
            try store.flush()
            try #expect(store.bytes("k") == bytes)
        }
    }

    @Test func aRebuildKeepsWhatCanBeRead() throws {
        let configuration = try Self.configuration()
        try withDirectory { path in
            let store = try Store(at: path, configuration)
            for number in 0..<400 { try store.put(body(900, number), for: Key("key \(number)")) }
            for number in 0..<5 { try store.put(body(50_000, number), for: Key("file \(number)")) }
            try store.close()
            let pages = try TestFiles.read(path.appending("index/data.mdb")).count / 4096
            for page in stride(from: 40, to: min(pages, 60), by: 3) {
                for offset in 0..<64 as Range<Int64> {
                    try TestFiles.flipByte(of: path.appending("index/data.mdb"), at: Int64(page) * 4096 + 8 + offset)
                }
            }
            try #expect(code { try Store.rebuildIndex(at: path) } == .wrongKey)
            let report = try Store.rebuildIndex(at: path, configuration)
            #expect(report.keptEntries > 100 && report.keptEntries < 405)
            let again = try Store(at: path, configuration)
            for number in 0..<400 {
                if let found = try again.bytes(Key("key \(number)")) { #expect(found == body(900, number)) }
            }
            try finish(again)
        }
    }

    /// In one process: each open shows its key.
    @Test func storesOfOnePathNeedTheSameKey() throws {
        let configuration = try Self.configuration()
        try withDirectory { path in
            let store = try Store(at: path, configuration)
            try store.put([1], for: "k")
            let other = try Store(at: path, configuration)
            try #expect(other.bytes("k") == [1])
            try #expect(code { try Store(at: path, .testing { $0.encryption = nil }) } == .wrongKey)
            try #expect(code { try Store(at: path, .testing { $0.encryption = .random() }) } == .wrongKey)
            try other.close()
            try finish(store)
        }
    }

    @Test func readOnlyStoresReadThem() throws {
        let configuration = try Self.configuration()
        try withDirectory { path in
            let store = try Store(at: path, configuration)
            try store.put(body(300), for: "k")
            try store.put(body(50_000), for: "file")
            try store.close()
            let reader = try Store(at: path, Self.configuration { $0.isReadOnly = true })
            try #expect(reader.bytes("k") == body(300) && reader.bytes("file") == body(50_000))
            try reader.close()
            try #expect(
                code { try Store(at: path, .testing { ($0.isReadOnly, $0.encryption) = (true, nil) }) } == .wrongKey)
        }
    }

    /// What a memory tier holds of them costs no decryption.
    @Test func bodiesStayInMemoryDecrypted() throws {
        try withStore(configuration: Self.configuration { $0.keepsBodiesInMemory = true }) { store in
            try store.put(body(100_000), for: "k")
            try store.flush()
            for _ in 0..<4 { try #expect(store.bytes("k") == body(100_000)) }
            try #expect(store.statistics().memoryTier.hits > 0)
        }
    }
}
