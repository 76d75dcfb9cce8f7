import Testing

@testable import Larder

/// A page of the index has 4 KiB on most machines, 16 KiB on Apple silicon, up to 64 KiB on Linux for arm64.
@Suite struct PageSizeTests {
    static let sizes = [4096, 16384, 32768, 65536]

    /// The margin that a commit needs for LMDB's list of free pages: see `Room.excess`.
    private static let margin: Int64 = 24

    @Test(arguments: sizes) func theHeadroomHoldsWhatACommitNeedsInAnyPageSize(pageSize: Int) throws {
        for mebibytes in [1, 2, 4, 8, 16, 17, 64, 1024, 1 << 20] as [Int64] {
            let budget = Budget(bytes: .mebibytes(mebibytes)).with(pageSize: pageSize)
            let isEnough = mebibytes << 20 >= 256 * Int64(pageSize)
            do throws(LarderError) {
                try budget.validate()
                #expect(isEnough)
            } catch {
                #expect(!isEnough && error.code == .invalidArgument)
                #expect(error.message.contains("\(256 * pageSize) bytes (\((256 * pageSize) >> 20) MiB)"))
                continue
            }
            #expect(budget.headroomPages > 2 * Self.margin)
            #expect(budget.headroom <= 32 << 20 && budget.usableBytes >= budget.bytes.bytes / 4 * 3)
            // Removals of one transaction copy 20 pages each at worst.
            #expect(budget.changesInHeadroom * 20 * Int64(pageSize) <= max(budget.headroom, 20 * Int64(pageSize)))
            #expect(
                budget.batchLimits(.mebibytes(16)).count * 20 * pageSize <= max(budget.headroom, 20 * Int64(pageSize)))
        }
    }

    @Test func aPageSizeIsNoPartOfABudget() {
        let budget = Budget(bytes: .mebibytes(64))
        #expect(budget == budget.with(pageSize: 65536))
        #expect(budget.hashValue == budget.with(pageSize: 65536).hashValue)
        #expect(Budget.minimumBytes.bytes == 256 * Int64(Budget.systemPageSize))
    }

    @Test func withPagesOf4KiBNothingChanged() {
        for (bytes, headroom) in [(1 << 20, 256 << 10), (4 << 20, 256 << 10), (64 << 20, 4 << 20), (1 << 30, 32 << 20)]
        {
            #expect(Budget(bytes: ByteCount(Int64(bytes))).with(pageSize: 4096).headroom == Int64(headroom))
        }
    }
}
