import TestSupport
import Testing

@testable import Larder

@Suite struct BudgetTests {
    /// Bodies of these lengths, mixed: index only, files only, both.
    static let mixes: [([Int], Int)] = [
        ([100], 1 << 20), ([3000], 1 << 20), ([3000], 4 << 20), ([20_000], 1 << 20), ([20_000], 4 << 20),
        ([200_000], 1 << 20), ([200_000], 4 << 20), ([50, 3000, 20_000, 150_000], 1 << 20),
        ([50, 3000, 20_000, 150_000], 4 << 20),
    ]

    /// The most that the store's directory takes while `body` runs.
    private func peak(of store: Store, during body: () throws -> Void) throws -> Int64 {
        let sampler = BudgetSampler(path: store.path)
        let outcome = Result { try body() }
        let peak = sampler.stop()
        try outcome.get()
        return peak
    }

    @Test(arguments: mixes)
    func theByteBudgetHoldsAtEveryMoment(_ lengths: [Int], _ budget: Int) throws {
        try withStore(configuration: .testing(budget: Budget(bytes: ByteCount(budget)))) { store in
            var put = 0
            var number = 0
            let peak = try peak(of: store) {
                while put < budget * 2 {
                    let length = lengths[number % lengths.count]
                    try store.put(body(length, number), for: Key("key-\(number)"))
                    if number % 7 == 0 { _ = try store.get(Key("key-\(number / 2)")) }
                    put += length + 300
                    number += 1
                }
                try store.flush()
            }
            #expect(peak <= budget)
            let statistics = try store.statistics()
            #expect(statistics.allocatedBytes <= ByteCount(budget))
            #expect(statistics.allocatedBytes.bytes == recount(store.path))
            // The room is used, not only kept.
            #expect(statistics.displacedCount > 0)
            #expect(statistics.entryCount > 0)
            try #expect(store.get(Key("key-\(number - 1)")) != nil)
        }
    }

    @Test func theByteBudgetHoldsWithManyWriters() throws {
        let budget = 4 << 20
        try withStore(configuration: .testing(budget: Budget(bytes: ByteCount(budget)))) { store in
            let peak = try peak(of: store) {
                try Threads.run(4) { thread in
                    for number in 0..<60 {
                        let length = [500, 60_000, 4000, 200_000][(number + thread) % 4]
                        try store.put(body(length, thread * 1000 + number), for: Key("\(thread)/\(number)"))
                    }
                }
                try store.flush()
            }
            #expect(peak <= budget)
            #expect(recount(store.path) <= budget)
        }
    }

    @Test func manyTouchesInOneCommitKeepTheBudget() throws {
        let budget = 1 << 20
        try withStore(configuration: .testing(budget: Budget(bytes: ByteCount(budget)))) { store in
            for number in 0..<3000 { try store.put(body(20, number), for: Key("key-\(number)")) }
            try store.flush()
            let keys = try store.keys()
            for round in 0..<3 {
                for key in keys.shuffled() { _ = try store.get(key) }
                try store.flush()
                #expect(recount(store.path) <= budget, "round \(round)")
            }
        }
    }

    @Test func aStoreFullOfSmallBodiesBecomesOneOfLargeOnesWithinTheBudget() throws {
        let budget = 4 << 20
        try withStore(configuration: .testing(budget: Budget(bytes: ByteCount(budget)))) { store in
            for number in 0..<1500 { try store.put(body(3500, number), for: Key("small-\(number)")) }
            let small = try store.statistics()
            #expect(small.indexBytes.bytes > 2 << 20)
            for number in 0..<30 {
                try store.put(body(300_000, number), for: Key("large-\(number)"))
                #expect(recount(store.path) <= budget)
            }
            let large = try store.statistics()
            // 11 would fit; displacement works ahead, by how much depends on the moment.
            #expect(large.fileCount >= 5)
            #expect(large.indexBytes < small.indexBytes)
        }
    }

    @Test func theEntryBudgetIsExact() throws {
        try withStore(configuration: .testing(budget: Budget(entries: 7))) { store in
            for number in 0..<50 {
                try store.put([UInt8(number)], for: Key("k\(number)"))
                try #expect(store.statistics().entryCount == min(7, number + 1))
            }
            // Overwriting displaces nothing.
            try store.put([1], for: "k49")
            try #expect(store.statistics().displacedCount == 43)
        }
    }

