import LMDB

extension Store {
    /// Removes the entry under `key`. Readers of this process no longer see it; the index removes it with the next
    /// commit, or before the call returns with `Durability.durable`.
    ///
    /// - Parameters:
    ///   - key: the key of the entry.
    ///   - durability: the durability of the removal. Nil (the default): as `Configuration.durability` says. A relaxed
    ///     removal survives power loss once `flush()` has returned.
    /// - Returns: false if there was no entry, or only one of another application version, which stays; also if there
    ///   was only a body in progress, which is removed.
    /// - Throws: `invalidArgument`, `tooLarge`, `closed`, `readOnly`; with `durable` also the error of the commit.
    @discardableResult
    public func remove(_ key: Key, durability: Durability? = nil) throws -> Bool {
        guard let removal = try requestedRemoval(of: key, durability) else { return false }
        return try writing().submission.remove(removal)
    }

    /// As the synchronous form, without holding a thread of the cooperative pool. It runs to its end even if the task
    /// is cancelled.
    @discardableResult
    public func remove(_ key: Key, durability: Durability? = nil) async throws -> Bool {
        guard let removal = try requestedRemoval(of: key, durability) else { return false }
        return try await writing().submission.remove(removal)
    }

    /// Nil where there is no entry but that of another version, which others of this process may read until the commit.
    private func requestedRemoval(of key: Key, _ durability: Durability?) throws -> PendingRemoval? {
        _ = try writing()
        try key.validate()
        let hasExisted = try engine.lookups.contains(key, visibility(true))
        if !hasExisted, version != nil,
            try engine.lookups.contains(key, Lookups.Visibility(version: nil, includesExpired: true))
        {
            return nil
        }
        let removal = removal(of: key, isDurable: isDurable(durability))
        removal.hasExisted = hasExisted
        return removal
    }

    /// Removes all entries in one step: a reader sees all of them or none. This includes pinned entries and those of
    /// every application version. Files are removed in the background. The cost grows with the index pages and the
    /// number of body files.
    ///
    /// Leases that a batch took also end; those that a `Lease` holds stay.
    ///
    /// Application versions without entries are forgotten, unless another process has the store open.
    /// - Parameter durability: the durability of the removal. Nil (the default): as `Configuration.durability` says.
    /// - Returns: the number of entries removed.
    /// - Throws: `closed`, `readOnly`, `noSpace`, `io`: then nothing was removed.
    @available(*, noasync, message: "Use `perform`, which waits off the cooperative threads.")
    @discardableResult
    public func clear(durability: Durability? = nil) throws -> Int {
        let writing = try writing()
        engine.commitPending()
        // Those on disk first: if that fails nothing is lost.
        let onDisk = try writing.removals.clear()
        let inMemory = engine.memory.remove { _ in true }
        engine.counters.add(.removed, UInt64(onDisk + inMemory))
        engine.tell(.cleared(count: onDisk + inMemory))
        try settle(durability)
        return onDisk + inMemory
    }

    /// Removes the selected entries, including pinned ones, in small batches that let others write in between.
    ///
    /// In a cancelled task the removal stops with `CancellationError`. Entries removed before that stay removed.
    /// - Parameters:
    ///   - selection: the entries to remove.
    ///   - durability: the durability of the removal. Nil (the default): as `Configuration.durability` says.
    ///   - progress: called after each batch; throw from it to stop.
    /// - Returns: the number of entries removed.
    /// - Throws: `closed`, `readOnly`, `noSpace`, `io`, `CancellationError`, and the errors of `progress`.
    @discardableResult
    public func remove(
        _ selection: Selection, durability: Durability? = nil,
        progress: (RemovalProgress) throws -> Void = { _ in }
    ) throws -> Int {
        let writing = try writing()
        engine.commitPending()
        let filter = try engine.descriptions.filter(selection, version: version)
        var removed = try writing.memoryStore.remove(filter)
        let total = Int(clamping: try engine.state().entryCount)
        var examined = 0
        var walk = EntryWalk(filter)
        while !walk.isOver {
            try Cancellation.check()
            let limit = try engine.context.removalLimit()
            let batch = try engine.read { try walk.next(engine.index, $0, limit: limit) }
            examined += batch.examined
            if !batch.keys.isEmpty {
                removed += try batch.keys[...].inParts { try writing.removals.remove($0, filter) }
            }
            try progress(RemovalProgress(examined: examined, removed: removed, total: total))
        }
        try settle(durability)
        return removed
    }

    /// True if a removal of selected entries may find any. Reads a few keys of the index and the pending changes, and
    /// does not wait for a commit, as the removal itself does.
    /// - Parameter prefix: the prefix of the keys of all of them.
    /// - Throws: `closed`, `readOnly`, `io`, `corruption`, `readersFull`.
    package func mayHave(_ selection: Selection, prefix: Key) throws -> Bool {
        let writing = try writing()
        // Pending changes first: what is committed meanwhile is in the index by then.
        if writing.pending.mayHave(prefix: prefix) { return true }
        let filter = try engine.descriptions.filter(selection, version: version)
        if try !engine.descriptions.inMemory(filter).isEmpty { return true }
        var walk = EntryWalk(filter)
        let batch = try engine.read { try walk.next(engine.index, $0, limit: 64) }
        return !batch.keys.isEmpty || !walk.isOver
    }

    /// Removes the selected entries, including pinned ones, in small batches that let others write in between.
    ///
    /// Parameters, result and errors are those of the synchronous form. It runs on a thread that may wait for the disk.
    /// Cancelling the task stops it with `CancellationError`; entries removed before that stay removed.
    @discardableResult
    public func remove(
        _ selection: Selection, durability: Durability? = nil,
        progress: @escaping @Sendable (RemovalProgress) throws -> Void = { _ in }
    ) async throws -> Int {
        try await IOPool.long.runCancellable { [self] in
            try remove(selection, durability: durability, progress: progress)
        }
    }

    /// Ends the session: removes every entry of policy `session` that this process put, and those of processes that
    /// died. Waits for the commit of pending changes and of the removal.
    /// - Throws: `closed`, `readOnly`, `noSpace`, `io`.
    @available(*, noasync, message: "Use `perform`, which waits off the cooperative threads.")
    public func endSession() throws {
        let writing = try writing()
        engine.commitPending()
        try writing.recovery.endSession()
        try writing.recovery.sweepDead()
    }
}
