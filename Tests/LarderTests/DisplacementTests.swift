import Locks
import SystemPackage
import TestSupport
import Testing

@testable import Larder

/// Which entries go, and in which order.
@Suite struct DisplacementTests {
    /// What the observer was notified of, in order.
    final class Victims: Sendable {
        private let list = Mutex<[(Key, DisplacementReason)]>([])

        var keys: [Key] { list.withLock { $0.map(\.0) } }
        var reasons: [DisplacementReason] { list.withLock { $0.map(\.1) } }

        func note(_ event: StoreEvent) {
            if case .displaced(let key, _, let reason) = event { list.withLock { $0.append((key, reason)) } }
        }
    }

    private func withVictims(
        _ budget: Budget, clock: TestClock? = nil, _ body: (Store, Victims) throws -> Void
    ) throws {
        let victims = Victims()
        try withStore(configuration: .testing(budget: budget, clock: clock) { $0.observer = { victims.note($0) } }) {
            try body($0, victims)
        }
    }

    private func keys(_ numbers: some Sequence<Int>) -> [Key] { numbers.map { Key("k\($0)") } }

    @Test func theLeastRecentlyPutGoesFirst() throws {
        try withVictims(Budget(entries: 10)) { store, victims in
            for number in 0..<25 { try store.put([UInt8(number)], for: Key("k\(number)")) }
            try store.flush()
            #expect(victims.keys == keys(0..<15))
            #expect(victims.reasons.allSatisfy { $0 == .leastRecentlyUsed })
            try #expect(Set(store.keys()) == Set(keys(15..<25)))
            try #expect(store.statistics().displacedCount == 15)
        }
    }

    @Test func everyKindOfUseKeepsAnEntry() throws {
        try withVictims(Budget(entries: 10)) { store, victims in
            for number in 0..<10 { try store.put([UInt8(number)], for: Key("k\(number)")) }
            try store.flush()
            _ = try store.get("k0")
            _ = try store.withBody(of: "k1") { _ in }
            try store.touch("k2")
            try store.put([99], for: "k3")
            // These do not count as accesses.
            _ = try store.contains("k4")
            _ = try store.attributes(of: "k5")
            _ = try store.keys()
            for number in 10..<16 { try store.put([UInt8(number)], for: Key("k\(number)")) }
            try store.flush()
            #expect(victims.keys == keys(4..<10))
        }
    }

    @Test(arguments: 1...4)
    func theOrderIsThatOfASimpleModel(_ seed: Int) throws {
        try withVictims(Budget(entries: 20)) { store, victims in
            var generator = SeededGenerator(seed: UInt64(seed))
            var model: [Key] = []
            var expected: [Key] = []
            for step in 0..<600 {
                let key = Key("k\(Int.random(in: 0..<40, using: &generator))")
                if Int.random(in: 0..<3, using: &generator) == 0 {
                    let isHit = try store.get(key) != nil
                    // The store may not have committed its last puts, so it may hold more than the model, never less.
                    guard let position = model.firstIndex(of: key) else { continue }
                    #expect(isHit, "seed \(seed), step \(step)")
                    model.remove(at: position)
                } else {
                    try store.put(body(10, step), for: key)
                    model.removeAll { $0 == key }
                }
                model.append(key)
                // Each step is committed, so that store and model displace at the same moments.
                try store.flush()
                if model.count > 20 { expected.append(model.removeFirst()) }
            }
            #expect(victims.keys == expected, "seed \(seed)")
            try #expect(Set(store.keys()) == Set(model), "seed \(seed)")
        }
    }

    @Test func theOrderSurvivesReopening() throws {
        try withDirectory { path in
            let first = try Store(at: path, .testing())
            for number in 0..<10 { try first.put([UInt8(number)], for: Key("k\(number)")) }
            try first.flush()
            for number in [3, 1, 4] { _ = try first.get(Key("k\(number)")) }
            try first.close()
            let victims = Victims()
            let second = try Store(at: path, .testing { $0.observer = { victims.note($0) } })
            try second.setBudget(Budget(entries: 1))
            #expect(victims.keys == keys([0, 2, 5, 6, 7, 8, 9, 3, 1]))
            try #expect(second.keys() == ["k4"])
            try finish(second)
        }
    }

