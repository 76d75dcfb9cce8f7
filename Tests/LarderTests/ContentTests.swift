import Foundation
import Locks
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// Lookups by content, and of many keys or digests at once.
struct ContentTests {
    /// In the index, and in a file.
    private static let lengths = [0, 100, 100_000]

    @Test(arguments: lengths) func aPutReturnsTheDigest(_ length: Int) throws {
        try withStore { store in
            let bytes = body(length)
            try #expect(store.put(bytes, for: "a") == Digest.of(bytes))
            try #expect(store.get("a")?.digest == Digest.of(bytes))
        }
    }

    @Test(arguments: lengths) func contentIsThereAsLongAsAnEntryHasIt(_ length: Int) throws {
        try withStore { store in
            let bytes = body(length)
            let digest = Digest.of(bytes)
            try #expect(store.body(digest: digest) == nil && !store.contains(digest: digest))
            // Found at once, though the commit is still to come.
            try store.put(bytes, for: "a")
            try #expect(store.contains(digest: digest))
            try #expect(store.body(digest: digest)?.bytes() == bytes)
            try store.put(bytes, for: "b")
            try store.remove("a")
            try #expect(store.contains(digest: digest))
            try #expect(store.body(digest: digest)?.bytes() == bytes)
            try store.put(body(10, 1), for: "b")
            try #expect(store.body(digest: digest) == nil && !store.contains(digest: digest))
        }
    }

    private static let contents = (0..<100).map { body($0 % 2 == 0 ? 50 : 5_000, $0) }
    private static let digests = contents.map { Digest.of($0) }
    /// Two of three are stored.
    private static func isStored(_ number: Int) -> Bool { number % 3 != 0 }

    private func fill(_ store: Store) throws {
        for number in Self.contents.indices where Self.isStored(number) {
            try store.put(Self.contents[number], for: Key("\(number)"))
        }
    }

    /// Hits that were noted are not looked at: writing them for each lookup would cost a commit.
    @Test func aLookupAfterAHitCommitsNothing() throws {
        try withStore(configuration: .testing { $0.commitDelay = .seconds(60) }) { store in
            let digest = try store.put([1], for: "a")
            try store.flush()
            let before = try store.engine.read { $0.id }
            for _ in 0..<10 {
                _ = try store.get("a")
                try #expect(store.body(digest: digest) != nil)
            }
            try #expect(store.engine.read { $0.id } == before)
        }
    }

    @Test func missingKeepsTheOrder() throws {
        try withStore { store in
            try fill(store)
            let expected = Self.digests.indices.filter { !Self.isStored($0) }.map { Self.digests[$0] }
            try #expect(store.missing(of: Self.digests) == expected)
            try #expect(store.missing(of: Self.digests + Self.digests.prefix(2)) == expected + [Self.digests[0]])
            try #expect(store.missing(of: []) == [])
        }
    }

    @Test func manyContentsComeInOrder() throws {
        try withStore { store in
            try fill(store)
            let found = try store.bodies(digests: Self.digests)
            for (number, bytes) in Self.contents.enumerated() {
                try #expect(found[number]?.bytes() == (Self.isStored(number) ? bytes : nil))
            }
        }
    }

