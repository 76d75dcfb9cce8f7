import TestSupport
import Testing

@testable import Larder

@Suite struct PutGetTests {
    /// Around the inline threshold of 4 KiB, and the sizes at which allocation changes its ways.
    static let lengths = [0, 1, 4095, 4096, 4097, 100_000, 1 << 20, (4 << 20) + 1]

    @Test(arguments: lengths)
    func whatIsPutIsReadBackPendingCommittedAndReopened(_ length: Int) throws {
        try withDirectory { path in
            let bytes = body(length)
            let store = try Store(at: path, .holding)
            try store.put(bytes, for: "k", PutOptions(metadata: [9, 8]))
            try check(store, bytes)
            try store.flush()
            try check(store, bytes)
            try verify(store)
            try store.close()
            let again = try Store(at: path, .testing())
            try check(again, bytes)
            try finish(again)
        }
    }

    private func check(_ store: Store, _ bytes: [UInt8]) throws {
        let entry = try #require(try store.get("k"))
        #expect(entry.key == "k")
        #expect(entry.body.length == ByteCount(bytes.count))
        #expect(entry.digest == Digest.of(bytes))
        #expect(entry.metadata == [9, 8])
        try #expect(entry.body.bytes() == bytes)
        #expect(entry.attributes.isInline == (bytes.count <= 4096))
    }

    @Test func aMissIsNilNotAnError() throws {
        try withStore { store in
            try #expect(store.get("none") == nil)
            try #expect(store.contains("none") == false)
            try #expect(store.attributes(of: "none") == nil)
            try #expect(store.remove("none") == false)
            try #expect(store.withBody(of: "none") { _ in 1 } == nil)
            #expect(store["none"] == nil)
            try #expect(store.touch("none") == false)
            try #expect(store.keys() == [])
        }
    }

    @Test(arguments: [(100, 200), (100, 9000), (9000, 100), (9000, 9001)])
    func overwritingIsCoherentEverywhere(_ first: Int, _ second: Int) throws {
        try withStore(configuration: .holding) { store in
            let old = body(first, 1)
            let new = body(second, 2)
            for flushesBefore in [false, true] {
                for flushesAfter in [false, true] {
                    try store.put(old, for: "k", PutOptions(tags: ["old"], metadata: [1]))
                    if flushesBefore { try store.flush() }
                    let held = try #require(try store.get("k"))
                    try store.put(new, for: "k", PutOptions(tags: ["new"], metadata: [2]))
                    if flushesAfter { try store.flush() }
                    try #expect(store.bytes("k") == new)
                    try #expect(store.withBody(of: "k") { $0.byteCount } == second)
                    #expect(store["k"] == new)
                    try #expect(store.get("k")?.metadata == [2])
                    try #expect(store.attributes(of: "k")?.tags == ["new"])
                    try #expect(store.keys(.tag("old")) == [])
                    // What was looked up before keeps its bytes.
                    try #expect(held.body.bytes() == old)
                    try #expect(store.statistics().entryCount == 1)
                    try #expect(store.statistics().logicalBytes == ByteCount(second))
                }
            }
        }
    }

