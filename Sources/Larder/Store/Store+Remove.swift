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
        var removal = try removal(of: key, durability)
        guard removal.isDue else { return false }
        let writing = try writing()
        if let generation = try submit(&removal, writing, mayWait: true) {
            try writing.submission.awaitCommit(generation, removal.pending)
        }
        return removal.hasExisted
    }

    /// As the synchronous form, without holding a thread of the cooperative pool. It is carried through in a cancelled
    /// task.
    @discardableResult
    public func remove(_ key: Key, durability: Durability? = nil) async throws -> Bool {
        var removal = try removal(of: key, durability)
        guard removal.isDue else { return false }
        let writing = try writing()
        if let generation = try submit(&removal, writing, mayWait: false) {
            try await writing.submission.awaitCommit(generation, removal.pending)
            return removal.hasExisted
        }
        let (generation, hasExisted) = try await IOPool.shared.run { [self, removal] in
            var removal = removal
            return (try submit(&removal, writing, mayWait: true) ?? 0, removal.hasExisted)
        }
        try await writing.submission.awaitCommit(generation, removal.pending)
        return hasExisted
    }

    /// The removal of one key.
    private struct Removal {
        let pending: PendingRemoval
        /// False where there is nothing but another version's entry.
        let isDue: Bool
        var hasExisted: Bool
    }

    private func removal(of key: Key, _ durability: Durability?) throws -> Removal {
        _ = try writing()
        try key.validate()
        let hasExisted = try engine.contains(key, visibility(true))
        // What the index has of another version may be read by others of this process until the removal is committed.
        let isOthers =
            try !hasExisted && version != nil
            && engine.contains(key, Engine.Visibility(version: nil, includesExpired: true))
        return Removal(
            pending: removal(of: key, isDurable: isDurable(durability)), isDue: !isOthers, hasExisted: hasExisted)
    }

    private func submit(_ removal: inout Removal, _ writing: Engine.Writing, mayWait: Bool) throws -> UInt64? {
        let memory = engine.memory
        var wasInMemory = false
        let pending = removal.pending
        let generation = try writing.submission.submit(pending, mayWait: mayWait) {
            if memory.remove(pending.key, where: { sees($0.version) }) != nil { wasInMemory = true }
        }
        if wasInMemory { removal.hasExisted = true }
        if generation != nil, removal.hasExisted { engine.noteRemoved(pending.key) }
        return generation
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
                removed += try batch.keys[...].inParts { try engine.remove($0, filter) }
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
