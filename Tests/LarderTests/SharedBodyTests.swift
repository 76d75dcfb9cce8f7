import Locks
import TestSupport
import Testing

@testable import Larder

/// Bodies are stored once, by their digest.
@Suite struct SharedBodyTests {
    @Test(arguments: [2000, 50_000])
    func twoKeysShareOneBlobThatGoesWithTheLast(_ length: Int) throws {
        try withStore { store in
            let bytes = body(length)
            try store.put(bytes, for: "a")
            try store.flush()
            let one = try store.statistics()
            try store.put(bytes, for: "b")
            try store.put(bytes, for: "c")
            let three = try store.statistics()
            #expect(three.entryCount == 3)
            #expect(three.blobCount == 1)
            #expect(three.storedBytes == one.storedBytes)
            #expect(three.logicalBytes == ByteCount(3 * length))
            #expect(three.savedBytes == ByteCount(2 * length))
            #expect(three.fileCount == (length > 4096 ? 1 : 0))
            #expect(three.allocatedBytes.bytes == recount(store.path))
            try #expect(store.attributes(of: "b")?.references == 3)
            try store.remove("a")
            try store.put([1], for: "b")
            try #expect(store.bytes("c") == bytes)
            try #expect(store.attributes(of: "c")?.references == 1)
            try store.remove("c")
            let none = try store.statistics()
            #expect(none.blobCount == 1)
            #expect(none.storedBytes == 1)
            #expect(none.fileCount == 0)
            #expect(TestFiles.tree(store.path.appending("blobs")) == [])
        }
    }

