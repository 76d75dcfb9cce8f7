import SystemPackage

extension Store {
    /// Verifies the invariants I1 to I8, and with `readingBodies` every byte against its digest.
    ///
    /// Runs on a store that others are using: a file that looks wrong is examined again before it is reported. Without
    /// `repair` nothing changes.
    /// - Parameters:
    ///   - repair: repairs what it finds: damaged bodies go to quarantine and their entries are removed, rows and
    ///     counters are made to agree with the entries, files without an entry are removed.
    ///   - readingBodies: false skips I7, which takes most of the time.
    ///   - progress: called as bodies are read. Throw from it to stop.
    /// - Returns: the violations found, and which of them were repaired.
    /// - Throws: `closed`, `readOnly`, `corruption`, `io`, the errors of `progress`, and `CancellationError` in a
    ///   cancelled task.
    @available(*, noasync, message: "Use `perform`, which waits off the cooperative threads.")
    public func check(
        repair: Bool = false, readingBodies: Bool = true, progress: (CheckProgress) throws -> Void = { _ in }
    ) throws -> CheckReport {
        if repair { _ = try writing() } else { try requireOpen() }
        try Cancellation.check()
        // First of all: rows are read and written through LMDB, which trusts its pages, and heads of bodies in place.
        try engine.context.checkPages(.heads)
        engine.commitPending()
        var check = Check(engine: engine, isRepairing: repair, readsBodies: readingBodies)
        return try check.run {
            try Cancellation.check()
            try progress($0)
        }
    }

    /// Repairs a store that cannot be opened, or whose index is damaged (`corruption`), and checks it with repair.
    ///
    /// A damaged index is replaced by a new one that has every entry that can still be read and whose body is intact.
    /// An index that cannot be read at all is kept in `quarantine/`. No record names the body files then, so they are
    /// removed. A `FORMAT` file that lost its contents is written again. No process may have the store open. Needs room
    /// for a second index, which may exceed the byte budget for that time.
    ///
    /// Reads the whole index and every body.
    /// - Parameters:
    ///   - path: the directory of the store.
    ///   - configuration: the settings with which the store is opened for the check.
    /// - Returns: a report of the entries kept and lost.
    /// - Throws: `locked` if the store is open somewhere; `formatMismatch` if `path` is not a store, or has a newer
    ///   format; `noSpace`; `io`.
    @discardableResult
    public static func rebuildIndex(
        at path: FilePath, _ configuration: Configuration = Configuration()
    ) throws -> RebuildReport {
        var report = try Rebuild.run(path, configuration)
        let store = try Store(at: path, configuration)
        do {
            report.check = try store.check(repair: true)
            report.keptEntries = Int(clamping: try store.statistics().entryCount)
        } catch {
            // The first failure is the one to report.
            try? store.close()
            throw error
        }
        try store.close()
        return report
    }

    /// As the synchronous form, on a thread that may wait for the disk. Once begun, it runs to its end even if the task
    /// is cancelled.
    @discardableResult
    public static func rebuildIndex(
        at path: FilePath, _ configuration: Configuration = Configuration()
    ) async throws -> RebuildReport {
        try Task.checkCancellation()
        return try await IOPool.long.run { try rebuildIndex(at: path, configuration) }
    }
}
