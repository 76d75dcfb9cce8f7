import TestSupport
import Testing

@testable import Larder

/// `allocatedBytes` equals a recount by lstat(2) after every kind of work. `withStore` recounts again at tear-down.
@Suite struct StatisticsTests {
    @Test func anEmptyStoreCountsItsOwnFiles() throws {
        try withStore { store in
            let statistics = try store.statistics()
            #expect(statistics.entryCount == 0)
            #expect(statistics.allocatedBytes.bytes == recount(store.path))
            #expect(statistics.allocatedBytes > statistics.indexBytes)
            #expect(statistics.transientBytes == .zero)
            #expect(statistics.budget == .unlimited)
        }
    }

    @Test(arguments: 1...6)
    func everyFigureIsExactThroughARandomWorkload(_ seed: Int) throws {
        try withStore(configuration: .testing(budget: seed % 2 == 0 ? Budget(bytes: .mebibytes(2)) : nil)) { store in
            var generator = SeededGenerator(seed: UInt64(seed))
            for step in 0..<150 {
                let key = Key("k\(Int.random(in: 0..<40, using: &generator))")
                let length = [0, 10, 4000, 5000, 60_000][Int.random(in: 0..<5, using: &generator)]
                switch Int.random(in: 0..<12, using: &generator) {
                case 0..<6: try store.put(body(length, step % 20), for: key, PutOptions(tags: ["t\(step % 3)"]))
                case 6: try store.remove(key)
                case 7: _ = try store.bytes(key)
                case 8: try store.touch(key, lifetime: .duration(.seconds(100)))
                case 9: _ = try step % 2 == 0 ? store.pin(key) : store.unpin(key)
                case 10: try store.remove(.tag("t\(step % 3)"))
                default: try store.collect()
                }
                if step % 10 == 9 { try expectExact(store, "seed \(seed), step \(step)") }
            }
        }
    }

    private func expectExact(_ store: Store, _ context: String) throws {
        let statistics = try store.statistics()
        #expect(statistics.allocatedBytes.bytes == recount(store.path), "\(context)")
        var entries = 0
        var logical: Int64 = 0
        var blobs: [Digest: Attributes] = [:]
        try store.forEach { attributes in
            entries += 1
            logical += attributes.length.bytes
            blobs[attributes.digest] = attributes
        }
        #expect(statistics.entryCount == entries, "\(context)")
        #expect(statistics.logicalBytes.bytes == logical, "\(context)")
        #expect(statistics.blobCount == blobs.count, "\(context)")
        #expect(statistics.storedBytes.bytes == blobs.values.reduce(0) { $0 + $1.storedLength.bytes }, "\(context)")
        #expect(statistics.fileCount == blobs.values.count { !$0.isInline }, "\(context)")
        #expect(TestFiles.tree(store.path.appending("blobs")).count == statistics.fileCount, "\(context)")
    }

    @Test func figuresSurviveReopening() throws {
        try withDirectory { path in
            let first = try Store(at: path, .testing())
            for number in 0..<30 { try first.put(body(number * 500, number % 10), for: Key("k\(number)")) }
            let before = try first.statistics()
            try first.close()
            let second = try Store(at: path, .testing())
            let after = try second.statistics()
            #expect(after.entryCount == before.entryCount)
            #expect(after.blobCount == before.blobCount)
            #expect(after.logicalBytes == before.logicalBytes)
            #expect(after.storedBytes == before.storedBytes)
            #expect(after.fileCount == before.fileCount)
            #expect(after.allocatedBytes.bytes == recount(path))
            try finish(second)
        }
    }

    @Test func filesBeingWrittenAreCounted() throws {
        try withStore { store in
            let writer = try store.writer(for: "k")
            try writer.write(body(100_000))
            let during = try store.statistics()
            #expect(during.transientBytes > 0)
            #expect(during.allocatedBytes.bytes == recount(store.path))
            #expect(during.entryCount == 0)
            try writer.commit()
            let after = try store.statistics()
            #expect(after.transientBytes == .zero)
            #expect(after.allocatedBytes.bytes == recount(store.path))
        }
    }

    @Test func pagesThatHoldNothingAreGivenBack() throws {
        try withStore { store in
            for number in 0..<300 { try store.put(body(4000, number), for: Key("k\(number)")) }
            let full = try store.statistics()
            try store.remove(.all)
            let empty = try store.statistics()
            #expect(empty.indexBytes >= full.indexBytes)
            #expect(empty.liveIndexBytes.bytes < full.liveIndexBytes.bytes / 4)
            let report = try store.collect(compact: true)
            let compact = try store.statistics()
            #expect(report.allocatedBefore == empty.allocatedBytes)
            #expect(report.allocatedAfter == compact.allocatedBytes)
            #expect(report.freedBytes.bytes > full.indexBytes.bytes / 2)
            #expect(compact.indexBytes.bytes < full.indexBytes.bytes / 2)
            try store.put(body(4000), for: "k")
            try #expect(store.bytes("k") == body(4000))
        }
    }

    /// A collection does not give it back.
    @Test func aDryCollectionDoesNotCountTheReserve() throws {
        try withStore { store in
            for number in 0..<100 { try store.put(body(4000, number), for: Key("k\(number)")) }
            try store.flush()
            try store.remove(.all)
            let before = try store.collect(dryRun: true).freedBytes
            let reserve = try #require(store.engine.writing).room.reserve
            try reserve.look(store.budget(), isFull: true)
            try reserve.require()
            #expect(reserve.bytes > 64 << 10)
            // File systems round to their blocks.
            try #expect(store.collect(dryRun: true).freedBytes.bytes < before.bytes + (16 << 10))
        }
    }

    @Test func aDryCollectionChangesNothing() throws {
        let clock = TestClock()
        try withStore(configuration: .testing(clock: clock)) { store in
            for number in 0..<100 {
                try store.put(body(4000, number), for: Key("k\(number)"), PutOptions(lifetime: .duration(.seconds(10))))
            }
            try store.put([1], for: "kept")
            clock.advance(by: .seconds(11))
            let before = try store.statistics()
            let dry = try store.collect(dryRun: true)
            #expect(dry.expiredEntries == 100)
            try #expect(store.statistics() == before)
            var steps: [CollectionStep] = []
            let wet = try store.collect { step, _ in if steps.last != step { steps.append(step) } }
            #expect(steps == CollectionStep.allCases)
            #expect(wet.expiredEntries == 100)
            try #expect(store.keys() == ["kept"])
        }
    }
}