    @Test func equalBodiesInOneBatchShareABlob() throws {
        try withStore(configuration: .holding) { store in
            for number in 0..<20 { try store.put(body(9000), for: Key("k\(number)")) }
            let statistics = try store.statistics()
            #expect(statistics.entryCount == 20)
            #expect(statistics.blobCount == 1)
            #expect(statistics.fileCount == 1)
            #expect(store.stagedFiles == [])
            for number in 0..<20 { try #expect(store.bytes(Key("k\(number)")) == body(9000)) }
        }
    }

    @Test func overwritingWithTheSameBytesKeepsOneBlob() throws {
        try withStore { store in
            for _ in 0..<3 {
                try store.put(body(9000), for: "k")
                try store.flush()
            }
            try #expect(store.statistics().blobCount == 1)
            try #expect(store.attributes(of: "k")?.references == 1)
        }
    }

    @Test func bodiesAreSharedAcrossDifferentThresholds() throws {
        try withDirectory { path in
            let first = try Store(at: path, .testing { $0.inlineThreshold = .kibibytes(64) })
            try first.put(body(9000), for: "inline")
            try first.close()
            let second = try Store(at: path, .testing { $0.inlineThreshold = 0 })
            try second.put(body(9000), for: "file")
            try second.put([1], for: "tiny")
            let statistics = try second.statistics()
            #expect(statistics.blobCount == 2)
            #expect(statistics.fileCount == 1)
            try #expect(second.bytes("file") == body(9000))
            try finish(second)
        }
    }

    @Test func aBodyReplacedBeforeItIsCommittedLeavesNoFile() throws {
        try withStore(configuration: .holding) { store in
            for number in 0..<5 { try store.put(body(9000, number), for: "k") }
            try store.put(body(9000, 9), for: "gone")
            try store.remove("gone")
            #expect(store.stagedFiles.count == 1)
            try store.flush()
            try #expect(store.statistics().fileCount == 1)
            try #expect(store.bytes("k") == body(9000, 4))
        }
    }

    // MARK: Keys the store makes

    @Test func uniqueKeysAreRandomUUIDs() throws {
        try withStore { store in
            var keys = Set<Key>()
            for number in 0..<50 { keys.insert(try store.put(body(10, number))) }
            #expect(keys.count == 50)
            let hex = "0123456789abcdef"
            for key in keys {
                let text = Array(key.text)
                #expect(text.count == 45)
                #expect(String(text.prefix(9)) == "urn:uuid:")
                let uuid = Array(text.dropFirst(9))
                for (position, digit) in uuid.enumerated() {
                    switch position {
                    case 8, 13, 18, 23: #expect(digit == "-")
                    case 14: #expect(digit == "4")
                    case 19: #expect("89ab".contains(digit))
                    default: #expect(hex.contains(digit))
                    }
                }
            }
            try #expect(store.statistics().entryCount == 50)
        }
    }

    @Test(arguments: [10, 100_000])
    func everyFormOfBytesIsStoredWithoutAKey(_ length: Int) async throws {
        try await withStore { store in
            let bytes = body(length, 1)
            let digest = Digest.of(bytes)
            func check(_ key: Key, isOfContent: Bool) throws {
                try #expect(store.bytes(key) == bytes)
                try #expect(store.attributes(of: key)?.tags == ["t"])
                #expect((key == Key(digest)) == isOfContent)
            }
            let options = PutOptions(tags: ["t"])
            try check(putSynchronously(store) { try $0.put(bytes[...], options) }, isOfContent: false)
            try check(
                putSynchronously(store) { store in try bytes.withUnsafeBytes { try store.put($0.bytes, options) } },
                isOfContent: false)
            try await check(store.put(bytes.lazy.map { $0 }, options), isOfContent: false)
            let forms: [(Store) throws -> Key] = [
                { try $0.putByContent(bytes[...], options) },
                { store in try bytes.withUnsafeBytes { try store.putByContent($0.bytes, options) } },
                { store in
                    let writer = try store.writerByContent(options)
                    for start in stride(from: 0, to: length, by: 30_000) {
                        try writer.write(bytes[start..<min(start + 30_000, length)])
                    }
                    return Key(try writer.commit())
                },
            ]
            for form in forms {
                try check(form(store), isOfContent: true)
                _ = try await store.remove(Key(digest))
            }
            try await check(store.putByContent(bytes.lazy.map { $0 }, options), isOfContent: true)
        }
    }

    @Test func aWriterByContentChecksWhatWasDeclared() throws {
        try withStore { store in
            let other = try store.writerByContent(digest: Digest.of([1]))
            try other.write(body(100_000))
            let error = #expect(throws: LarderError.self) { try other.commit() }
            #expect(error?.code == .digestMismatch)
            #expect(error?.message.contains("the body of sha256:... has the SHA-256") == true)
            let short = try store.writerByContent(length: ByteCount(10))
            try short.write([1])
            try #expect(code { try short.commit() } == .lengthMismatch)
            try #expect(code { _ = try store.writerByContent(PutOptions(tags: [""])) } == .invalidArgument)
            try #expect(store.statistics().entryCount == 0)
            #expect(store.stagedFiles == [])
        }
    }

    @Test func contentKeysAreTheDigestOfTheBody() throws {
        try withStore { store in
            let key = try store.putByContent(Array("abc".utf8))
            #expect(key == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
            try #expect(store.putByContent(Array("abc".utf8)) == key)
            try #expect(store.bytes(key) == Array("abc".utf8))
            let large = try store.putByContent(body(9000))
            try #expect(store.bytes(large) == body(9000))
            try #expect(store.statistics().entryCount == 2)
        }
    }

    /// A collection that counts how often it is read.
    private struct CountedBytes: Collection, Sendable {
        let bytes: [UInt8]
        let reads: Counter

        final class Counter: Sendable {
            let value = Atomic<Int>(0)
        }

        var startIndex: Int { 0 }
        var endIndex: Int { bytes.count }
        func index(after index: Int) -> Int { index + 1 }
        subscript(position: Int) -> UInt8 {
            if position == 0 { reads.value.wrappingAdd(1, ordering: .relaxed) }
            return bytes[position]
        }
    }

    @Test(arguments: [100, 50_000])
    func bytesAreReadOnceForTheirKey(_ length: Int) async throws {
        try await withStore { store in
            let counted = CountedBytes(bytes: body(length), reads: CountedBytes.Counter())
            let key = try putSynchronously(store) { try $0.putByContent(counted) }
            #expect(counted.reads.value.load(ordering: .relaxed) == 1)
            let again = try await store.putByContent(counted)
            #expect(counted.reads.value.load(ordering: .relaxed) == 2)
            #expect(key == again && key == Key(Digest.of(body(length))))
            try #expect(store.bytes(key) == body(length))
        }
    }
}

/// In a task the asynchronous form is chosen where there are two.
private func putSynchronously(_ store: Store, _ put: (Store) throws -> Key) throws -> Key { try put(store) }
