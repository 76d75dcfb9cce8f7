import LMDB

/// Removal of many entries.
extension Mutation {
    /// Removes those entries of a walk that are still selected.
    /// - Parameter isNaming: whether their keys are wanted.
    /// - Returns: how many there were, and their keys.
    func remove(
        _ keys: ArraySlice<(key: [UInt8], id: UInt64)>, _ filter: EntryFilter, isNaming: Bool
    ) throws -> (count: Int, keys: [Key]) {
        var count = 0
        var removed: [Key] = []
        for (key, id) in keys {
            // An entry that was put again since it was looked at may no longer be selected.
            guard let record = try record(key), record.id == id,
                try filter.includes(record.key(key), record, digest: { try digest(of: record) })
            else { continue }
            if try remove(key) == nil { continue }
            count += 1
            if isNaming { removed.append(record.key(key)) }
        }
        return (count, removed)
    }

    /// Removes every entry, and the leases that have no holder; returns how many entries there were.
    func removeAll() throws -> Int {
        let count = Int(clamping: state.entryCount)
        var files: [(UInt64, BlobRecord)] = []
        try reading.withCursor(index.blobs) { cursor in
            var pair = try cursor.first()
            while let (key, value) = pair {
                if let head = BlobRecord(value), head.location == .file { files.append((key.field(0), head)) }
                pair = try cursor.next()
            }
        }
        for (id, head) in files { try blobs.delete(id, head) }
        for database in [
            index.entries, index.recency, index.pinned, index.expiry, index.tags, index.sessions, index.digests,
            index.blobs, index.unpublished,
        ] {
            try transaction.removeAll(database)
        }
        try dropTimedLeases()
        forgetAll()
        return count
    }

    /// Resets the counters of a store whose databases were emptied; numbering continues.
    private func forgetAll() {
        let pages = (state.storedBytes / UInt64(index.environment.pageSize)).addingReportingOverflow(state.entryCount)
        // No more than there are, whatever the counters say.
        noteFreed(pages: min(Int(clamping: pages.partialValue), index.environment.lastPage + 1))
        state.entryCount = 0
        state.blobCount = 0
        state.logicalBytes = 0
        state.storedBytes = 0
        state.compressionGain = 0
        state.fileAllocated = 0
        state.fileCount = 0
        state.strayCount = 0
        noteChange(trees: 12)
    }
}