    @Test func theAsynchronousFormsSayTheSame() async throws {
        try await withStore { store in
            let digest = try await store.put(Self.contents[1], for: "a")
            #expect(digest == Self.digests[1])
            try fill(store)
            let missing = try await store.perform { try $0.missing(of: Self.digests) }
            #expect(missing.count == 34)
            let bodies = try await store.perform { try $0.bodies(digests: Self.digests) }
            #expect(bodies.count { $0 == nil } == 34)
            let isThere = try await store.perform { try $0.contains(digest: Self.digests[1]) }
            #expect(isThere)
            let one = try await store.body(digest: Self.digests[1])
            try await #expect(one?.bytes(in: 0..<5_000) == Self.contents[1])
            let keys = Self.contents.indices.map { Key("\($0)") }
            let entries = try await store.perform { try $0.get(keys) }
            #expect(
                entries.map { $0?.digest } == Self.digests.indices.map { Self.isStored($0) ? Self.digests[$0] : nil })
        }
    }

    /// Content belongs to no version, and does not expire: the bytes are the same.
    @Test func contentOfExpiredEntriesAndOtherVersionsIsFound() throws {
        let clock = TestClock()
        try withDirectory { path in
            // The one that looks is opened first: it removes what other versions had put before that.
            let store = try Store(at: path, .testing(clock: clock) { $0.version = "2" })
            let old = try Store(at: path, .testing(clock: clock) { $0.version = "1" })
            let digest = try old.put([1, 2, 3], for: "a", PutOptions(lifetime: .duration(.seconds(10))))
            try old.close()
            clock.advance(by: .seconds(20))
            try #expect(store.get("a") == nil && store.contains(digest: digest))
            try #expect(store.body(digest: digest)?.bytes() == [1, 2, 3])
            // What is not in the index is not found by content.
            let other = try store.put([4], for: "b", PutOptions(storagePolicy: .memoryOnly))
            try #expect(!store.contains(digest: other))
            try finish(store)
        }
    }

    /// Bytes that do not match are not returned, and do not count as present.
    @Test func damagedContentIsNotFound() throws {
        try withStore(configuration: .testing { $0.verification = .always }) { store in
            let bytes = body(100_000)
            let digest = try store.put(bytes, for: "a")
            try store.flush()
            try TestFiles.flipByte(
                of: store.path.appending("blobs").pushing(FilePath(Layout.blob(digest))), at: 50_000)
            try #expect(store.body(digest: digest) == nil)
            try #expect(!store.contains(digest: digest))
            // Put again, they are there again.
            try store.put(bytes, for: "b")
            try #expect(store.body(digest: digest)?.bytes() == bytes)
        }
    }

    @Test func manyKeysAreAnsweredInTheirPlaces() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            try store.put([1], for: "inline")
            try store.put(body(50_000), for: "file")
            try store.put([2], for: "expired", PutOptions(lifetime: .duration(.seconds(5))))
            try store.put([3], for: "memory", PutOptions(storagePolicy: .memoryOnly))
            try store.flush()
            clock.advance(by: .seconds(10))
            try store.put([4], for: "pending")
            let keys: [Key] = ["pending", "missing", "file", "expired", "memory", "inline", "file"]
            let found = try store.get(keys)
            try #expect(found.map { try $0?.body.bytes() } == [[4], nil, body(50_000), nil, [3], [1], body(50_000)])
            #expect(found.compactMap { $0?.key } == ["pending", "file", "memory", "inline", "file"])
            let all = try store.get(keys, includingExpired: true)
            try #expect(all[3]?.body.bytes() == [2])
            try #expect(store.get([Key]()).isEmpty)
            // Each was an access.
            try store.flush()
            try #expect(store.attributes(of: "file")?.hitCount ?? 0 > 0)
        }
    }

    /// What one commit wrote is seen together: pins of a tag change with one commit, so all entries always have the
    /// same.
    @Test func manyKeysAreOneSnapshot() throws {
        try withStore { store in
            let keys = (0..<20).map { Key("\($0)") }
            for key in keys { try store.put([1], for: key, PutOptions(tags: ["t"])) }
            try store.flush()
            let isOver = Atomic(false)
            let failure = Mutex<(any Error)?>(nil)
            let thread = Thread {
                do {
                    for _ in 0..<300 {
                        _ = try store.pin(tag: "t")
                        _ = try store.unpin(tag: "t")
                    }
                } catch {
                    failure.withLock { $0 = error }
                }
                isOver.store(true, ordering: .releasing)
            }
            thread.start()
            var seen: Set<Bool?> = []
            while !isOver.load(ordering: .acquiring) {
                let found = try Set(store.get(keys).map { $0?.attributes.isPinned })
                #expect(found.count == 1)
                seen.formUnion(found)
            }
            failure.withLock { #expect($0 == nil) }
            #expect(seen == [true, false])
        }
    }
}
