import Foundation
import SeededData
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// Bodies in memory above the disk.
@Suite struct MemoryTierTests {
    private static let configuration = Configuration.testing {
        $0.inlineThreshold = .kibibytes(4)
        $0.memoryLimit = .mebibytes(4)
        $0.keepsBodiesInMemory = true
    }

    private func hits(_ store: Store) throws -> Int { try store.statistics().memoryTier.hits }

    @Test func theSecondReadOfAFileIsFromMemory() throws {
        try withStore(configuration: Self.configuration) { store in
            try store.put(body(100_000), for: "k")
            try store.flush()
            try #expect(store.get("k")?.body.bytes() == body(100_000))
            // Its file is not opened any more.
            let entry = try #require(try store.get("k"))
            #expect(entry.body.withFileDescriptor { _ in true } == nil)
            try #expect(entry.body.bytes() == body(100_000))
            try #expect(hits(store) == 1)
            #expect(entry.digest == Digest.of(body(100_000)))
        }
    }

    @Test func whatIsReplacedRemovedOrExpiredIsNotServed() throws {
        let clock = TestClock()
        try withStore(
            configuration: .testing {
                $0.inlineThreshold = .kibibytes(4)
                $0.memoryLimit = .mebibytes(4)
                $0.keepsBodiesInMemory = true
                $0.clock = clock
            }
        ) { store in
            for key in ["a", "b", "c"] {
                try store.put(
                    body(50_000, 1), for: Key(key), PutOptions(lifetime: key == "c" ? .duration(.seconds(5)) : .never))
            }
            try store.flush()
            for key in ["a", "b", "c"] { _ = try store.get(Key(key))?.body.bytes() }
            try store.put(body(50_000, 2), for: "a")
            try #expect(store.bytes("a") == body(50_000, 2))
            try store.flush()
            try #expect(store.bytes("a") == body(50_000, 2))
            try store.remove("b")
            clock.advance(by: .seconds(6))
            try #expect(store.get("b") == nil && store.get("c") == nil)
            try store.clear()
            try #expect(store.get("a") == nil)
        }
    }

    @Test func itKeepsItsLimits() throws {
        try withStore(
            configuration: .testing {
                $0.inlineThreshold = .kibibytes(4)
                $0.memoryLimit = .mebibytes(1)
                $0.keepsBodiesInMemory = true
                $0.memoryCountLimit = 3
            }
        ) { store in
            for number in 0..<20 {
                try store.put(body(20_000, number), for: Key("\(number)"))
                try store.flush()
                _ = try store.get(Key("\(number)"))?.body.bytes()
                let tier = try store.statistics().memoryTier
                #expect(tier.count <= 3 && tier.bytes <= .mebibytes(1))
            }
            // Over a quarter of it.
            try store.put(body(300_000), for: "long")
            try store.flush()
            for _ in 0..<3 { _ = try store.get("long")?.body.bytes() }
            try #expect(store.get("long")?.body.withFileDescriptor { _ in true } == true)
        }
    }

