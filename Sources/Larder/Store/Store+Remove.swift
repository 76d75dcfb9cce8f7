import LMDB

extension Store {
    /// Removes the entry under `key`. Readers of this process see it gone at once; the index with the next commit, or
    /// when the call returns with `Durability.durable`.
    ///
    /// - Parameters:
    ///   - key: what the entry was put under.
    ///   - durability: whether the call waits until the removal survives power loss. Nil (the default): as
    ///     `Configuration.durability` says. A removal that did not wait survives it once `flush()` has returned.
    /// - Returns: false if there was no entry, or only one of another application version, which stays; also if there
    ///   was only a body in progress, which is removed.
    /// - Throws: `invalidArgument`, `tooLarge`, `closed`, `readOnly`; with `durable` why it could not be committed.
    @discardableResult
    public func remove(_ key: Key, durability: Durability? = nil) throws -> Bool {
        guard let removal = try requestedRemoval(of: key, durability) else { return false }
        return try writing().submission.remove(removal)
    }

    /// As the synchronous form, without holding a thread of the cooperative pool. It is carried through in a cancelled
    /// task.
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

    /// Removes every entry at once: a reader sees all of them or none. Pinned ones too, and those of every application
    /// version; files go in the background. Cost grows with the index pages and the number of body files.
    ///
    /// Leases that a batch took end, too; those that a `Lease` holds stay.
    ///
    /// Application versions that no entry is left of are forgotten, unless another process has the store open.
    /// - Parameter durability: whether the call waits until the removal survives power loss. Nil (the default): as
    ///   `Configuration.durability` says.
    /// - Returns: how many entries there were.
    /// - Throws: `closed`, `readOnly`, `noSpace`, `io`: then nothing was removed.
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

    /// As the synchronous form, on a thread that may wait for the disk. It is carried through in a cancelled task.
    @discardableResult
    public func clear(durability: Durability? = nil) async throws -> Int {
        try await IOPool.long.run { [self] in try clear(durability: durability) }
    }

    /// Removes the selected entries, pinned ones too, in small batches that let others write in between.
    ///
    /// In a cancelled task the removal stops with `CancellationError`. What was removed before stays removed.
    /// - Parameters:
    ///   - selection: which entries.
    ///   - durability: whether the call waits until the removal survives power loss. Nil (the default): as
    ///     `Configuration.durability` says.
    ///   - progress: called after each batch; throw from it to stop.
    /// - Returns: how many entries it removed.
    /// - Throws: `closed`, `readOnly`, `noSpace`, `io`, `CancellationError`, and what `progress` throws.
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

    /// Whether a removal of selected entries may find any: a look at a few keys of the index and at what is pending.
    /// Does not wait for a commit, as the removal itself does.
    /// - Parameter prefix: what the keys of all of them start with.
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

    /// Removes the selected entries, pinned ones too, in small batches that let others write in between.
    ///
    /// Parameters, result and errors are those of the synchronous form. It runs on a thread that may wait for the disk.
    /// Cancelling the task stops it with `CancellationError`; what was removed before stays removed.
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
    /// died. Waits for the commit of what is pending and of the removal.
    /// - Throws: `closed`, `readOnly`, `noSpace`, `io`.
    public func endSession() throws {
        let writing = try writing()
        engine.commitPending()
        try writing.recovery.endSession()
        try writing.recovery.sweepDead()
    }

    /// As the synchronous form, on a thread that may wait for the disk. It is carried through in a cancelled task.
    public func endSession() async throws {
        try await IOPool.long.run { [self] in try endSession() }
    }
}
