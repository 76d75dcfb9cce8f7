import LMDB

extension Store {
    /// Removes the entry under `key`; false if there was none. Readers of this process see it gone at once.
    /// Errors: `invalidArgument`, `tooLarge`, `closed`, `readOnly`.
    @discardableResult
    public func remove(_ key: Key) throws -> Bool {
        let writing = try writing()
        try key.validate()
        let existed = try engine.contains(key, visibility(true))
        try engine.submitRemoval(of: key, writing)
        return engine.memory.remove(key) || existed
    }

    /// Removes every entry at once: a reader sees all of them or none. Pinned ones too; files go in the background.
    /// Cost grows with the index pages and the number of body files. Returns how many entries there were.
    @discardableResult
    public func clear() throws -> Int {
        _ = try writing()
        engine.commitPending()
        let inMemory = engine.memory.remove { _ in true }
        return try engine.clear() + inMemory
    }

    /// Removes the selected entries, pinned ones too, in small batches that let others write in between. Returns how many
    /// it removed.
    ///
    /// - Parameter progress: called after each batch; throw from it to stop. In a cancelled task the removal stops too,
    ///   with `cancelled`. What was removed before stays removed.
    @discardableResult
    public func remove(_ selection: Selection, progress: (RemovalProgress) throws -> Void = { _ in }) throws -> Int {
        _ = try writing()
        engine.commitPending()
        let now = engine.clock.now()
        var removed = engine.memory.remove { put in
            let record = put.asRecord
            return selection.includes(put.key, record, version: version, now: now)
                && (selection.tagName.map { record.tags.contains($0) } ?? true)
        }
        let total = Int(clamping: try engine.state().entryCount)
        var examined = 0
        var walk = EntryWalk(selection, version: version, now: now)
        while !walk.isOver {
            if Task.isCancelled { throw LarderError(.cancelled, "the removal was cancelled after \(removed) entries") }
            let limit = try engine.removalLimit()
            let batch = try engine.read { try walk.next(engine.index, $0, limit: limit) }
            examined += batch.examined
            if !batch.keys.isEmpty {
                removed += try remove(batch.keys[...]) { key, record in
                    selection.includes(record.key(key), record, version: version, now: now)
                }
            }
            try progress(RemovalProgress(examined: examined, removed: removed, total: total))
        }
        return removed
    }

    private func remove(
        _ keys: ArraySlice<(key: [UInt8], id: UInt64)>, where isSelected: ([UInt8], EntryRecord) -> Bool
    ) throws -> Int {
        do {
            return try engine.mutate(.housekeeping) { mutation in
                var count = 0
                for (key, id) in keys {
                    // Put anew since it was looked at, it may no longer be selected.
                    guard let record = try mutation.record(key), record.id == id, isSelected(key, record) else {
                        continue
                    }
                    if try mutation.remove(key) != nil { count += 1 }
                }
                return count
            }
        } catch let error as LarderError where error.code == .noSpace && keys.count > 1 {
            // A full disk may have the pages for a small transaction, and the next one can use what that frees.
            let middle = keys.startIndex + keys.count / 2
            return try remove(keys[..<middle], where: isSelected) + remove(keys[middle...], where: isSelected)
        }
    }

    /// As the synchronous `remove(_:progress:)`, on a thread that may wait for the disk. Cancelling the task stops it.
    @discardableResult
    public func remove(
        _ selection: Selection, progress: @escaping @Sendable (RemovalProgress) -> Void = { _ in }
    ) async throws -> Int {
        let flag = CancellationFlag()
        return try await withTaskCancellationHandler {
            try await IOPool.long.run { [self] in
                try remove(selection) { step in
                    progress(step)
                    if flag.isSet {
                        throw LarderError(.cancelled, "the removal was cancelled after \(step.removed) entries")
                    }
                }
            }
        } onCancel: {
            flag.set()
        }
    }

    /// Ends the session: removes every entry of policy `session` that this process put, and those of processes that died.
    public func endSession() throws {
        let writing = try writing()
        engine.commitPending()
        try engine.endSession()
        try engine.sweepDead(writing)
    }
}

extension Selection {
    var tagName: String? {
        if case .tag(let tag) = self { return tag }
        return nil
    }
}

extension PendingPut {
    /// As the index would have it, for judging a selection.
    var asRecord: EntryRecord {
        var record = EntryRecord()
        record.version = version
        record.policy = options.storagePolicy
        record.length = length
        record.stored = stored.microseconds
        record.accessed = accessed.microseconds
        record.expires = expires.microseconds
        record.tags = options.tags
        return record
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
            return count
        }
    }
}
