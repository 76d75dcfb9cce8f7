import LMDB

extension Store {
    /// Removes the entry under `key`. Readers of this process see it gone at once; the index with the next commit, or
    /// when the call returns with `Durability.durable`.
    ///
    /// - Parameters:
    ///   - key: what the entry was put under.
    ///   - durability: whether the call waits until the removal survives power loss. Nil (the default): as
    ///     `Configuration.durability` says. A removal that did not wait survives it once `flush()` has returned.
    /// - Returns: false if there was no entry, or only one of another application version, which stays.
    /// - Throws: `invalidArgument`, `tooLarge`, `closed`, `readOnly`; with `durable` why it could not be committed.
    @discardableResult
    public func remove(_ key: Key, durability: Durability? = nil) throws -> Bool {
        let writing = try writing()
        try key.validate()
        let memory = engine.memory
        var existed = try engine.contains(key, visibility(true))
        // What the index has of another version may be read by others of this process until the removal is committed.
        if !existed, version != nil, try engine.contains(key, Engine.Visibility(version: nil, includesExpired: true)) {
            return false
        }
        let removal = PendingRemoval(
            key: key, owner: handle, version: version, isDurable: isDurable(durability),
            uptime: engine.uptime.uptime())
        let generation = try engine.submit(removal, writing) {
            if memory.remove(key, where: { sees($0.version) }) != nil { existed = true }
        }
        if let generation { try engine.awaitCommit(generation, removal, writing) }
        return existed
    }

    /// Removes every entry at once: a reader sees all of them or none. Pinned ones too, and those of every application
    /// version; files go in the background. Cost grows with the index pages and the number of body files.
    ///
    /// Application versions that no entry is left of are forgotten, unless another process has the store open.
    /// - Parameter durability: whether the call waits until the removal survives power loss. Nil (the default): as
    ///   `Configuration.durability` says.
    /// - Returns: how many entries there were.
    /// - Throws: `closed`, `readOnly`, `noSpace`, `io`: then nothing was removed.
    @discardableResult
    public func clear(durability: Durability? = nil) throws -> Int {
        _ = try writing()
        engine.commitPending()
        // Those on disk first: if that fails nothing is lost.
        let onDisk = try engine.clear()
        let inMemory = engine.memory.remove { _ in true }
        try settle(durability)
        return onDisk + inMemory
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
        _ = try writing()
        engine.commitPending()
        let filter = try engine.filter(selection, version: version)
        var removed = try engine.removeInMemory(filter)
        let total = Int(clamping: try engine.state().entryCount)
        var examined = 0
        var walk = EntryWalk(filter)
        while !walk.isOver {
            try Cancellation.check()
            let limit = try engine.removalLimit()
            let batch = try engine.read { try walk.next(engine.index, $0, limit: limit) }
            examined += batch.examined
            if !batch.keys.isEmpty {
                removed += try remove(batch.keys[...], filter)
            }
            try progress(RemovalProgress(examined: examined, removed: removed, total: total))
        }
        try settle(durability)
        return removed
    }

    private func remove(_ keys: ArraySlice<(key: [UInt8], id: UInt64)>, _ filter: EntryFilter) throws -> Int {
        do {
            return try engine.mutate(.housekeeping) { try $0.remove(keys, filter) }
        } catch let error as LarderError where error.code == .noSpace && keys.count > 1 {
            // A full disk may have the pages for a small transaction, and the next one can use what that frees.
            let middle = keys.startIndex + keys.count / 2
            return try remove(keys[..<middle], filter) + remove(keys[middle...], filter)
        }
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
        try engine.endSession()
        try engine.sweepDead(writing)
    }
}

extension Mutation {
    /// Removes those entries of a walk that are still selected; returns how many.
    func remove(_ keys: ArraySlice<(key: [UInt8], id: UInt64)>, _ filter: EntryFilter) throws -> Int {
        var count = 0
        for (key, id) in keys {
            // An entry that was put again since it was looked at may no longer be selected.
            guard let record = try record(key), record.id == id,
                try filter.includes(record.key(key), record, digest: { try digest(ofBlob: record.blob) })
            else { continue }
            if try remove(key) != nil { count += 1 }
        }
        return count
    }
}

extension Engine {
    /// Empties every database but `meta`, in one transaction.
    func clear() throws -> Int {
        try mutate(.housekeeping) { mutation in
            let count = Int(clamping: mutation.state.entryCount)
            var files: [(UInt64, BlobRecord)] = []
            try mutation.reading.withCursor(index.blobs) { cursor in
                var pair = try cursor.first()
                while let (key, value) = pair {
                    if let head = BlobRecord(value), head.location == .file { files.append((key.field(0), head)) }
                    pair = try cursor.next()
                }
            }
            for (id, head) in files { try mutation.deleteBlob(id, head) }
            for database in [
                index.entries, index.recency, index.pinned, index.expiry, index.tags, index.sessions, index.digests,
                index.blobs, index.unpublished,
            ] {
                try mutation.transaction.removeAll(database)
            }
            mutation.forgetAll()
            try forgetVersions(mutation)
            return count
        }
    }
}
