import Failpoints
import SeededData
import SystemPackage
import TestSupport
import Testing

@testable import Larder

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// A store at its budget that takes new bodies without end: it neither gives space back only to take it again, nor
/// stays emptier than it has to.
@Suite struct SteadyStateTests {
    /// Bodies between 100 B and a 64th of the budget, evenly over the logarithm: all of them are in the index.
    private func body(number: Int) -> [UInt8] {
        let steps = 40
        let length = 100 * pow(2_500.0, Double(number &* 17 % steps) / Double(steps))
        return SeededData.body(Int(length), number)
    }

    /// About 600 KB.
    private func putRound(_ number: Int, _ store: Store) throws {
        for index in number * 20..<(number + 1) * 20 { try store.put(body(number: index), for: Key("\(index)")) }
        try store.flush()
    }

    /// What 200 rounds at a full budget come to.
    private struct Counts {
        var commits: UInt64
        var displaced: Int
        var storedBytes: ByteCount
        var holes: Int
    }

    private func count(_ path: FilePath) throws -> Counts {
        let store = try Store(
            at: path, .testing(budget: Budget(bytes: .mebibytes(16))) { $0.inlineThreshold = .kibibytes(256) })
        for number in 0..<100 { try putRound(number, store) }
        let faults = FaultScope(under: path.string)
        let before = try store.statistics()
        for number in 100..<300 { try putRound(number, store) }
        let after = try store.statistics()
        let counts = Counts(
            commits: UInt64(after.counters.commits - before.counters.commits),
            displaced: after.displacedCount - before.displacedCount, storedBytes: after.storedBytes,
            holes: faults.hits["punch", default: 0])
        try finish(store)
        return counts
    }

    /// No long runs of free pages are given back that the next bodies fill again.
    @Test func spaceIsNotGivenBackAndTakenAgain() throws {
        let counts = try withDirectory { try count($0.appending("store")) }
        #expect(counts.displaced > 1500)
        #expect(UInt64(counts.holes) < counts.commits * 2, "\(counts)")
        #expect(counts.storedBytes > .mebibytes(10), "\(counts)")
    }
}
