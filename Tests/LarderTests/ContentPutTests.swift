import TestSupport
import Testing

@testable import Larder

/// Entries whose bytes are in the store already.
@Suite struct ContentPutTests {
    @Test(arguments: [100, 500_000])
    func anEntryIsMadeOfContentThatIsThere(_ length: Int) throws {
        try withStore { store in
            let bytes = body(length, 1)
            let digest = try store.put(bytes, for: "first")
            var batch = WriteBatch()
            batch.put(contentOf: digest, for: "second", PutOptions(tags: ["t"], metadata: [7]))
            #expect(try store.results(batch) == ["stored \(digest)"])
            #expect(try store.attributes(of: "second")?.references == 2)
            try store.remove("first")
            let entry = try #require(try store.get("second"))
            #expect(try entry.body.bytes() == bytes)
            #expect(entry.metadata == [7])
            #expect(try store.keys(.tag("t")) == ["second"])
            let statistics = try store.statistics()
            #expect(statistics.blobCount == 1)
            #expect(statistics.logicalBytes.bytes == Int64(length))
        }
    }

    @Test func whatIsNotThereIsAbsentAndLeavesTheEntryAlone() throws {
        try withStore { store in
            try store.put([1], for: "k")
            try store.put([2], for: "memory", PutOptions(storagePolicy: .memoryOnly))
            #expect(try store.result { $0.put(contentOf: Digest.of([9]), for: "k") } == "absent")
            #expect(try store.result { $0.put(contentOf: Digest.of([2]), for: "k") } == "absent")
            #expect(try store.get("k")?.body.bytes() == [1])
            #expect(try store.get("memory")?.body.bytes() == [2])
        }
    }

    @Test func earlierOperationsOfTheBatchCount() throws {
        try withStore { store in
            try store.put([1], for: "k")
            let (one, two) = (Digest.of([1]), Digest.of([2]))
            var batch = WriteBatch()
            batch.put([2], for: "a")
            batch.put(contentOf: two, for: "b")
            batch.put(contentOf: one, for: "k")
            batch.put(contentOf: two, for: "k", unlessPresent: true)
            batch.remove("k")
            batch.put(contentOf: one, for: "k")
            batch.put(contentOf: two, for: "")
            batch.put(contentOf: two, for: "m", PutOptions(storagePolicy: .memoryOnly))
            #expect(
                try store.results(batch) == [
                    "stored \(two)", "stored \(two)", "stored \(one)", "present", "done", "absent",
                    "failed invalidArgument", "failed invalidArgument",
                ])
            #expect(try store.get("b")?.body.bytes() == [2])
            #expect(try store.get("k") == nil)
        }
    }

    /// The digest of a body in progress is random, and its bytes are not complete.
    @Test func aBodyInProgressIsNoContent() throws {
        try withStore { store in
            let writer = try store.partialWriter(for: "k", total: 1_000)
            try writer.write([1, 2, 3], at: 0)
            try writer.suspend()
            var digest: Digest?
            try store.forEach(.incomplete) { digest = $0.digest }
            let random = try #require(digest)
            #expect(try store.result { $0.put(contentOf: random, for: "other") } == "absent")
        }
    }

    @Test func itReplacesWhatIsInMemory() throws {
        try withStore { store in
            try store.put([1], for: "k", PutOptions(storagePolicy: .memoryOnly))
            let digest = try store.put([2], for: "other")
            #expect(try store.result { $0.put(contentOf: digest, for: "k") } == "stored \(digest)")
            #expect(try store.get("k")?.body.bytes() == [2])
        }
    }

    @Test func contentWhoseFileIsGoneIsAbsent() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            let bytes = body(500_000, 4)
            let digest = try store.put(bytes, for: "k")
            try store.flush()
            TestFiles.remove(store.blobPath(digest))
            #expect(try store.result { $0.put(contentOf: digest, for: "other") } == "absent")
            try store.put(bytes, for: "k")
            #expect(try store.result { $0.put(contentOf: digest, for: "other") } == "stored \(digest)")
            try finish(store)
        }
    }

    @Test func eventsTellItsLength() async throws {
        try await withDirectory { path in
            let store = try Store(at: path, .testing())
            let digest = try await store.put([1, 2, 3], for: "a")
            try await store.perform { try $0.flush() }
            let events = store.events()
            var batch = WriteBatch()
            batch.put(contentOf: digest, for: "b")
            try await store.write(batch)
            var iterator = events.makeAsyncIterator()
            guard case .stored(let key, let length)? = await iterator.next(isolation: nil) else {
                Issue.record("no event")
                return
            }
            #expect(key == "b")
            #expect(length.bytes == 3)
            let counters = try await store.perform { try $0.statistics().counters }
            #expect(counters.puts == 2)
            #expect(counters.bytesWritten.bytes == 3)
            try await store.close()
        }
    }
}
