import TestSupport
import Testing

@testable import Larder

/// One body never costs the whole cache, what could not stay displaces nothing, and what was reported as stored is
/// there.
@Suite struct LargeBodyTests {
    private static let mebibyte = 1 << 20
    /// 7.5 MiB of which entries may take.
    private let budget = Budget(bytes: .mebibytes(8))

    private func withFull(
        _ budget: Budget, small count: Int = 20, _ change: (inout Configuration) -> Void = { _ in },
        _ body: (Store) throws -> Void
    ) throws {
        try withStore(configuration: .testing(budget: budget, change)) { store in
            for number in 0..<count { try store.put(smallBody(number), for: small(number)) }
            try store.flush()
            try body(store)
        }
    }

    private func smallBody(_ number: Int) -> [UInt8] { body(20_000, number) }

    private func small(_ number: Int) -> Key { Key("small\(number)") }

    /// Commits what is pending, and lets the store displace in the background until it is done.
    private func settle(_ store: Store) throws {
        try store.flush()
        let writing = try store.engine.requireWriting()
        while writing.watermarks.isDisplacing { writing.pending.wait(for: writing.pending.requestFlush(force: true)) }
    }

    private func smallOnes(_ store: Store, of count: Int = 20) throws -> Int {
        try (0..<count).count(where: { try store.contains(small($0)) })
    }

    // MARK: The limit

    @Test func aBodyOfMoreThanHalfOfTheRoomIsRefusedAndDisplacesNothing() throws {
        try withFull(budget) { store in
            let limit = try Int(store.budget().effectiveLargestEntry.bytes)
            #expect(limit == (8 << 20) * 15 / 16 / 2)
            let error = #expect(throws: LarderError.self) { try store.put(body(limit + 1), for: "large") }
            #expect(error?.code == .tooLarge && error?.remedy == .raiseLargestEntry)
            try #expect(store.displaced == 0)
            try store.put(body(limit), for: "large")
            try settle(store)
            try #expect(store.contains("large"))
        }
    }

    @Test func aLimitThatIsGivenHoldsInsteadOfTheHalf() throws {
        #expect(Budget.unlimited.effectiveLargestEntry == .unlimited)
        #expect(Budget(largestEntry: .mebibytes(1)).effectiveLargestEntry == .mebibytes(1))
        var budget = budget
        budget.largestEntry = .mebibytes(7)
        #expect(budget.effectiveLargestEntry == .mebibytes(7))
        budget.largestEntry = .mebibytes(100)
        #expect(budget.effectiveLargestEntry.bytes == budget.usableBytes)
    }