    /// Eight processes overwrite and remove what the others read.
    @Test func noProcessSeesAnOldBody() throws {
        try withDirectory { directory in
            let path = directory.appending("store").string
            _ = FileManager.default.createFile(
                atPath: path + "-acknowledged", contents: Data(repeating: 0, count: 16 * 8))
            let workers = try (0..<8).map { try Worker(store: path, mode: "coherent", seed: UInt64($0), count: 2000) }
            // It prints whether its tier had hits when it has seen nothing wrong.
            for worker in workers { #expect(worker.finish() == ["READY", "HITS", "OK"]) }
            try finish(try Store(at: FilePath(path), .testing()))
        }
    }

    /// A process in a cgroup whose memory it uses up.
    @Test(.enabled(if: MemoryGroup.canMake, "memory cgroups cannot be made here"))
    func itShrinksWhenMemoryIsShort() throws {
        try withDirectory { directory in
            let group = try #require(MemoryGroup(limit: 192 << 20))
            defer { group.remove() }
            let path = directory.appending("store").string
            let worker = try Worker(
                store: path, mode: "pressure", seed: 0, count: 256,
                environment: ["LARDER_TEST_CGROUP": group.processes])
            let lines = worker.finish()
            // Where the disk is so fast that no one waits, there is nothing to see.
            #expect([["SHRUNK", "OK"], ["CALM", "OK"]].contains(lines), "\(lines)")
            try finish(try Store(at: FilePath(path), .testing()))
        }
    }

    @Test func aDamagedFileIsNotHeld() throws {
        try withStore(configuration: Self.configuration) { store in
            try store.put(body(50_000), for: "k")
            try store.flush()
            let file = store.path.appending("blobs/" + Layout.blob(Digest.of(body(50_000))))
            try TestFiles.flipByte(of: file, at: 100)
            try #expect(store.get("k")?.body.bytes() != body(50_000))
            try #expect(store.statistics().memoryTier.count == 0)
            _ = try store.check(repair: true)
            try store.put(body(50_000), for: "k")
            try store.flush()
            try #expect(store.get("k")?.body.bytes() == body(50_000))
        }
    }

    /// Entries of policy `memoryOnly` have the memory first.
    @Test func entriesInMemoryTakeTheRoomOfCopies() throws {
        try withStore(configuration: Self.configuration) { store in
            for number in 0..<30 { try store.put(body(100_000, number), for: Key("\(number)")) }
            try store.flush()
            for number in 0..<30 { _ = try store.get(Key("\(number)"))?.body.bytes() }
            try #expect(store.statistics().memoryTier.count == 30)
            for number in 0..<12 {
                try store.put(
                    body(300_000, number), for: Key("m\(number)"), PutOptions(storagePolicy: .memoryOnly))
                let size = try store.statistics()
                #expect(size.memoryBytes.bytes + size.memoryTier.bytes.bytes <= 4 << 20)
            }
            let full = try store.statistics()
            #expect(full.memoryEntryCount == 12 && full.memoryTier.count < 7)
            for number in 0..<12 { try store.remove(Key("m\(number)")) }
            for number in 0..<30 { _ = try store.get(Key("\(number)"))?.body.bytes() }
            try #expect(store.statistics().memoryTier.count == 30)
        }
    }
}

/// What is made of bodies, in the memory above the disk.
@Suite struct HeldValueTests {
    private static let kind = HeldKind<String>()

    private func value(_ store: Store, _ key: Key) throws -> String? {
        var found: String?
        let isThere = try store.visitHeld(key, Self.kind) { metadata, content in
            #expect(content.length == 50_000 && metadata.count == 3)
            found = content.value as? String
        }
        #expect(isThere == (found != nil))
        return found
    }

    private func put(_ number: Int, _ store: Store) throws {
        try store.put(body(50_000, number), for: "k", PutOptions(metadata: [1, 2, 3]))
        try store.flush()
    }

    private func ask(_ store: Store) throws {
        try #require(try store.get("k")).body.holdLater(Self.kind) { "\($0.byteCount)" }
    }

    @Test func aValueIsMadeTheSecondTimeAndGoesWithItsBody() throws {
        try withStore(configuration: .testing { $0.inlineThreshold = .kibibytes(4) }) { store in
            try put(1, store)
            try ask(store)
            try #expect(store.statistics().memoryTier.count == 0)
            try ask(store)
            try blockWhile { try value(store, "k") == nil }
            try #expect(value(store, "k") == "50000")
            try put(2, store)
            try #expect(value(store, "k") == nil)
            // The same body again: what was made of it is as good as ever.
            try put(1, store)
            try #expect(value(store, "k") == "50000")
            try store.remove("k")
            try #expect(value(store, "k") == nil)
        }
    }

    @Test func nothingIsMadeOfADamagedBody() throws {
        try withStore(configuration: .testing { $0.inlineThreshold = .kibibytes(4) }) { store in
            try put(1, store)
            let file = store.path.appending("blobs/" + Layout.blob(Digest.of(body(50_000, 1))))
            try TestFiles.flipByte(of: file, at: 100)
            let jobs = IOPool.shared.jobCount
            for _ in 0..<4 { try ask(store) }
            #expect(IOPool.shared.jobCount > jobs)
            // It is asked for, and made for nothing, until the body is whole.
            try blockWhile {
                try ask(store)
                return IOPool.shared.jobCount < jobs + 3
            }
            try #expect(value(store, "k") == nil)
            _ = try store.check(repair: true)
        }
    }