    @Test func theLargestEntryIsALimitInBothDirections() throws {
        try withStore(configuration: .testing(budget: Budget(largestEntry: 5000))) { store in
            try store.put(body(5000), for: "fits")
            try #expect(code { try store.put(body(5001), for: "fits") } == .tooLarge)
            try #expect(
                code { try store.put(body(5001), for: "m", PutOptions(storagePolicy: .memoryOnly)) } == .tooLarge)
            try #expect(store.bytes("fits") == body(5000))
            try store.flush()
            #expect(store.stagedFiles == [])
        }
    }

    @Test func aBodyThatCannotFitIsRefusedAndDisplacesNothing() throws {
        try withStore(configuration: .testing(budget: Budget(bytes: .mebibytes(1)))) { store in
            for number in 0..<20 { try store.put(body(9000, number), for: Key("k\(number)")) }
            try #expect(code { try store.put(body(1 << 20), for: "big") } == .tooLarge)
            try #expect(store.statistics().displacedCount == 0)
            try #expect(store.statistics().entryCount == 20)
        }
    }

    // MARK: Changed live

    @Test func loweringTheBudgetDisplacesUntilItHolds() throws {
        try withStore { store in
            for number in 0..<60 {
                try store.put(body(number % 2 == 0 ? 100_000 : 3000, number), for: Key("k\(number)"))
            }
            try store.flush()
            #expect(recount(store.path) > 3 << 20)
            for mebibytes in [3, 2, 1] {
                try store.setBudget(Budget(bytes: .mebibytes(Int64(mebibytes))))
                #expect(recount(store.path) <= mebibytes << 20)
                try #expect(store.budget().bytes == .mebibytes(Int64(mebibytes)))
            }
            try #expect(store.get("k59") != nil)
            try #expect(store.get("k0") == nil)
            try store.setBudget(.unlimited)
            for number in 60..<90 { try store.put(body(100_000, number), for: Key("k\(number)")) }
            try #expect(store.statistics().entryCount >= 30)
        }
    }

    @Test func loweringTheBudgetOfSmallBodiesShrinksTheIndex() throws {
        try withStore { store in
            for number in 0..<1500 { try store.put(body(3000, number), for: Key("k\(number)")) }
            try store.flush()
            #expect(recount(store.path) > 4 << 20)
            try store.setBudget(Budget(bytes: .mebibytes(1)))
            #expect(recount(store.path) <= 1 << 20)
            // Never a full wipe. 60 to 85 stay on an idle machine. While threads are held up, a displacement cannot use
            // at once what the one before it has freed, and takes more.
            try #expect(store.statistics().entryCount >= 30)
            try #expect(store.bytes("k1499") == body(3000, 1499))
        }
    }

    @Test func theBudgetIsKeptInTheStoreAndSharedByItsUsers() throws {
        try withDirectory { path in
            let first = try Store(at: path, .testing(budget: Budget(bytes: .mebibytes(2), entries: 50)))
            let second = try Store(at: path, .testing())
            try #expect(second.budget() == Budget(bytes: .mebibytes(2), entries: 50))
            try second.setBudget(Budget(entries: 5))
            try #expect(first.budget() == Budget(entries: 5))
            try first.close()
            try second.close()
            let third = try Store(at: path, .testing())
            try #expect(third.budget() == Budget(entries: 5))
            try finish(third)
        }
    }

    @Test(arguments: [
        Budget(bytes: 0), Budget(bytes: 1_048_575), Budget(entries: 0), Budget(entries: -1), Budget(largestEntry: 0),
    ])
    func aBudgetTooSmallIsRefusedAndTheOldOneStays(_ budget: Budget) throws {
        try withStore(configuration: .testing(budget: Budget(entries: 3))) { store in
            try #expect(code { try store.setBudget(budget) } == .invalidArgument)
            try #expect(store.budget() == Budget(entries: 3))
            try store.put([1], for: "k")
        }
    }

    @Test func aBudgetThatPinsExceedIsSetAllTheSame() throws {
        try withStore { store in
            for number in 0..<30 {
                try store.put(body(100_000, number), for: Key("k\(number)"), PutOptions(isPinned: true))
            }
            try #expect(code { try store.setBudget(Budget(bytes: .mebibytes(1))) } == .noSpace)
            try #expect(store.budget().bytes == .mebibytes(1))
            try #expect(code { try store.put(body(9000, 99), for: "new") } == .noSpace)
            try #expect(store.statistics().entryCount == 30)
            for number in 0..<30 { try store.unpin(Key("k\(number)")) }
            try store.put(body(9000, 99), for: "new")
            try #expect(store.bytes("new") == body(9000, 99))
            #expect(recount(store.path) <= 1 << 20)
        }
    }

    // MARK: Free disk

    @Test func aFloorAboveWhatIsFreeRefusesPutsUntilItIsLowered() throws {
        try withStore { store in
            try store.put(body(9000), for: "k")
            try store.flush()
            let free = try FileSystem.freeBytes(store.engine.files.root)
            try #expect(code { try store.setBudget(Budget(freeDiskFloor: ByteCount(free * 2))) } == .noSpace)
            try #expect(code { try store.put(body(9000, 2), for: "new") } == .noSpace)
            #expect(store.stagedFiles == [])
            try store.setBudget(.unlimited)
            try store.put(body(9000, 2), for: "new")
            try #expect(store.bytes("new") == body(9000, 2))
        }
    }

    @Test func aFloorCloseToWhatIsFreeDisplaces() throws {
        try withStore { store in
            for number in 0..<30 { try store.put(body(1 << 20, number), for: Key("k\(number)")) }
            try store.flush()
            // Other tests may free that much of the disk meanwhile, so it is tried again.
            for _ in 0..<100 where try store.statistics().displacedCount == 0 {
                let free = try FileSystem.freeBytes(store.engine.files.root)
                _ = try code { try store.setBudget(Budget(freeDiskFloor: ByteCount(free + 15 << 20))) }
            }
            try #expect(store.statistics().displacedCount > 0)
            try store.setBudget(.unlimited)
        }
    }
}
