import Locks
import TestSupport
import Testing

@testable import Larder

#if LARDER_FAILPOINTS
    import Failpoints
#endif

/// What a batch may ask for, and what it leaves behind when it is refused or cancelled.
struct BatchLimitTests {
    // MARK: Size

    @Test func moreEntriesThanTheBudgetHasAreRefused() throws {
        try withStore(configuration: .testing(budget: Budget(entries: 100))) { store in
            for number in 0..<50 { try store.put([1], for: Key("k\(number)")) }
            var batch = WriteBatch()
            for number in 0..<1000 { batch.put([2], for: Key("b\(number)")) }
            try #expect(code { try store.write(batch) } == .tooLarge)
            try #expect(store.keys().count == 50)
            // As many as there may be, whatever the operations.
            var fitting = WriteBatch()
            for number in 0..<300 { fitting.put([2], for: Key("b\(number % 100)")) }
            for number in 0..<10 { fitting.remove(Key("b\(number)")) }
            for number in 0..<10 { fitting.put([2], for: Key("c\(number)")) }
            try #expect(!store.write(fitting).contains { !$0.isSuccess })
            try #expect(store.keys().count == 100)
        }
    }

    @Test func keysAndTagsCountAsBytes() throws {
        try withStore(configuration: .testing(budget: Budget(bytes: .mebibytes(2)))) { store in
            for number in 0..<50 { try store.put([1], for: Key("k\(number)")) }
            var keys = WriteBatch()
            for number in 0..<1000 { keys.put([2], for: Key("\(number)" + String(repeating: "x", count: 4000))) }
            try #expect(code { try store.write(keys) } == .tooLarge)
            let tags = (0..<40).map { String(repeating: "t", count: 100) + "\($0)" }
            var tagged = WriteBatch()
            for number in 0..<1000 { tagged.put([2], for: Key("\(number)"), PutOptions(tags: tags)) }
            try #expect(code { try store.write(tagged) } == .tooLarge)
            try #expect(store.keys().count == 50)
        }
    }

    /// Small operations that fit come after the large one that waits for an empty batch.
    @Test func aLargeBatchIsNext() throws {
        let configuration = Configuration.testing {
            $0.pendingLimit = .kibibytes(256)
            $0.inlineThreshold = .kibibytes(64)
        }
        try withStore(configuration: configuration) { store in
            for key: Key in ["a", "b", "c"] { try store.put([1], for: key) }
            try store.flush()
            let pending = try #require(store.engine.writing?.pending)
            let order = Mutex<[String]>([])
            let threads = try store.engine.index.environment.write { _ in
                var threads = [Threads(1) { _ in try store.touch("a") }]
                blockWhile { pending.isDue || pending.waitingJobs < 1 }
                threads.append(Threads(1) { _ in try store.touch("b") })
                blockWhile { pending.waitingJobs < 2 }
                threads.append(
                    Threads(1) { _ in
                        var batch = WriteBatch()
                        for number in 0..<20 { batch.put(body(20_000, number), for: Key("large\(number)")) }
                        try store.write(batch)
                        order.withLock { $0.append("large") }
                    })
                blockWhile { pending.jobsInLine < 1 }
                threads.append(
                    Threads(1) { _ in
                        try store.touch("c")
                        order.withLock { $0.append("small") }
                    })
                // In line behind it, or let in before it.
                blockWhile { pending.jobsInLine < 2 && pending.waitingJobs < 3 }
                #expect(pending.waitingJobs == 2)
                return threads
            }
            for thread in threads { try thread.join() }
            try #expect(store.keys(.prefix("large")).count == 20)
        }
    }

    // MARK: Leases

    @Test func timedLeasesEndWithClearAndHaveALongestTime() throws {
        try withStore { store in
            func rows() throws -> Int { try store.engine.read { try $0.statistics(store.engine.index.leases).entries } }
            let day = Duration.seconds(24 * 3600)
            var batch = WriteBatch()
            batch.lease("k", for: day * 30)
            batch.lease("k", for: day * 30 + .seconds(1))
            batch.lease(tag: "t", for: day * 31)
            batch.lease(digest: Digest.of([1]), for: day * 40_000)
            batch.lease(tag: "u", for: .seconds(1))
            let refused = "failed invalidArgument"
            try #expect(store.results(batch) == ["done", refused, refused, refused, "done"])
            try #expect(rows() == 2)
            // Its holder ends that.
            let held = try store.lease("held")
            try store.clear()
            try #expect(rows() == 1)
            held.release()
        }
    }

    // MARK: Tasks

    #if LARDER_FAILPOINTS
        @Test func aTaskCancelledWhileBodiesAreStagedWritesNothing() async throws {
            try await withDirectory { path in
                let store = try Store(at: path, .testing())
                try await store.put([1], for: "old")
                let task = Mutex<Task<[WriteResult], any Error>?>(nil)
                let isKnown = Latch()
                let scope = FaultScope(under: path.string)
                scope.at("stage.written") { task.withLock { $0 }?.cancel() }
                let started = Task {
                    await isKnown.wait()
                    var batch = WriteBatch()
                    batch.remove("old")
                    for number in 0..<5 { batch.put(body(50_000, number), for: Key("k\(number)")) }
                    return try await store.write(batch)
                }
                task.withLock { $0 = started }
                isKnown.open()
                await #expect(throws: CancellationError.self) { try await started.value }
                scope.lift()
                #expect(store.stagedFiles == [])
                try await #expect(store.listed() == ["old"])
                try finish(store)
            }
        }
    #endif

    @Test func bodiesDoNotWaitForLongJobs() async throws {
        try await withStore { store in
            let monitor = Monitor()
            let (arrived, isOpen) = (Counter(), Counter())
            let long = (0..<2).map { _ in
                Task {
                    try await store.performLong {
                        arrived.increment()
                        monitor.locked { while isOpen.value == 0 { monitor.wait() } }
                    }
                }
            }
            try await waitWhile { arrived.value < 2 }
            var batch = WriteBatch()
            batch.put(body(50_000), for: "k")
            let results = try await store.write(batch)
            #expect(results.map(\.isSuccess) == [true])
            isOpen.increment()
            monitor.locked { monitor.signal() }
            for task in long { try await task.value }
        }
    }
}
