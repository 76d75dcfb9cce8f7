import LMDB

/// Verifies the invariants of a store, and repairs those that do not hold.
///
/// The rows of the index are compared on one snapshot, which is consistent in itself whatever others do meanwhile.
/// Files are not part of a snapshot: what looks wrong there is looked at again before it counts, by a repair under the
/// writer lock.
struct Check {
    let engine: Engine
    let isRepairing: Bool
    let readsBodies: Bool
    var report = CheckReport()

    /// True once a row or counter disagreed: the repair then makes all of them again from the entries.
    var needsRebuild = false
    /// Bytes that files are charged with and do not take, or take and are not charged with, because the file system has
    /// not reported a final figure.
    var overcharged: Int64 = 0
    var undercharged: Int64 = 0
    /// Bodies whose file was not there at the first look.
    var missing: [(id: UInt64, head: BlobRecord)] = []

    /// True if a body could not be compared.
    var isIncomplete = false

    init(engine: Engine, isRepairing: Bool, readsBodies: Bool) {
        self.engine = engine
        self.isRepairing = isRepairing
        self.readsBodies = readsBodies
    }

    mutating func run(_ progress: (CheckProgress) throws -> Void) throws -> CheckReport {
        try checkIndex()
        // Bodies hang on rows: read them when those are right, or have been made so.
        if isRepairing, needsRebuild { try rebuild() }
        try checkBodies(progress)
        try checkOrphans()
        if isRepairing, needsRebuild { try rebuild() }
        try checkAllocation()
        if isRepairing, readsBodies, !isIncomplete { try clearSuspicion() }
        if isRepairing { try engine.files.restoreTag() }
        if isRepairing, !report.isClean {
            var second = Check(engine: engine, isRepairing: false, readsBodies: false)
            let after = try second.run { _ in }
            if after.isClean {
                report.repairedCount = report.violationCount
                for index in report.violations.indices { report.violations[index].isRepaired = true }
            }
        }
        return report
    }

    mutating func violation(_ invariant: Invariant, _ message: String) {
        report.violationCount += 1
        if report.violations.count < CheckReport.violationLimit {
            report.violations.append(Violation(invariant: invariant, message: message))
        }
    }

    /// A violation of rows or counters.
    mutating func disagreement(_ invariant: Invariant, _ message: String) {
        violation(invariant, message)
        needsRebuild = true
    }

    /// Every body was read and what did not match is gone: no file is suspect of lost bytes any longer.
    private func clearSuspicion() throws {
        guard try engine.state().suspectFrom < engine.state().suspectTo else { return }
        try engine.mutate(.housekeeping) { mutation in
            mutation.state.suspectFrom = 0
            mutation.state.suspectTo = 0
        }
    }

    private mutating func rebuild() throws {
        let repair = Repair(index: engine.index, files: engine.files)
        try engine.mutate(.housekeeping) { try repair.run($0) }
        needsRebuild = false
    }
}