    @Test(arguments: [false, true])
    func anEntryPutAfterItsRemovalInheritsNothing(_ flushes: Bool) throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock) { $0.commitDelay = .seconds(3600) }) { store in
            try store.put([1], for: "k", PutOptions(isPinned: true))
            if flushes { try store.flush() }
            clock.advance(by: .seconds(10))
            try store.remove("k")
            try store.put([2], for: "k")
            try store.put([3], for: "k")
            let attributes = try #require(try store.attributes(of: "k"))
            #expect(attributes.created == clock.now())
            #expect(!attributes.isPinned)
            try #expect(store.bytes("k") == [3])
        }
    }

    @Test func removalIsSeenAtOnceAndLeavesNothing() throws {
        try withStore(configuration: .holding) { store in
            let empty = try store.statistics()
            for length in [10, 9000] {
                for flushes in [false, true] {
                    try store.put(body(length), for: "k", PutOptions(tags: ["t"]))
                    if flushes { try store.flush() }
                    try #expect(store.remove("k") == true)
                    try #expect(store.get("k") == nil)
                    try #expect(store.contains("k") == false)
                    try #expect(store.remove("k") == false)
                    try #expect(store.keys(.tag("t")) == [])
                }
            }
            let after = try store.statistics()
            #expect(after.entryCount == 0)
            #expect(after.blobCount == 0)
            #expect(after.fileCount == 0)
            #expect(after.storedBytes == empty.storedBytes)
            #expect(TestFiles.names(in: store.path.appending("trash")) == [])
        }
    }

    @Test func clearRemovesEveryEntryAndEveryFile() throws {
        try withStore { store in
            for number in 0..<50 { try store.put(body(number * 400, number), for: Key("k\(number)")) }
            try store.pin("k1")
            try store.put([1], for: "memory", PutOptions(storagePolicy: .memoryOnly))
            try #expect(store.clear() == 51)
            try #expect(store.keys() == [])
            let statistics = try store.statistics()
            #expect(statistics.entryCount == 0)
            #expect(statistics.blobCount == 0)
            #expect(statistics.fileCount == 0)
            #expect(statistics.logicalBytes == .zero)
            #expect(statistics.storedBytes == .zero)
            #expect(TestFiles.tree(store.path.appending("blobs")) == [])
            try #expect(store.clear() == 0)
            try store.put(body(9000), for: "again")
            try #expect(store.bytes("again") == body(9000))
        }
    }

    @Test func clearIsAtomicForReaders() throws {
        try withStore { store in
            let stop = Counter()
            let readers = Threads(2) { _ in
                while stop.value == 0 {
                    // All 20 entries or none, in one snapshot of the listing (a batch holds 256).
                    let count = try store.engine.read { transaction in
                        try transaction.statistics(store.engine.index.entries).entries
                    }
                    #expect(count == 0 || count == 20)
                }
            }
            for _ in 0..<20 {
                try store.engine.mutate(.put) { mutation in
                    for number in 0..<20 {
                        let bytes = body(100, number)
                        let put = store.makePut(Key("k\(number)"), Digest.of(bytes), 100, .inline(bytes), PutOptions())
                        try mutation.put(put)
                    }
                }
                try #expect(store.clear() == 20)
            }
            stop.increment()
            try readers.join()
        }
    }

    @Test func theSubscriptPutsReadsAndRemoves() throws {
        try withStore { store in
            store["k"] = [1, 2]
            #expect(store["k"] == [1, 2])
            store["k"] = [3]
            #expect(store["k"] == [3])
            store["k"] = nil
            #expect(store["k"] == nil)
            // A failure is a miss here.
            store[""] = [1]
            #expect(store[""] == nil)
            try #expect(store.keys() == [])
        }
    }

    @Test func containsLooksAtTheIndexOnly() throws {
        try withStore { store in
            try store.put(body(9000), for: "k")
            try store.flush()
            TestFiles.remove(store.blobPath(Digest.of(body(9000))))
            try #expect(store.contains("k") == true)
            try #expect(store.get("k") == nil)
            try #expect(store.contains("k") == false)
            try store.put(body(9000), for: "k")
            try #expect(store.bytes("k") == body(9000))
        }
    }

    @Test func attributesTellWhatWasPut() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            let start = clock.now()
            let options = PutOptions(
                lifetime: .duration(.seconds(60)), storagePolicy: .session, tags: ["a", "b"], metadata: [1, 2, 3],
                isPinned: true)
            try store.put(body(9000), for: "k", options)
            clock.advance(by: .seconds(10))
            _ = try store.get("k")
            _ = try store.get("k")
            let attributes = try #require(try store.attributes(of: "k"))
            #expect(attributes.key == "k")
            #expect(attributes.digest == Digest.of(body(9000)))
            #expect(attributes.length == 9000)
            #expect(attributes.storedLength == 9000)
            #expect(attributes.encoding == .identity)
            #expect(!attributes.isInline)
            #expect(attributes.references == 1)
            #expect(attributes.created == start)
            #expect(attributes.stored == start)
            #expect(attributes.expires == start + .seconds(60))
            #expect(attributes.hitCount == 2)
            #expect(attributes.storagePolicy == .session)
            #expect(attributes.isPinned)
            #expect(attributes.tags == ["a", "b"])
            #expect(attributes.metadata == [1, 2, 3])
            #expect(attributes.version == nil)
            try store.put([1], for: "k")
            let overwritten = try #require(try store.attributes(of: "k"))
            #expect(overwritten.created == start)
            #expect(overwritten.stored == start + .seconds(10))
            #expect(overwritten.isPinned)
            #expect(overwritten.expires == nil)
            #expect(overwritten.hitCount == 0)
            try store.put([2], for: "plain")
            let plain = try #require(try store.attributes(of: "plain"))
            #expect(plain.isInline)
            #expect(!plain.isPinned)
        }
    }

    @Test func aDeclaredDigestThatDoesNotMatchStoresNothing() throws {
        try withStore { store in
            for length in [10, 9000] {
                try #expect(code { try store.put(body(length), for: "k", digest: Digest.of([1])) } == .digestMismatch)
                try #expect(store.get("k") == nil)
                try store.put(body(length), for: "good", digest: Digest.of(body(length)))
                try #expect(store.bytes("good") == body(length))
            }
            try store.flush()
            #expect(store.stagedFiles == [])
        }
    }

    @Test func optionsOutOfRangeAreRefused() throws {
        try withStore { store in
            let long = String(repeating: "t", count: 201)
            let cases: [(PutOptions, LarderError.Code)] = [
                (PutOptions(tags: [""]), .invalidArgument), (PutOptions(tags: [long]), .invalidArgument),
                (PutOptions(tags: ["a\0b"]), .invalidArgument),
                (PutOptions(tags: (0..<4_097).map { "t\($0)" }), .tooLarge),
                (PutOptions(tags: (100..<264).map { String(repeating: "t", count: 197) + "\($0)" }), .tooLarge),
                (PutOptions(metadata: [UInt8](repeating: 0, count: (1 << 20) + 1)), .tooLarge),
            ]
            for (options, expected) in cases {
                try #expect(code { try store.put([1], for: "k", options) } == expected)
                try #expect(code { try store.writer(for: "k", options) } == expected)
            }
            try store.put([1], for: "most", PutOptions(tags: (0..<4_096).map { "t\($0)" }, metadata: body(1 << 20)))
            try #expect(store.attributes(of: "most")?.tags.count == 4_096)
            try #expect(store.get("most")?.metadata == body(1 << 20))
        }
    }

    // MARK: Durable

    @Test func aDurablePutIsInTheIndexWhenItReturns() throws {
        try withStore(configuration: .holding) { store in
            for length in [10, 9000] {
                let before = store.engine.index.environment.lastTransaction
                try store.put(body(length), for: "k", PutOptions(durability: .durable))
                #expect(store.engine.index.environment.lastTransaction > before)
                #expect(store.engine.writing?.pending.lookup("k", use: nil) == nil)
            }
            try store.put([1], for: "relaxed")
            #expect(store.engine.writing?.pending.lookup("relaxed", use: nil) != nil)
        }
    }

    @Test func concurrentDurablePutsShareCommits() throws {
        try withStore { store in
            try Threads.run(8) { thread in
                for number in 0..<20 {
                    try store.put([1], for: Key("\(thread)/\(number)"), PutOptions(durability: .durable))
                }
            }
            try #expect(store.statistics().entryCount == 160)
        }
    }
}
