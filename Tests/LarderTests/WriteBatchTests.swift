import SystemPackage
import TestSupport
import Testing

@testable import Larder

extension WriteResult {
    /// What is compared in tests: an error by its code.
    var summary: String {
        switch self {
        case .stored(let digest): "stored \(digest)"
        case .done: "done"
        case .present: "present"
        case .absent: "absent"
        case .changed: "changed"
        case .failed(let error): "failed \(error.code)"
        }
    }
}

extension Store {
    /// The results of a batch, as text.
    func results(_ batch: WriteBatch, durability: Durability? = nil) throws -> [String] {
        try write(batch, durability: durability).map(\.summary)
    }

    func result(_ fill: (inout WriteBatch) -> Void) throws -> String {
        var batch = WriteBatch()
        fill(&batch)
        return try results(batch)[0]
    }
}

@Suite struct WriteBatchTests {
    private func stored(_ bytes: [UInt8]) -> String { "stored \(Digest.of(bytes))" }

    // MARK: Bytes

    @Test(arguments: [0, 10, 50_000])
    func aBatchTakesEveryFormOfBytes(length: Int) throws {
        try withStore { store in
            let bytes = body(length, 1)
            var batch = WriteBatch()
            batch.put(bytes, for: "array")
            batch.put(([9] + bytes + [9])[1..<(length + 1)], for: "slice")
            batch.put(bytes.lazy.map { $0 }, for: "lazy")
            bytes.withUnsafeBytes { batch.put($0.bytes, for: "span") }
            batch.put("grüß dich".utf8, for: "text")
            let results = try store.write(batch).map(\.summary)
            #expect(results == Array(repeating: stored(bytes), count: 4) + [stored(Array("grüß dich".utf8))])
            for key in ["array", "slice", "lazy", "span"] as [Key] { try #expect(store.bytes(key) == bytes) }
            try #expect(store.attributes(of: "span")?.references == 4)
        }
    }

    // MARK: Results

    @Test func theFirstFailureOfABatchCanBeThrown() throws {
        try withStore { store in
            var batch = WriteBatch()
            batch.put([1], for: "a")
            batch.touch("gone")
            batch.put([1], for: "a", unlessPresent: true)
            #expect(throws: Never.self) { try store.write(batch).throwIfFailed() }
            batch.put([1], for: "b", digest: Digest.of([2]))
            batch.put([1], for: "")
            batch.put([3], for: "c")
            try #expect(code { try store.write(batch).throwIfFailed() } == .digestMismatch)
            // The others are done.
            try #expect(store.bytes("c") == [3])
        }
    }

    @Test(arguments: [Durability.relaxed, .durable])
    func eachOperationHasItsResultInOrder(_ durability: Durability) throws {
        try withStore { store in
            try store.put([1], for: "old")
            let old = try #require(try store.get("old"))
            try store.put([2], for: "other")
            let other = try #require(try store.get("other"))
            try store.put([3], for: "other")
            var batch = WriteBatch()
            batch.put([5], for: "new")
            batch.put(body(50_000, 1), for: "large")
            batch.put([6], for: "new", unlessPresent: true)
            batch.update(old, EntryChange(metadata: [7]))
            batch.update(other, EntryChange(metadata: [8]))
            batch.touch("gone")
            batch.change("new", EntryChange(lifetime: .duration(.seconds(60))))
            batch.lease("later", for: .seconds(60))
            batch.remove("gone")
            batch.remove(other)
            batch.put([9], for: "")
            batch.put([9], for: "wrong", digest: Digest.of([1]))
            batch.put([9], for: "memory", PutOptions(storagePolicy: .memoryOnly))
            #expect(batch.count == 13)
            try #expect(
                store.results(batch, durability: durability) == [
                    stored([5]), stored(body(50_000, 1)), "present", "done", "changed", "absent", "done", "done",
                    "absent", "changed", "failed invalidArgument", "failed digestMismatch", "failed invalidArgument",
                ])
            try #expect(store.bytes("new") == [5])
            try #expect(store.attributes(of: "new")?.expires != nil)
            try #expect(store.bytes("large") == body(50_000, 1))
            try #expect(store.get("old")?.metadata == [7])
            try #expect(store.bytes("other") == [3])
            try #expect(store.get("wrong") == nil)
            #expect(store.stagedFiles == [])
        }
    }