    @Test func theExpiredGoFirstAndInTheOrderOfTheirExpiry() throws {
        let clock = TestClock()
        try withVictims(Budget(entries: 10), clock: clock) { store, victims in
            for number in 0..<10 {
                let seconds = [3: 30, 7: 10, 5: 20, 8: 1000][number]
                let lifetime = seconds.map { Lifetime.duration(.seconds($0)) } ?? .never
                try store.put([UInt8(number)], for: Key("k\(number)"), PutOptions(lifetime: lifetime))
            }
            try store.flush()
            clock.advance(by: .seconds(60))
            for number in 10..<15 { try store.put([UInt8(number)], for: Key("k\(number)")) }
            try store.flush()
            #expect(victims.keys == keys([7, 5, 3, 0, 1]))
            #expect(victims.reasons == [.expired, .expired, .expired, .leastRecentlyUsed, .leastRecentlyUsed])
        }
    }

    @Test func aSharedBodyFreesNothingUntilItsLastEntryGoes() throws {
        try withVictims(Budget(entries: 3)) { store, victims in
            try store.put(body(9000), for: "k0")
            try store.put(body(9000), for: "k1")
            try store.put(body(10), for: "k2")
            try store.put(body(20), for: "k3")
            try store.flush()
            #expect(victims.keys == ["k0"])
            try #expect(store.bytes("k1") == body(9000))
            try store.setBudget(Budget(entries: 1))
            try #expect(store.statistics().entryCount == 1)
            try #expect(store.bytes("k1") == body(9000))
        }
    }

