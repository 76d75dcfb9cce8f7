import Testing

@testable import Larder

@Suite struct CommitPaceTests {
    private func pause(_ filled: Double, after elapsed: UInt64) -> UInt64 {
        CommitPace.pause(filled: filled, elapsed: elapsed, commitTime: 3_000_000)
    }

    @Test func firstHalfIsFree() {
        #expect([0, 0.2, 0.5].map { pause($0, after: 0) } == [0, 0, 0])
    }

    @Test func secondHalfFillsAsTheCommitGoesOn() {
        #expect(pause(0.75, after: 0) == 1_500_000)
        #expect(pause(0.75, after: 1_000_000) == 500_000)
        #expect(pause(0.75, after: 1_500_000) == 0)
        #expect(pause(1, after: 1_000_000) == 2_000_000)
    }

    @Test func noPauseIsLong() {
        #expect(CommitPace.pause(filled: 40, elapsed: 0, commitTime: .max / 4) == CommitPace.longest)
        #expect(CommitPace.pause(filled: -1, elapsed: 0, commitTime: .max / 4) == 0)
        #expect(pause(1, after: 10_000_000) == 0)
    }
}
