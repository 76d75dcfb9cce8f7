import Locks
import TestSupport
import Testing

@testable import Larder

/// Entries that stay in memory do what the others do.
@Suite struct MemoryOnlyTests {
    private func memoryOnly(_ tags: [String] = [], isPinned: Bool = false) -> PutOptions {
        PutOptions(storagePolicy: .memoryOnly, tags: tags, metadata: [7], isPinned: isPinned)
    }

    @Test func theyAreTouchedPinnedUpdatedAndCounted() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            try store.put(body(1000), for: "m", memoryOnly(["t"]))
            let put = try #require(try store.attributes(of: "m"))
            clock.advance(by: .seconds(5))
            try #expect(store.touch("m", lifetime: .duration(.seconds(60))) == true)
            try #expect(store.pin("m") == true)
            var now = try #require(try store.attributes(of: "m"))
            #expect(now.isPinned && now.hitCount == 0 && now.references == 1)
            #expect(now.created == put.created && now.stored == put.stored)
            #expect(now.lastAccess - put.lastAccess >= .seconds(5))
            #expect(now.expires.map { $0 - now.lastAccess } == .seconds(60))
            let entry = try #require(try store.get("m"))
            #expect(entry.attributes.isPinned)
            try #expect(store.update(entry, metadata: [8]) == true)
            try #expect(store.update(entry, metadata: [9]) == false)
            now = try #require(try store.attributes(of: "m"))
            #expect(now.metadata == [8] && now.isPinned && now.hitCount == 1 && now.created == put.created)
            try #expect(store.unpin("m") == true)
            try #expect(store.attributes(of: "m")?.isPinned == false)
            try #expect(store.pin(tag: "t") == 1)
            try #expect(store.attributes(of: "m")?.isPinned == true)
            try #expect(store.keys(.tag("t")) == ["m"])
            try #expect(store.unpin(tag: "t") == 1)
            try #expect(store.attributes(of: "m")?.isPinned == false)
            let statistics = try store.statistics()
            #expect(statistics.entryCount == 0 && statistics.memoryEntryCount == 1)
            #expect(statistics.memoryBytes.bytes > 1000)
            try #expect(store.touch("none") == false && store.pin("none") == false)
        }
    }

    @Test func whatOutlivesAnOverwriteOutlivesAMove() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            try store.put([1], for: "k", PutOptions(isPinned: true))
            try store.flush()
            let created = try #require(try store.attributes(of: "k")).created
            for policy in [StoragePolicy.memoryOnly, .memoryOnly, .permanent, .permanent] {
                clock.advance(by: .seconds(1))
                try store.put([2], for: "k", PutOptions(storagePolicy: policy))
                let attributes = try #require(try store.get("k")).attributes
                #expect(attributes.isPinned && attributes.created == created, "\(policy)")
                try #expect(store.attributes(of: "k")?.created == created)
            }
        }
    }

    @Test func pinnedAndLeasedOnesStayWhenMemoryIsFull() throws {
        let displaced = Mutex<[Key]>([])
        let configuration = Configuration.testing {
            $0.memoryLimit = .kibibytes(64)
            $0.observer = { if case .displaced(let key, _, _) = $0 { displaced.withLock { $0.append(key) } } }
        }
        try withStore(configuration: configuration) { store in
            try store.pin(tag: "t")
            try store.put(body(10_000, 0), for: "pinned", memoryOnly(isPinned: true))
            try store.put(body(10_000, 1), for: "tagged", memoryOnly(["t"]))
            try store.put(body(10_000, 2), for: "leased", memoryOnly())
            let lease = try store.lease("leased")
            for number in 0..<20 { try store.put(body(10_000, number), for: Key("m\(number)"), memoryOnly()) }
            for key in ["pinned", "tagged", "leased"] as [Key] { try #expect(store.contains(key)) }
            let victims = displaced.withLock { $0 }
            #expect(!victims.isEmpty && victims.first == "m0")
            try #expect(store.statistics().displacedCount == victims.count)
            for number in 0..<3 {
                try store.put(body(10_000, number), for: Key("p\(number)"), memoryOnly(isPinned: true))
            }
            try #expect(code { try store.put(body(10_000), for: "more", memoryOnly()) } == .noSpace)
            try #expect(store.get("more") == nil)
            lease.release()
            try store.put(body(10_000), for: "more", memoryOnly())
            try #expect(store.contains("leased") == false)
        }
    }

    @Test func theExpiredGoFirstAndWithACollection() throws {
        let clock = TestClock()
        let configuration = Configuration.testing(clock: clock) { $0.memoryLimit = .kibibytes(64) }
        try withStore(configuration: configuration) { store in
            try store.put(body(20_000), for: "old", memoryOnly())
            var options = memoryOnly()
            options.lifetime = .duration(.seconds(1))
            for number in 0..<2 { try store.put(body(20_000, number), for: Key("e\(number)"), options) }
            clock.advance(by: .seconds(2))
            try store.put(body(20_000), for: "new", memoryOnly())
            try #expect(store.contains("old") == true && store.contains("new") == true)
            try store.put(body(10), for: "e2", options)
            clock.advance(by: .seconds(2))
            let expired = try store.keys(.expired).count
            try #expect(store.collect(dryRun: true).expiredEntries == expired)
            try #expect(store.collect().expiredEntries == expired)
            try #expect(store.keys(.expired) == [])
        }
    }

    @Test func memoryOnlyAndDurableContradictEachOther() throws {
        try withStore { store in
            var options = memoryOnly()
            options.durability = .durable
            try #expect(code { try store.put([1], for: "k", options) } == .invalidArgument)
        }
        // The default of a store is for what can be durable.
        try withStore(configuration: .testing { $0.durability = .durable }) { store in
            try store.put([1], for: "k", memoryOnly())
            try #expect(store.bytes("k") == [1])
        }
    }

    /// One put wins; a key that was there before and after was there at every moment.
    @Test func puttingAKeyToDiskAndToMemoryAtOnceLosesNeither() throws {
        try withStore(configuration: .testing { $0.commitDelay = .milliseconds(1) }) { store in
            try store.put([0], for: "k")
            let isOver = Atomic<Bool>(false)
            let readers = Threads(1) { _ in
                while !isOver.load(ordering: .relaxed) { try #expect(store.get("k") != nil) }
            }
            for _ in 0..<40 {
                try Threads.run(2) { thread in
                    let options = PutOptions(storagePolicy: thread == 0 ? .permanent : .memoryOnly)
                    for number in 0..<50 { try store.put([UInt8(number)], for: "k", options) }
                }
                try #expect(store.get("k") != nil)
            }
            isOver.store(true, ordering: .relaxed)
            try readers.join()
        }
    }
}
