import Larder

/// `verify --json`.
package struct VerifyJSON: Encodable {
    package let isClean: Bool
    package let repair: Bool
    package let isRepaired: Bool
    package let violationCount: Int
    let violations: [ViolationJSON]
    let entryCount: Int
    let blobCount: Int
    /// Bodies among them without a digest yet.
    let partialCount: Int
    let hashedBytes: Int64
    /// What is in the store's directory and not its own: no violation, and never touched.
    let foreignFiles: [String]
    /// Body files that were removed because no part of the index could be read; null if the index was not replaced.
    @Nullable var lostFiles: Int?
    /// Entries lost with a damaged index; null if it was not replaced, or if their number is unknown.
    @Nullable var lostEntries: Int?
    /// Where the index was damaged; null if it was not replaced.
    @Nullable var damages: [String]?

    /// A violation of an invariant.
    package struct ViolationJSON: Encodable {
        let invariant: String
        let message: String
        let isRepaired: Bool

        package init(invariant: String, message: String, isRepaired: Bool) {
            self.invariant = invariant
            self.message = message
            self.isRepaired = isRepaired
        }
    }

    /// - Parameter others: violations of what the store's own check does not know.
    package init(_ report: CheckReport, _ others: [ViolationJSON] = [], repair: Bool, rebuild: RebuildReport?) {
        isClean = report.isClean && others.isEmpty
        self.repair = repair
        isRepaired = repair && (report.isClean || report.isRepaired) && others.allSatisfy(\.isRepaired) && !isClean
        violationCount = report.violationCount + others.count
        violations =
            report.violations.map {
                ViolationJSON(invariant: $0.invariant.rawValue, message: $0.message, isRepaired: $0.isRepaired)
            } + others
        entryCount = report.entryCount
        blobCount = report.blobCount
        partialCount = report.partialCount
        hashedBytes = report.hashedBytes.bytes
        foreignFiles = report.foreignFiles
        lostFiles = rebuild?.removedFiles
        lostEntries = rebuild?.lostEntries
        damages = rebuild?.damages
    }
}
