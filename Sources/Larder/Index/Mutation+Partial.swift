import LMDB

/// Bodies in progress: entries whose blob has a part of the bytes, under a random digest.
extension Mutation {
    /// A body in progress, as the index has it.
    struct Partial {
        var record: EntryRecord
        var head: BlobRecord
        /// What the earlier writer left, which the record of an encrypted body that was taken over no longer names in
        /// full.
        var left: StoredRanges { earlier ?? record.progress?.ranges ?? StoredRanges() }
        var earlier: StoredRanges?
    }

    /// The body in progress under an index key; nil if there is none, or it is damaged.
    func partial(_ key: [UInt8]) throws -> Partial? {
        guard let record = try record(key), record.progress != nil, try index.isIntact(key, reading),
            let head = try blobs.record(record.blob), !head.isDamaged, head.location == .file, record.isOf(head)
        else { return nil }
        return Partial(record: record, head: head)
    }

    /// As above, if it is the one that a writer has: another writer, or a put, may have taken its place.
    func partial(_ key: [UInt8], blob: UInt64, token: StagingToken) throws -> Partial? {
        guard let partial = try partial(key), partial.record.blob == blob, partial.head.token == token else {
            return nil
        }
        return partial
    }

    /// True if a living instance writes the body of an entry.
    func isBeingWritten(key: [UInt8], _ record: EntryRecord, except own: UInt64? = nil) throws -> Bool {
        try index.isBeingWritten(key: key, record, at: now, except: own, files, reading)
    }

    /// Makes a body in progress that of another writer. Its file is in `blobs/` afterwards, and the caller renames it.
    /// - Parameters:
    ///   - token: the name that it gets in `staging/`.
    ///   - total: the length that the body will have; nil if it is not known to the new writer.
    ///   - change: what else is changed in the record.
    /// - Returns: the body as it is then; nil if its bytes are lost, or may be.
    func takeOver(
        _ key: [UInt8], _ partial: Partial, token: StagingToken, total: Int64?,
        _ change: (inout EntryRecord) throws -> Void
    ) throws -> Partial? {
        guard var progress = partial.record.progress, !state.isSuspect(epoch: partial.head.epoch) else { return nil }
        // What a dead writer left, and no sweep has published yet.
        if try FileSystem.status(Layout.blob(files.name(of: partial.head.digest)), in: files.blobs) == nil {
            try files.publish(partial.head)
        }
        guard let status = try FileSystem.status(Layout.blob(files.name(of: partial.head.digest)), in: files.blobs),
            status.size >= files.leastFileLength(progress.ranges.end)
        else { return nil }
        progress.total = progress.total ?? total
        var new = partial
        if files.cipher != nil {
            new.earlier = progress.ranges
            // The others are written again, once they are full.
            progress.ranges = BodySeal.fullChunks(progress.ranges, total: progress.total)
        }
        new.head.token = token
        new.head.length = UInt64(progress.length)
        if files.cipher != nil { new.head.storedLength = UInt64(progress.ranges.end) }
        new.head.epoch = state.epoch
        new.head.allocated = UInt64(
            Allocation.charge(status, files.cipher == nil ? progress.ranges : BodySeal.places(of: new.left)))
        try blobs.rename(partial.record.blob, partial.head, new.head)
        state.logicalBytes = state.logicalBytes &- partial.record.length &+ new.head.length
        try update(key) { record in
            record.progress = progress
            record.length = new.head.length
            record.stamp = takeStamp()
            record.accessed = max(record.accessed, now.microseconds)
            try change(&record)
        }
        new.record = try record(key) ?? partial.record
        return new
    }

    /// Notes how far a body in progress has come.
    /// - Parameters:
    ///   - charge: what its file is charged with now.
    ///   - isPublished: true if its writer leaves it.
    ///   - change: what else is changed in the record.
    /// - Returns: the bytes that the index counts from now on and this process no longer reserves.
    func advance(
        _ key: [UInt8], _ partial: Partial, _ progress: EntryRecord.Progress, charge: Int64, isPublished: Bool,
        _ change: (inout EntryRecord) throws -> Void
    ) throws -> Int64 {
        let transferred = charge - partial.head.allocated.asBytes
        var head = partial.head
        head.length = UInt64(progress.length)
        head.storedLength = UInt64(progress.ranges.end)
        head.allocated = UInt64(max(0, charge))
        // Its bytes of now are on disk when this epoch is synced, not before.
        head.epoch = state.epoch
        try blobs.advance(
            partial.record.blob, partial.head, head, transferred: transferred, isPublished: isPublished)
        state.logicalBytes = state.logicalBytes &- partial.record.length &+ head.length
        try update(key) { record in
            record.progress = progress
            record.length = head.length
            record.accessed = max(record.accessed, now.microseconds)
            record.stamp = takeStamp()
            try change(&record)
        }
        return transferred
    }

    /// Makes a body in progress a complete one.
    /// - Parameters:
    ///   - put: the entry that it becomes: its body is the file, or the bytes where those are to be in the index.
    ///   - charge: what its file is charged with.
    /// - Returns: the bytes that this process no longer reserves; nil if its file was removed by someone else.
    func complete(_ key: [UInt8], _ partial: Partial, charge: Int64, as put: (_ reserved: Int64) -> PendingPut) throws
        -> Int64?
    {
        let (head, transferred) = (partial.head, charge - partial.head.allocated.asBytes)
        // A commit that failed may have brought it back to where it belongs without a writer.
        if try FileSystem.status(head.token.name, in: files.staging) == nil {
            guard
                try FileSystem.rename(
                    Layout.blob(files.name(of: head.digest)), in: files.blobs, to: head.token.name, in: files.staging)
            else { return nil }
        }
        try blobs.detach(partial.record.blob, head)
        let put = put(transferred)
        try self.put(put)
        if !blobs.newFiles.contains(where: { $0.token == head.token }) {
            var dead = head
            dead.allocated = UInt64(max(0, charge))
            blobs.discard(dead, transferred: transferred)
        }
        return transferred
    }
}
