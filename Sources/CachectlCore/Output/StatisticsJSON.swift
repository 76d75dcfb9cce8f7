import Larder

/// `stat --json`.
package struct StatisticsJSON: Encodable {
    let path: String
    let identifier: String
    let isEncrypted: Bool
    let entryCount: Int
    let blobCount: Int
    let fileCount: Int
    let logicalBytes: Int64
    let storedBytes: Int64
    let savedBytes: Int64
    let compressionGain: Int64
    let allocatedBytes: Int64
    let indexBytes: Int64
    let liveIndexBytes: Int64
    let transientBytes: Int64
    @Nullable var budgetBytes: Int64?
    let budget: BudgetJSON
    let counters: CountersJSON

    package init(_ statistics: Statistics, path: String, identifier: String, isEncrypted: Bool) {
        self.path = path
        self.identifier = identifier
        self.isEncrypted = isEncrypted
        entryCount = statistics.entryCount
        blobCount = statistics.blobCount
        fileCount = statistics.fileCount
        logicalBytes = statistics.logicalBytes.bytes
        storedBytes = statistics.storedBytes.bytes
        savedBytes = statistics.savedBytes.bytes
        compressionGain = statistics.compressionGain.bytes
        allocatedBytes = statistics.allocatedBytes.bytes
        indexBytes = statistics.indexBytes.bytes
        liveIndexBytes = statistics.liveIndexBytes.bytes
        transientBytes = statistics.transientBytes.bytes
        budget = BudgetJSON(statistics.budget)
        budgetBytes = budget.bytes
        counters = CountersJSON(statistics.counters)
    }
}

/// The limits of a store; null means unlimited.
package struct BudgetJSON: Encodable {
    @Nullable package var bytes: Int64?
    @Nullable var entries: Int?
    @Nullable var largestEntry: Int64?
    let freeDiskFloor: Int64

    package init(_ budget: Budget) {
        bytes = budget.bytes == .unlimited ? nil : budget.bytes.bytes
        entries = budget.entries == .max ? nil : budget.entries
        largestEntry = budget.largestEntry == .unlimited ? nil : budget.largestEntry.bytes
        freeDiskFloor = budget.freeDiskFloor.bytes
    }
}