    @Test func aBodyWithoutAKnownLengthEndsAtTheLimit() throws {
        try withFull(budget, small: 300) { store in
            let writer = try store.writer(for: "large")
            let error = #expect(throws: LarderError.self) {
                for _ in 0..<16 { try writer.write(body(Self.mebibyte)) }
            }
            #expect(error?.code == .tooLarge)
            writer.cancel()
            try settle(store)
            // It took half of the room on its way; the other half is as it was.
            try #expect(smallOnes(store, of: 300) > 120)
            try #expect(store.contains(small(299)))
        }
    }

    // MARK: What was stored is there

    /// The low watermark is below what the body alone takes.
    @Test(arguments: [0.90, 0.3]) func aBodyOfNearlyAllOfTheRoomStays(_ low: Double) throws {
        var budget = budget
        budget.largestEntry = .mebibytes(7)
        try withFull(budget, { $0.watermarks = .init(high: 0.9, low: low) }) { store in
            var batch = WriteBatch()
            batch.put(smallBody(1), for: "beside")
            batch.put(body(7 << 20), for: "large")
            try store.write(batch)
            try settle(store)
            try #expect(store.contains("large") && store.contains("beside"))
            // Uses and removals need no room.
            _ = try store.get("beside")
            try store.remove("small1", durability: .durable)
            try settle(store)
            try #expect(store.contains("large") && store.contains("beside"))
            // Its turn comes as that of any entry.
            try store.put(smallBody(0), for: "next")
            try settle(store)
            try #expect(store.contains("next"))
        }
    }

    @Test func aBatchThatFillsTheStoreStays() throws {
        try withFull(budget, { $0.watermarks = .init(high: 0.5, low: 0.1) }) { store in
            var batch = WriteBatch()
            for number in 0..<60 { batch.put(body(100_000, number), for: Key("batch\(number)")) }
            try store.write(batch)
            try settle(store)
            try #expect((0..<60).allSatisfy { try store.contains(Key("batch\($0)")) })
        }
    }

    // MARK: Pins and leases

    /// Pins above the watermarks leave a small store, not none.
    @Test func besideManyPinsTheRestIsACache() throws {
        try withFull(budget, small: 0) { store in
            for number in 0..<2 {
                try store.put(body(3_600_000, number), for: Key("pinned\(number)"), PutOptions(isPinned: true))
            }
            for number in 0..<100 {
                try store.put(body(2000, number), for: small(number))
                try settle(store)
                try #expect(store.contains(small(number)))
            }
            try #expect(smallOnes(store, of: 100) > 10)
            // Without the pins the watermarks are those of the whole budget.
            for number in 0..<2 { try store.unpin(Key("pinned\(number)")) }
            for number in 100..<600 { try store.put(smallBody(number), for: small(number)) }
            try settle(store)
            try #expect((250...360).contains(smallOnes(store, of: 600)))
        }
    }

    enum Protection: String, CaseIterable, Sendable { case pin, pinnedTag, lease, leasedTag }

    @Test(arguments: Protection.allCases) func whatCannotStayBesideThemDisplacesNothing(_ kind: Protection) throws {
        try withFull(budget) { store in
            var options = PutOptions(tags: ["protected"])
            options.isPinned = kind == .pin
            if kind == .pinnedTag { try store.pin(tag: "protected") }
            let lease = kind == .leasedTag ? try store.lease(tag: "protected", for: .seconds(60)) : nil
            var leases: [Lease] = []
            for number in 0..<2 {
                try store.put(body(2_800_000, number), for: Key("held\(number)"), options)
                if kind == .lease { leases.append(try store.lease(Key("held\(number)"), for: .seconds(60))) }
            }
            let before = try store.displaced
            let error = #expect(throws: LarderError.self) { try store.put(body(3 << 20), for: "large") }
            #expect(error?.code == .noSpace)
            try settle(store)
            try #expect(store.displaced == before)
            try #expect(smallOnes(store) == 20)
            // What fits when others go is stored.
            try store.put(body(1_700_000), for: "fits")
            try settle(store)
            try #expect(store.contains("fits"))
            withExtendedLifetime((lease, leases)) {}
        }
    }

    /// A little more than what there would be without the small ones, and less than what their rows could take.
    @Test func whatAlmostFitsBesidePinsDisplacesNothing() throws {
        try withFull(Budget(bytes: .megabytes(4)), small: 0) { store in
            for number in 0..<6 {
                try store.put(body(450_000, number), for: Key("pinned\(number)"), PutOptions(isPinned: true))
            }
            for number in 0..<20 { try store.put(body(20_000, number), for: small(number)) }
            try settle(store)
            let before = try store.displaced
            #expect(throws: LarderError.self) { try store.put(body(1_200_000), for: "large") }
            try settle(store)
            try #expect(store.displaced == before && smallOnes(store) == 20)
        }
    }

    /// A lease that is over, a removal that is not committed, metadata: what goes for them counts.
    @Test func whatFitsBesideThemIsStored() throws {
        try withFull(budget, small: 0) { store in
            try store.put(smallBody(0), for: "pinned", PutOptions(isPinned: true))
            for number in 0..<2 { try store.put(body(2_800_000, number), for: Key("held\(number)")) }
            let leases = try (0..<2).map { try store.lease(Key("held\($0)"), for: .seconds(60)) }
            try store.flush()
            for lease in leases { lease.release() }
            try store.put(body(3 << 20), for: "afterLeases")
            try store.flush()
            for number in 0..<6 {
                try store.put([1], for: Key("metadata\(number)"), PutOptions(metadata: body(1 << 20, number)))
            }
            try store.flush()
            try store.put(body(3 << 20), for: "afterMetadata")
            try store.flush()
            try #expect(store.contains("afterMetadata") && store.contains("pinned"))
        }
        var budget = budget
        budget.largestEntry = .mebibytes(7)
        try withFull(budget, small: 0) { store in
            try store.put(body(5_000_000, 1), for: "pinned", PutOptions(isPinned: true))
            try store.put(body(1_500_000, 2), for: "free")
            try store.flush()
            try store.remove("pinned")
            try store.put(body(6_500_000, 3), for: "large")
            try store.flush()
            try #expect(store.contains("large"))
        }
    }

    // MARK: In memory

    @Test func inMemoryTheSameHolds() throws {
        let options = PutOptions(storagePolicy: .memoryOnly)
        var pinned = options
        pinned.isPinned = true
        try withFull(.unlimited, small: 0, { $0.memoryLimit = .mebibytes(4) }) { store in
            for number in 0..<10 { try store.put(smallBody(number), for: small(number), options) }
            var error = #expect(throws: LarderError.self) { try store.put(body(2 << 20), for: "large", options) }
            #expect(error?.code == .tooLarge)
            try store.put(body(1_900_000), for: "first", pinned)
            try store.put(body(1_900_000), for: "second", pinned)
            error = #expect(throws: LarderError.self) { try store.put(body(700_000), for: "third", options) }
            #expect(error?.code == .noSpace)
            try #expect(smallOnes(store, of: 10) == 10)
            // Beside pins, too, some go for one that comes, and not all.
            for number in 10..<40 { try store.put(smallBody(number), for: small(number), options) }
            try #expect(smallOnes(store, of: 40) > 10)
        }
    }
}

extension Store {
    fileprivate var displaced: Int { get throws { try statistics().displacedCount } }
}