    @Test func largeBodiesAreDisplacedInTheOrderOfUse() throws {
        try withVictims(Budget(bytes: .mebibytes(2))) { store, victims in
            for number in 0..<40 {
                try store.put(body(100_000, number), for: Key("k\(number)"))
                if number >= 5 { try #expect(store.get("k0") != nil, "after \(number)") }
                if number == 4 { _ = try store.get("k0") }
            }
            try store.flush()
            // Two threads displace, for a file and with a batch, and each tells of its own after its commit.
            let gone = victims.keys
            #expect(gone.count > 20)
            #expect(Set(gone) == Set(keys(1...gone.count)))
        }
    }

    // MARK: Pins and leases

    /// Above the high watermark the store's thread displaces until it is below the low one, without a put that asks.
    @Test func displacementInTheBackgroundGoesFromTheHighToTheLowWatermark() async throws {
        let configuration = Configuration.testing(budget: Budget(bytes: .mebibytes(8))) {
            $0.watermarks = .init(high: 0.9, low: 0.5)
        }
        try await withStore(configuration: configuration) { store in
            let usable = try Double(store.budget().usableBytes)
            func fill() throws -> Double {
                let statistics = try store.statistics()
                let dead = statistics.indexBytes.bytes - statistics.liveIndexBytes.bytes
                return Double(statistics.allocatedBytes.bytes - statistics.transientBytes.bytes - dead) / usable
            }
            var number = 0
            while try fill() < 0.85 {
                try await store.put(body(20_000, number), for: Key("k\(number)"))
                try await store.perform { try $0.flush() }
                number += 1
            }
            // Nothing was displaced on the way.
            try await #expect(store.figures().entryCount == number)
            while true {
                let displaced = try await store.perform { try $0.statistics().displacedCount }
                if displaced > 0 { break }
                try await store.put(body(20_000, number), for: Key("k\(number)"))
                try await store.perform { try $0.flush() }
                number += 1
            }
            try await waitWhile { try fill() > 0.52 }
            // The oldest have gone, in order.
            let kept = try (0..<number).filter { try store.contains(Key("k\($0)")) }
            #expect(kept.first.map { Array($0..<number) == kept } == true)
        }
    }

    @Test func pinnedEntriesStay() throws {
        try withVictims(Budget(entries: 10)) { store, victims in
            try store.put([0], for: "k0", PutOptions(isPinned: true))
            try store.put([1], for: "k1")
            try #expect(store.pin("k1") == true)
            try #expect(store.pin("none") == false)
            for number in 2..<30 { try store.put([UInt8(number)], for: Key("k\(number)")) }
            try store.flush()
            #expect(victims.keys == keys(2..<22))
            try #expect(store.bytes("k0") == [0])
            try #expect(store.attributes(of: "k1")?.isPinned == true)
            // Freed, they take the place that their last use gives them.
            try #expect(store.unpin("k0") == true)
            try store.put([0], for: "k30")
            try store.flush()
            #expect(victims.keys.count == 21)
        }
    }

    @Test func aPinSurvivesOverwritingAndReopening() throws {
        try withDirectory { path in
            let first = try Store(at: path, .testing())
            try first.put([1], for: "k", PutOptions(isPinned: true))
            try first.put([2], for: "k")
            try first.close()
            let second = try Store(at: path, .testing(budget: Budget(entries: 2)))
            for number in 0..<10 { try second.put([3], for: Key("o\(number)")) }
            try second.flush()
            try #expect(second.bytes("k") == [2])
            try finish(second)
        }
    }

    @Test func aPinnedTagKeepsItsEntriesPresentAndFuture() throws {
        try withVictims(Budget(entries: 10)) { store, victims in
            try store.put([0], for: "k0", PutOptions(tags: ["t"]))
            try store.put([1], for: "k1", PutOptions(tags: ["t", "u"]))
            try #expect(store.pin(tag: "t") == 2)
            try #expect(store.pin(tag: "u") == 1)
            try #expect(store.pinnedTags() == ["t", "u"])
            try store.put([2], for: "k2", PutOptions(tags: ["t"]))
            for number in 3..<20 { try store.put([UInt8(number)], for: Key("k\(number)")) }
            try store.flush()
            #expect(victims.keys == keys(3..<13))
            try #expect(store.unpin(tag: "t") == 3)
            try #expect(store.pinnedTags() == ["u"])
            try #expect(store.attributes(of: "k0")?.isPinned == false)
            try #expect(store.attributes(of: "k1")?.isPinned == true)
            // Overwritten without the tag, an entry is no longer pinned by it.
            try store.put([9], for: "k1")
            try #expect(store.attributes(of: "k1")?.isPinned == false)
        }
    }

    @Test func leasesKeepEntriesUntilReleasedOrOver() throws {
        let clock = TestClock()
        try withVictims(Budget(entries: 5), clock: clock) { store, victims in
            for number in 0..<5 {
                try store.put([UInt8(number)], for: Key("k\(number)"), PutOptions(tags: number == 2 ? ["t"] : []))
            }
            let released = try store.lease("k0", for: .seconds(1000))
            let passing = try store.lease("k1", for: .seconds(10))
            let tagged = try store.lease(tag: "t", for: .seconds(1000))
            try store.put([5], for: "k5")
            try store.flush()
            #expect(victims.keys == ["k3"])
            released.release()
            released.release()
            try store.put([6], for: "k6")
            try store.flush()
            #expect(victims.keys == ["k3", "k0"])
            clock.advance(by: .seconds(10))
            try store.put([7], for: "k7")
            try store.flush()
            #expect(victims.keys == ["k3", "k0", "k1"])
            try #expect(store.bytes("k2") == [2])
            passing.release()
            tagged.release()
        }
    }

    @Test func aLeaseThatGoesIsReleased() throws {
        try withVictims(Budget(entries: 2)) { store, victims in
            try store.put([0], for: "k0")
            do {
                let lease = try store.lease("k0")
                try store.put([1], for: "k1")
                try store.put([2], for: "k2")
                try store.flush()
                #expect(victims.keys == ["k1"])
                withExtendedLifetime(lease) {}
            }
            try store.put([3], for: "k3")
            try store.flush()
            #expect(victims.keys == ["k1", "k0"])
        }
    }

    @Test func aStoreFullOfPinnedEntriesSaysSoAndRecovers() throws {
        try withVictims(Budget(entries: 3)) { store, victims in
            for number in 0..<3 { try store.put([UInt8(number)], for: Key("k\(number)"), PutOptions(isPinned: true)) }
            try #expect(code { try store.put([9], for: "new", PutOptions(durability: .durable)) } == .noSpace)
            // Its caller got the error; it is not reported again.
            try store.flush()
            try #expect(store.get("new") == nil)
            #expect(victims.keys == [])
            try store.unpin("k1")
            try store.put([9], for: "new", PutOptions(durability: .durable))
            try #expect(store.bytes("new") == [9])
            #expect(victims.keys == ["k1"])
        }
    }
}
