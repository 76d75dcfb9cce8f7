/// The result of a collection.
public struct CollectionReport: Sendable, Hashable {
    /// Entries removed because they had expired.
    public var expiredEntries = 0
    /// Entries displaced to keep the budget.
    public var displacedEntries = 0
    /// Entries removed because their application version is not the store's.
    public var otherVersionEntries = 0
    /// Files in `blobs/` that no entry used, and that were removed.
    public var orphanBlobs = 0
    /// Files of stores that died, removed from `staging/` and `trash/`. Includes those that this store removed earlier,
    /// when it was opened or needed room, if no collection has reported them.
    public var staleFiles = 0
    /// Entries removed because their body was missing or damaged.
    public var danglingEntries = 0
    /// Bytes allocated before, with those of `staleFiles`.
    public var allocatedBefore = ByteCount.zero
    /// Bytes allocated after.
    public var allocatedAfter = ByteCount.zero

    /// An empty report.
    package init() {}

    /// Bytes given back to the file system.
    public var freedBytes: ByteCount { ByteCount(allocatedBefore.bytes - allocatedAfter.bytes) }
}

/// The steps of a collection, in order.
public enum CollectionStep: String, Sendable, Hashable, CaseIterable {
    /// Files of stores that died.
    case sweep
    /// Entries that are no longer fresh.
    case expired
    /// Entries of other application versions.
    case versions
    /// Entries whose body is missing.
    case dangling
    /// Files without an entry.
    case orphans
    /// The budget.
    case displace
    /// Pages of the index that are not in use.
    case compact
}

extension Store {
    /// Puts the store in order while others use it: sweeps the files of dead processes, removes expired and dangling
    /// entries, orphan blobs and entries of other versions, displaces to the budget, and gives free pages of the index
    /// back.
    ///
    /// - Parameters:
    ///   - dryRun: only counts; nothing changes.
    ///   - compact: gives back every free page instead of only the long runs of them.
    ///   - progress: called at each step and while a step runs, with the findings so far. Throw from it to stop.
    /// - Returns: the findings and the changes made.
    /// - Throws: `closed`, `readOnly`, `corruption`, `noSpace`, `io`, the errors of `progress`, and `CancellationError`
    ///   in a cancelled task. Changes made before that stay.
    @available(*, noasync, message: "Use `perform`, which waits off the cooperative threads.")
    @discardableResult
    public func collect(
        dryRun: Bool = false, compact: Bool = false,
        progress: (CollectionStep, CollectionReport) throws -> Void = { _, _ in }
    ) throws -> CollectionReport {
        try collect(dryRun: dryRun, supposing: nil, compact: compact, progress: progress)
    }

    /// As `collect`.
    /// - Parameter budget: the byte budget that a dry run assumes. Nil: the store's.
    package func collect(
        dryRun: Bool, supposing budget: ByteCount?, compact: Bool,
        progress: (CollectionStep, CollectionReport) throws -> Void
    ) throws -> CollectionReport {
        let writing = dryRun ? engine.writing : try writing()
        try requireOpen()
        // What is not found in a damaged index would be taken for garbage.
        try engine.context.checkPages()
        engine.commitPending()
        var report = CollectionReport()
        report.allocatedBefore = try engine.statistics().allocatedBytes
        var collector = Collector(engine: engine, version: version, isDryRun: dryRun, supposed: budget, report: report)
        for step in CollectionStep.allCases {
            try Cancellation.check()
            try progress(step, collector.report)
            try collector.run(step, compact: compact, writing: writing) {
                try Cancellation.check()
                try progress(step, $0)
            }
        }
        try collector.collectMemory(writing)
        collector.report.allocatedAfter = try engine.statistics().allocatedBytes
        if dryRun { collector.report.allocatedAfter = collector.estimatedAfter }
        return collector.report
    }
}
