import TestSupport
import Testing

@testable import Larder

/// The budget and bodies in progress.
struct PartialRoomTests {
    private let budget = Budget(bytes: .mebibytes(4), largestEntry: .mebibytes(4))

    /// Without a commit in between, the index has been told of none of it.
    @Test func everyByteIsCountedWhileItIsWritten() throws {
        var configuration = Configuration.holding
        configuration.budget = budget
        try withStore(configuration: configuration) { store in
            let writer = try store.partialWriter(for: "k", total: 2_000_000)
            for start in stride(from: 0, to: 2_000_000, by: 150_001) {
                try writer.write(body(20_000), at: Int64(start))
                // Background work may end between the two measurements; then both are repeated.
                var (reported, counted): (Int64, Int64) = (0, 1)
                for _ in 0..<10 where reported != counted {
                    (reported, counted) = (try store.engine.statistics().allocatedBytes.bytes, recount(store.path))
                }
                #expect(reported == counted)
                #expect(recount(store.path) <= budget.bytes.bytes)
            }
            try verify(store)
            // All of it is in the index.
            #expect(store.engine.writing?.ledger.own == 0)
            try writer.suspend()
            try verify(store)
        }
    }

    @Test func writingDisplacesOthersAndNeverItself() throws {
        try withStore(configuration: .testing(budget: budget)) { store in
            for number in 0..<30 { try store.put(body(100_000, number), for: Key("k\(number)")) }
            let writer = try store.partialWriter(for: "large")
            for start in stride(from: 0, to: 3_000_000, by: 250_000) {
                try writer.write(body(250_000), at: Int64(start))
                #expect(recount(store.path) <= budget.bytes.bytes)
            }
            try #expect(store.keys().count < 30)
            let refusal = try code {
                for start in stride(from: 3_000_000, to: 5_000_000, by: 100_000) {
                    try writer.write(body(100_000), at: Int64(start))
                }
            }
            #expect(refusal == .tooLarge || refusal == .noSpace)
            #expect(writer.ranges[0].upperBound >= 3_000_000)
            try verify(store)
            writer.cancel()
            try #expect(store.statistics().entryCount == 0)
            try expectNothingReserved(store)
        }
    }

    @Test func bodiesWithoutAWriterAreDisplaced() throws {
        try withStore(configuration: .testing(budget: budget)) { store in
            let writer = try store.partialWriter(for: "left", total: 3_000_000)
            try writer.write(body(1_500_000), at: 1_000_000)
            try writer.suspend()
            for number in 0..<30 { try store.put(body(100_000, number), for: Key("k\(number)")) }
            try store.flush()
            try #expect(store.partialBody(of: "left") == nil)
            try #expect(store.partialWriter(for: "left").ranges.isEmpty)
        }
    }

    @Test func pinsAndLeasesKeepThem() throws {
        try withStore(configuration: .testing(budget: budget)) { store in
            for key in ["pinned", "leased", "tagged"] as [Key] {
                let writer = try store.partialWriter(for: key, PutOptions(tags: key == "tagged" ? ["t"] : []))
                try writer.write(body(600_000), at: 0)
                try writer.suspend()
            }
            try #expect(store.pin("pinned"))
            let lease = try store.lease("leased")
            try #expect(store.pin(tag: "t") == 1)
            for number in 0..<40 { try store.put(body(100_000, number), for: Key("k\(number)")) }
            try store.flush()
            try #expect(store.keys(.incomplete).count == 3)
            lease.release()
        }
    }

    @Test func theLimitOfEntriesCountsThem() throws {
        try withStore(configuration: .testing(budget: Budget(entries: 3))) { store in
            let writer = try store.partialWriter(for: "k")
            try writer.write(body(50_000), at: 0)
            for number in 0..<5 {
                try store.put([1], for: Key("k\(number)"))
                try store.flush()
            }
            try #expect(store.statistics().entryCount == 3 && store.keys(.incomplete) == ["k"])
            try writer.commit()
            try #expect(store.bytes("k") == body(50_000))
        }
    }

    // MARK: Under a writer

    enum Loss: CaseIterable { case remove, clear, put, memory, selection }

    @Test(arguments: Loss.allCases)
    func theWriterHearsThatItsBodyIsGone(_ loss: Loss) throws {
        try withStore { store in
            let writer = try store.partialWriter(for: "k", PutOptions(tags: ["t"]), total: 100_000)
            try writer.write(body(50_000), at: 0)
            switch loss {
            case .remove: try store.remove("k")
            case .clear: try store.clear()
            case .put: try store.put([5], for: "k")
            case .memory: try store.put([5], for: "k", PutOptions(storagePolicy: .memoryOnly))
            case .selection: try #expect(store.remove(.tag("t")) == 1)
            }
            try writer.write(body(100_000)[50_000...], at: 50_000)
            try #expect(code { try writer.commit() } == .gone)
            try #expect(code { try writer.write([1], at: 0) } == .gone)
            try #expect(store.bytes("k") == (loss == .put || loss == .memory ? [5] : nil))
            try #expect(store.partialBody(of: "k") == nil && store.keys(.incomplete).isEmpty)
            try expectNothingReserved(store)
        }
    }

    @Test func suspendingWhatIsGoneTellsSo() throws {
        try withStore { store in
            let writer = try store.partialWriter(for: "k")
            try writer.write(body(50_000), at: 0)
            try store.remove("k")
            try #expect(code { try writer.suspend() } == .gone)
            try store.partialWriter(for: "k").cancel()
            try expectNothingReserved(store)
        }
    }
}

/// Nothing is being written, or about to be removed.
func expectNothingReserved(_ store: Store, sourceLocation: SourceLocation = #_sourceLocation) throws {
    // Waits until the files in `trash/` are gone.
    try #expect(store.statistics().transientBytes == .zero, sourceLocation: sourceLocation)
    #expect(store.stagedFiles == [], sourceLocation: sourceLocation)
    #expect(store.engine.writing?.ledger.own == 0, sourceLocation: sourceLocation)
}