    @Test func aReadThatVerifiesHoldsNoValue() throws {
        try withStore(
            configuration: .testing {
                $0.inlineThreshold = .kibibytes(4)
                $0.verification = .always
            }
        ) { store in
            try put(1, store)
            store.hold("x", Self.kind, of: Digest.of(body(50_000, 1)), cost: 10)
            try #expect(value(store, "k") == nil && store.statistics().memoryTier.count == 0)
        }
    }

    /// Of what is let go half comes back at once, the rest by and by.
    @Test func aShortageOfMemoryTakesHalf() throws {
        let clock = TestClock()
        let tier = MemoryTier(1 << 20, .testing(clock: clock) { $0.keepsBodiesInMemory = true })
        func fill() -> Int64 {
            for number in 0..<2_000 { _ = tier.take(body(1_000, number), Digest.of(body(1_000, number))) }
            return tier.statistics.bytes.bytes
        }
        let full = fill()
        #expect(full > 900_000 && full <= 1 << 20)
        tier.shrink()
        let half = tier.statistics.bytes.bytes
        #expect(half > 400_000 && half <= full / 2)
        #expect(fill() <= full / 2)
        // The news of another source.
        tier.shrink()
        #expect(fill() > full / 3)
        clock.advance(by: .seconds(2))
        tier.shrink()
        #expect(fill() <= full / 4)
        clock.advance(by: .seconds(11))
        #expect(fill() > 400_000)
        clock.advance(by: .seconds(11))
        #expect(fill() > 900_000)
    }

    /// Limits and costs without end, and a clock that leaves the keys of what has gone.
    @Test func largeNumbersDoNotOverflow() {
        for (limit, count) in [(Int.max, 64), (Int.max, .max), (1 << 40, 64)] {
            let clock = TestClock()
            let tier = MemoryTier(limit, .testing(clock: clock) { $0.memoryCountLimit = count })
            let kind = HeldKind<Int>()
            var generator = SeededGenerator(seed: 3)
            for step in 0..<20_000 {
                let digest = Digest.of(body(8, Int.random(in: 0..<400, using: &generator)))
                if tier.value(kind.number, of: digest) == nil {
                    let cost = step % 7 == 0 ? 1 << Int.random(in: 0..<63, using: &generator) : 10
                    tier.hold(step, kind, of: digest, cost: cost)
                }
                if step % 1000 == 0 { tier.shrink() }
                clock.advance(by: .seconds(1))
            }
            #expect(!tier.fits(.max) && tier.statistics.count <= count)
        }
    }

    /// Whatever the limit is.
    @Test func aShortageTakesHalfOfALargeLimit() {
        let tier = MemoryTier(64 << 30, .testing { $0.keepsBodiesInMemory = true })
        for number in 0..<5_000 { _ = tier.take(body(2_000, number), Digest.of(body(2_000, number))) }
        let full = tier.statistics.bytes.bytes
        tier.shrink()
        #expect(full > 10_000_000 && tier.statistics.bytes.bytes <= full / 2)
    }

    /// The release of a value may run code that uses the store.
    @Test func aValueMayUseTheStoreWhenItGoes() throws {
        final class Curious: Sendable {
            let store: Store
            init(_ store: Store) { self.store = store }
            deinit { _ = try? store.get("k") }
        }
        try withStore(configuration: .testing { $0.memoryLimit = .mebibytes(1) }) { store in
            let kind = HeldKind<Curious>()
            try put(1, store)
            for number in 0..<100 {
                store.hold(Curious(store), kind, of: Digest.of(body(100, number)), cost: 50_000)
            }
            for number in 0..<5 {
                let options = PutOptions(storagePolicy: .memoryOnly)
                try store.put(body(180_000, number), for: Key("m\(number)"), options)
            }
            store.engine.tier.shrink()
            let most = Curious(store)
            store.hold(most, kind, of: Digest.of([]), cost: .max)
            #expect(try store.statistics().memoryEntryCount == 5)
        }
    }
}
