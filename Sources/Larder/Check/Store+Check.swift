import SystemPackage

extension Store {
    /// Verifies the invariants I1 to I8, and with `readingBodies` every byte against its digest.
    ///
    /// Runs on a store that others are using: a file that looks wrong is looked at again before it is reported. Without `repair` nothing changes.
    /// - Parameters:
    ///   - repair: mends what it finds: damaged bodies go to quarantine and their entries are removed, rows and counters are
    ///     made to agree with the entries, files without an entry are removed.
    ///   - readingBodies: false leaves I7 out, and with it most of the time.
    ///   - progress: called as bodies are read. Throw from it to stop.
    public func check(
        repair: Bool = false, readingBodies: Bool = true, progress: (CheckProgress) throws -> Void = { _ in }
    ) throws -> CheckReport {
        if repair { _ = try writing() } else { try requireOpen() }
        engine.commitPending()
        var check = Check(engine: engine, isRepairing: repair, readsBodies: readingBodies)
        return try check.run(progress)
    }

    /// As the synchronous `check`, on a thread that may wait for the disk.
    public func check(
        repair: Bool = false, readingBodies: Bool = true,
        progress: @escaping @Sendable (CheckProgress) throws -> Void = { _ in }
    ) async throws -> CheckReport {
        try await IOPool.shared.run { [self] in
            try check(repair: repair, readingBodies: readingBodies, progress: progress)
        }
    }

    /// Gives a store whose index is damaged beyond opening (`corruption`) a new, empty one. The old index is kept in
    /// `quarantine/`; bodies in files, which nothing names any more, are removed. No process may have the store open.
    /// - Returns: the number of body files removed.
    /// Errors: `locked` if the store is open somewhere; `formatMismatch` if `path` is no store; `io`.
    @discardableResult
    public static func rebuildIndex(at path: FilePath) throws -> Int {
        try Rebuild.run(path)
    }
}