    @Test func theAsynchronousFormSaysTheSame() async throws {
        try await withStore { store in
            var batch = WriteBatch()
            batch.put([5], for: "new")
            batch.put(body(50_000, 1), for: "large")
            batch.remove("gone")
            let results = try await store.write(batch)
            #expect(results.map(\.summary) == [stored([5]), stored(body(50_000, 1)), "absent"])
            try #expect(store.bytes("large") == body(50_000, 1))
            try await #expect(store.touch("new"))
            try await #expect(store.pin("new"))
            try await #expect(store.unpin("new"))
            try await #expect(!store.touch("gone"))
            let held = try await (store.lease("new"), store.lease(tag: "t"))
            held.0.release()
            held.1.release()
            let none = try await store.write(WriteBatch())
            #expect(none.isEmpty)
        }
    }

    @Test func aCancelledTaskWritesNothing() async throws {
        try await withStore { store in
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                var batch = WriteBatch()
                batch.put([5], for: "new")
                try await store.write(batch)
            }
            await #expect(throws: CancellationError.self) { try await task.value }
            try #expect(!store.contains("new"))
        }
    }

    @Test func laterOperationsSeeEarlierOnes() throws {
        try withStore { store in
            var batch = WriteBatch()
            batch.put([1], for: "k")
            batch.change("k", EntryChange(metadata: [1]))
            batch.put([2], for: "k", unlessPresent: true)
            batch.remove("k")
            batch.put([3], for: "k", unlessPresent: true)
            try #expect(store.results(batch) == [stored([1]), "done", "present", "done", stored([3])])
            try #expect(store.bytes("k") == [3])
            try #expect(store.get("k")?.metadata == [])
        }
    }

    @Test func whatIsPendingComesFirst() throws {
        try withStore { store in
            try store.put([1], for: "put")
            try store.put([1], for: "removed")
            try store.flush()
            try store.put([2], for: "put")
            try store.remove("removed")
            var batch = WriteBatch()
            batch.put([3], for: "put", unlessPresent: true)
            batch.put([3], for: "removed", unlessPresent: true)
            try #expect(store.results(batch) == ["present", stored([3])])
            try #expect(store.bytes("put") == [2])
        }
    }

    @Test func closedAndReadOnlyStoresThrow() throws {
        try withDirectory { path in
            let store = try Store(at: path, .testing())
            var batch = WriteBatch()
            batch.put(body(50_000), for: "k")
            var configuration = Configuration.testing()
            configuration.isReadOnly = true
            try store.put([1], for: "k")
            try store.close()
            try #expect(code { try store.write(batch) } == .closed)
            let reader = try Store(at: path, configuration)
            try #expect(code { try reader.write(batch) } == .readOnly)
            try #expect(code { try reader.touch("k") } == .readOnly)
            try reader.close()
            let again = try Store(at: path, .testing())
            #expect(again.stagedFiles == [])
            try finish(again)
        }
    }

    // MARK: One commit

    @Test func aBatchIsOneCommit() throws {
        try withStore { store in
            let environment = store.engine.index.environment
            let before = environment.lastTransaction
            var batch = WriteBatch()
            for number in 0..<500 { batch.put(body(200, number), for: Key("k\(number)")) }
            for number in 0..<500 { batch.touch(Key("k\(number)")) }
            let results = try store.write(batch)
            #expect(!results.contains { !$0.isSuccess })
            #expect(environment.lastTransaction == before + 1)
            try #expect(store.statistics().entryCount == 500)
        }
    }

    @Test func readersSeeAllOfABatchOrNothing() throws {
        try withStore { store in
            let keys = (0..<8).map { Key("k\($0)") }
            let isOver = Counter()
            let readers = Threads(2) { _ in
                while isOver.value == 0 {
                    let seen = try Set(store.get(keys).map { try $0?.body.bytes() })
                    #expect(seen.count == 1, "\(seen)")
                }
            }
            for round in 0..<100 {
                var batch = WriteBatch()
                for key in keys { batch.put([UInt8(round)], for: key) }
                try store.write(batch)
            }
            isOver.increment()
            try readers.join()
        }
    }

    /// A put that is pending when a batch comes is committed with it: who sees the batch sees what came before.
    @Test func readersOfManyKeysSeeABatchAfterWhatWasPending() throws {
        try withStore { store in
            let keys = (0..<8).map { Key("k\($0)") }
            for key in keys { try store.put([1], for: key) }
            let isOver = Counter()
            let readers = Threads(2) { _ in
                while isOver.value == 0 {
                    let seen = try store.get(keys).map { try $0?.body.bytes()[0] ?? 0 }
                    #expect(Set(seen[1...]).count == 1, "\(seen)")
                    #expect(seen[0] >= seen[1], "\(seen)")
                }
            }
            for round in 1..<120 {
                try store.put([UInt8(round * 2)], for: "k0")
                var batch = WriteBatch()
                for key in keys { batch.put([UInt8(round * 2 + 1)], for: key) }
                try store.write(batch)
            }
            isOver.increment()
            try readers.join()
        }
    }

    @Test func callersShareCommits() throws {
        try withStore { store in
            let count = 32
            for number in 0..<count { try store.put([1], for: Key("k\(number)")) }
            try store.flush()
            let environment = store.engine.index.environment
            let pending = try #require(store.engine.writing?.pending)
            let before = environment.lastTransaction
            // While another writer has the lock, they all come to wait.
            let threads = try environment.write { _ in
                let threads = Threads(count) { try #expect(store.touch(Key("k\($0)"))) }
                blockWhile { pending.waitingJobs < count }
                return threads
            }
            try threads.join()
            #expect(environment.lastTransaction <= before + 3)
        }
    }

    @Test func oneOfManyWritersIsFirst() throws {
        try withStore { store in
            let winners = Counter()
            try Threads.run(8) { thread in
                for number in 0..<20 {
                    var batch = WriteBatch()
                    batch.put([UInt8(thread)], for: Key("k\(number)"), unlessPresent: true)
                    if case .stored = try store.write(batch)[0] { winners.increment() }
                }
            }
            #expect(winners.value == 20)
        }
    }

    @Test func putsOfTheSameKeysAroundABatchKeepTheirOrder() throws {
        try withStore { store in
            try Threads.run(4) { thread in
                for round in 0..<50 {
                    let key = Key("\(thread)/\(round % 5)")
                    try store.put([1], for: key)
                    var batch = WriteBatch()
                    batch.remove(key)
                    batch.put([2], for: key, unlessPresent: true)
                    try #expect(store.results(batch) == ["done", stored([2])])
                    try store.put([3], for: key)
                    try #expect(store.bytes(key) == [3])
                    try store.remove(key)
                    try #expect(store.result { $0.touch(key) } == "absent")
                }
            }
        }
    }

    // MARK: Conditions

    @Test func presentMeansAHit() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            let put: (inout WriteBatch) -> Void = { $0.put([9], for: "k", unlessPresent: true) }
            try store.put([1], for: "k", PutOptions(lifetime: .duration(.seconds(5))))
            try #expect(store.result(put) == "present")
            clock.advance(by: .seconds(6))
            try #expect(store.result(put) == stored([9]))
            try store.put([1], for: "k", PutOptions(storagePolicy: .memoryOnly))
            try #expect(store.result(put) == "present")
            try store.remove("k")
            try #expect(store.result(put) == stored([9]))
        }
    }

    @Test func aLostBodyIsNotPresent() throws {
        try withStore { store in
            let bytes = body(50_000, 1)
            try store.put(bytes, for: "k")
            try store.flush()
            _ = FileSystem.unlink(path: store.blobPath(Digest.of(bytes)))
            try #expect(store.result { $0.put(bytes, for: "k", unlessPresent: true) } == stored(bytes))
            try #expect(store.bytes("k") == bytes)
        }
    }

    @Test func entriesOfOtherVersionsAreNotSeen() throws {
        try withDirectory { path in
            let one = try Store(at: path, .testing { $0.version = "1" })
            let two = try Store(at: path, .testing { $0.version = "2" })
            try one.put([1], for: "k")
            try one.flush()
            try #expect(two.result { $0.touch("k") } == "absent")
            try #expect(two.result { $0.remove("k") } == "absent")
            try #expect(two.result { $0.change("k", EntryChange(metadata: [1])) } == "absent")
            try #expect(one.get("k")?.metadata == [])
            try #expect(two.result { $0.put([2], for: "k", unlessPresent: true) } == stored([2]))
            try one.close()
            try finish(two)
        }
    }

    // MARK: Room

    @Test func aBatchMakesRoomForItself() throws {
        let budget = 4 << 20
        try withStore(configuration: .testing(budget: Budget(bytes: ByteCount(budget)))) { store in
            for number in 0..<40 { try store.put(body(100_000, number), for: Key("old\(number)")) }
            var batch = WriteBatch()
            for number in 0..<10 { batch.put(body(100_000, 100 + number), for: Key("new\(number)")) }
            for number in 0..<100 { batch.put(body(3000, 200 + number), for: Key("small\(number)")) }
            try #expect(!store.write(batch).contains { !$0.isSuccess })
            for number in 0..<10 { try #expect(store.contains(Key("new\(number)"))) }
            #expect(recount(store.path) <= budget)
        }
    }

    @Test func aBatchThatDoesNotFitChangesNothing() throws {
        let budget = 2 << 20
        try withStore(configuration: .testing(budget: Budget(bytes: ByteCount(budget)))) { store in
            let pinned = PutOptions(isPinned: true)
            for number in 0..<60 { try store.put(body(20_000, number), for: Key("p\(number)"), pinned) }
            try store.flush()
            let keys = try store.keys()
            #expect(keys.count == 60)
            var batch = WriteBatch()
            batch.remove("p0")
            for number in 0..<300 { batch.put(body(3000, number), for: Key("small\(number)"), pinned) }
            batch.put(body(5000, 9), for: "file")
            try #expect(code { try store.write(batch) } == .noSpace)
            try #expect(store.keys() == keys)
            #expect(store.stagedFiles == [])
            #expect(recount(store.path) <= budget)
            try store.put([2], for: "after")
        }
    }

    @Test func aBodyTooLargeLeavesTheOthersAlone() throws {
        try withStore(configuration: .testing(budget: Budget(largestEntry: 5000))) { store in
            var batch = WriteBatch()
            batch.put(body(4500), for: "fits")
            batch.put(body(5001), for: "large")
            try #expect(store.results(batch) == [stored(body(4500)), "failed tooLarge"])
        }
    }

    @Test func aStoreFullOfPinsIsUnpinnedByABatch() throws {
        try withStore(configuration: .testing(budget: Budget(bytes: .mebibytes(1)))) { store in
            var number = 0
            let pinned = PutOptions(isPinned: true)
            while try code({ try store.put(body(20_000, number), for: Key("k\(number)"), pinned) }) == nil {
                number += 1
            }
            try store.flush()
            var batch = WriteBatch()
            for key in try store.keys() { batch.change(key, EntryChange(isPinned: false)) }
            try #expect(!store.write(batch).contains { !$0.isSuccess })
            try store.put(body(20_000, 1000), for: "new")
        }
    }

    // MARK: Limits

    @Test func aBatchOverTheBudgetDisplacesNothing() throws {
        try withStore(configuration: .testing(budget: Budget(bytes: .mebibytes(2)))) { store in
            for number in 0..<50 { try store.put([UInt8(number)], for: Key("k\(number)")) }
            var batch = WriteBatch()
            for number in 0..<1000 { batch.put(body(3000, number), for: Key("b\(number)")) }
            try #expect(code { try store.write(batch) } == .tooLarge)
            try #expect(store.statistics().entryCount == 50)
            var long = WriteBatch()
            for _ in 0...16_384 { long.touch("k1") }
            try #expect(code { try store.write(long) } == .invalidArgument)
        }
    }
}
