import Foundation
import Locks
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// What a store counts is what was done with it.
@Suite struct CountersTests {
    @Test func lookupsAreCountedOnceEach() throws {
        try withStore { store in
            try store.put(body(100), for: "inline")
            try store.put(body(9000), for: "file")
            try store.put(body(50), for: "memory", PutOptions(storagePolicy: .memoryOnly))
            try store.flush()
            try store.put(body(70), for: "pending")
            for key in ["inline", "file", "memory", "pending"] as [Key] { #expect(try store.get(key) != nil) }
            #expect(try store.get("none") == nil)
            var counters = try store.statistics().counters
            #expect(counters.hits == 4)
            #expect(counters.misses == 1)
            #expect(counters.bytesRead == ByteCount(100 + 9000 + 50 + 70))
            #expect(counters.hitRatio == 0.8)
            // In place, and by way of a copy.
            for key in ["inline", "file", "memory", "none"] as [Key] { _ = try store.withBody(of: key) { _ in } }
            counters = try store.statistics().counters
            #expect(counters.hits == 7)
            #expect(counters.misses == 2)
            // Many at once, one of them twice.
            let found = try store.get(["inline", "file", "memory", "none", "inline"] as [Key])
            #expect(found.count { $0 != nil } == 4)
            counters = try store.statistics().counters
            #expect(counters.hits == 11)
            #expect(counters.misses == 3)
            // By content.
            #expect(try store.body(digest: Digest.of(body(100))) != nil)
            #expect(try store.bodies(digests: [Digest.of(body(9000)), Digest.of([1])]).count { $0 != nil } == 1)
            counters = try store.statistics().counters
            #expect(counters.hits == 13)
            #expect(counters.misses == 4)
            #expect(counters.bytesRead == ByteCount(9220 + 9150 + 9250 + 9100))
            // Neither is a lookup of an entry's body.
            _ = try store.contains("inline")
            _ = try store.attributes(of: "inline")
            #expect(try store.statistics().counters.hits == 13)
            #expect(counters.lookupTimes.count > 0)
            #expect(counters.lookupTimes.count <= counters.hits + counters.misses)
        }
    }

    @Test func readThroughIsOneLookup() async throws {
        try await withStore { store in
            for _ in 0..<2 {
                _ = try await store.value(for: "k") { _ in
                    Computed(body(100), PutOptions(durability: .durable))
                }
            }
            let counters = try await store.perform { try $0.statistics().counters }
            #expect(counters.misses == 1)
            #expect(counters.hits == 1)
            #expect(counters.puts == 1)
        }
    }

    @Test func expiredAndForeignEntriesAreMisses() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            try store.put([1], for: "k", PutOptions(lifetime: .duration(.seconds(10))))
            clock.advance(by: .seconds(11))
            #expect(try store.get("k") == nil)
            #expect(try store.get("k", includingExpired: true) != nil)
            let counters = try store.statistics().counters
            #expect(counters.misses == 1)
            #expect(counters.hits == 1)
        }
    }

    @Test func changesAreCounted() throws {
        try withStore { store in
            try store.put(body(100), for: "a")
            try store.put(body(9000).dropFirst(0), for: "b")
            try body(10).withUnsafeBytes { _ = try store.put($0.bytes, for: "c") }
            try store.put(body(10), for: "m", PutOptions(storagePolicy: .memoryOnly))
            let writer = try store.writer(for: "w")
            try writer.write(body(5000))
            try writer.commit()
            var batch = WriteBatch()
            batch.put(body(20), for: "d")
            batch.put(body(20), for: "a", unlessPresent: true)
            batch.remove("b")
            batch.remove("none")
            batch.remove(digest: Digest.of(body(10)))
            try store.write(batch)
            var counters = try store.statistics().counters
            #expect(counters.puts == 6)
            #expect(counters.bytesWritten == ByteCount(100 + 9000 + 10 + 10 + 5000 + 20))
            #expect(counters.removed == 3)
            #expect(try store.remove("a"))
            #expect(try !store.remove("a"))
            try store.put(body(10), for: "m", PutOptions(storagePolicy: .memoryOnly))
            #expect(try store.remove(.keys(["m", "d"])) == 2)
            #expect(try store.clear() == 1)
            counters = try store.statistics().counters
            #expect(counters.removed == 7)
            #expect(counters.putTimes.count == 6)
            #expect(counters.commits > 0)
            #expect(counters.commitTimes.count == counters.commits)
            #expect(counters.failures == [:])
            #expect(counters.failedChanges == 0)
        }
    }

    @Test func displacementIsCountedByReason() throws {
        let clock = TestClock()
        let budget = Budget(bytes: .unlimited, entries: 10)
        try withStore(
            configuration: .testing(budget: budget, clock: clock) { $0.memoryLimit = .kibibytes(64) }
        ) { store in
            for number in 0..<5 {
                try store.put(body(10), for: Key("e\(number)"), PutOptions(lifetime: .duration(.seconds(1))))
            }
            try store.flush()
            clock.advance(by: .seconds(2))
            for number in 0..<20 { try store.put(body(10, number), for: Key("k\(number)")) }
            for number in 0..<100 {
                try store.put(body(2000), for: Key("m\(number)"), PutOptions(storagePolicy: .memoryOnly))
            }
            let statistics = try store.statistics()
            let displaced = statistics.counters.displaced
            #expect(displaced.expired == 5)
            #expect(displaced.leastRecentlyUsed == 10)
            #expect(displaced.memoryOnlyExpired == 0)
            #expect(displaced.memoryOnlyLeastRecentlyUsed == 100 - statistics.memoryEntryCount)
            #expect(displaced.total == statistics.displacedCount)
            #expect(displaced.memoryOnlyLeastRecentlyUsed > 0)
        }
    }

    @Test func damageIsCounted() throws {
        try withStore { store in
            let digest = try store.put(body(9000), for: "k", PutOptions(durability: .durable))
            #expect(unlink(store.blobPath(digest).string) == 0)
            #expect(try store.get("k") == nil)
            let counters = try store.statistics().counters
            #expect(counters.damagedBodies == 1)
            #expect(counters.misses == 1)
            #expect(counters.hits == 0)
        }
    }

    @Test func hitsOfManyThreadsAreAllCounted() throws {
        try withStore { store in
            for number in 0..<8 { try store.put(body(100), for: Key("k\(number)")) }
            try store.flush()
            DispatchQueue.concurrentPerform(iterations: 8) { thread in
                for _ in 0..<2000 {
                    _ = try? store.get(Key("k\(thread)"))
                    _ = try? store.get("none")
                    _ = try? store.withBody(of: "k0") { _ in }
                }
            }
            let counters = try store.statistics().counters
            #expect(counters.hits == 32_000)
            #expect(counters.misses == 16_000)
            #expect(counters.bytesRead == ByteCount(3_200_000))
        }
    }

    /// Each sees what the others do: nothing is lost or counted twice, and no figure ever goes back.
    @Test func figuresNeverGoBackWhileOthersWork() throws {
        try withStore { store in
            try store.put(body(100), for: "k")
            try store.flush()
            let isOver = Atomic<Bool>(false)
            let wentBack = Atomic<Int>(0)
            DispatchQueue.concurrentPerform(iterations: 4) { thread in
                if thread > 0 {
                    for number in 0..<1500 {
                        _ = try? store.get("k")
                        _ = try? store.put(body(10, number), for: Key("\(thread).\(number % 7)"))
                    }
                    isOver.store(true, ordering: .releasing)
                    return
                }
                var last = StoreCounters()
                while !isOver.load(ordering: .acquiring) {
                    guard let now = try? store.statistics().counters else { continue }
                    if now.hits < last.hits || now.puts < last.puts || now.commits < last.commits {
                        wentBack.add(1, ordering: .relaxed)
                    }
                    last = now
                }
            }
            #expect(wentBack.load(ordering: .relaxed) == 0)
            let counters = try store.statistics().counters
            #expect(counters.hits == 4500)
            #expect(counters.puts == 4501)
        }
    }

    @Test func twoStoresOfOnePathCountTogether() throws {
        try withDirectory { path in
            let (first, second) = (try Store(at: path, .testing()), try Store(at: path, .testing()))
            try first.put([1], for: "k")
            #expect(try second.get("k") != nil)
            #expect(try first.statistics().counters == second.statistics().counters)
            #expect(try first.statistics().counters.hits == 1)
            try second.close()
            try finish(first)
        }
    }

    // MARK: Histograms

    @Test(
        arguments: [
            (0, 0), (255, 0), (256, 1), (511, 1), (512, 2), (1 << 20, 13), ((1 << 34) - 1, 26), (1 << 34, 27),
            (.max, 27),
        ] as [(UInt64, Int)])
    func durationsHaveTheirBuckets(_ nanoseconds: UInt64, _ bucket: Int) {
        #expect(CounterLayout.bucket(nanoseconds) == bucket)
        if let end = CounterLayout.end(ofBucket: bucket) { #expect(nanoseconds < end) }
        if bucket > 0, let start = CounterLayout.end(ofBucket: bucket - 1) { #expect(nanoseconds >= start) }
    }

    @Test func percentilesAreEndsOfBuckets() {
        var counts = [UInt64](repeating: 0, count: CounterLayout.bucketCount)
        #expect(LatencyHistogram(sum: 0, counts: counts).percentile(0.5) == nil)
        #expect(LatencyHistogram().mean == nil)
        (counts[0], counts[3], counts[27]) = (90, 9, 1)
        let times = LatencyHistogram(sum: 10_000, counts: counts)
        #expect(times.count == 100)
        #expect(times.mean == .nanoseconds(100))
        #expect(times.percentile(0) == .nanoseconds(256))
        #expect(times.percentile(0.9) == .nanoseconds(256))
        #expect(times.percentile(0.91) == .nanoseconds(2048))
        #expect(times.percentile(0.99) == .nanoseconds(2048))
        #expect(times.percentile(1) == nil)
    }
}
