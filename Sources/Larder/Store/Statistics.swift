import LMDB

/// The size of a store, exact, and counted by nothing: every figure is kept as the store changes.
public struct Statistics: Sendable, Hashable {
    /// Number of entries on disk.
    public var entryCount: Int
    /// Number of different bodies.
    public var blobCount: Int
    /// Sum over entries of their body's length.
    public var logicalBytes: ByteCount
    /// Sum over different bodies of the bytes stored for them.
    public var storedBytes: ByteCount
    /// `st_blocks` x 512 summed over every regular file of the store's directory.
    public var allocatedBytes: ByteCount
    /// The part of it that is the index, inline bodies included.
    public var indexBytes: ByteCount
    /// Pages of the index in use; the rest of `indexBytes` is room that puts reuse and `collect(compact:)` gives back.
    public var liveIndexBytes: ByteCount
    /// Number of bodies in files of their own.
    public var fileCount: Int
    /// Bytes in files being written, waiting to be removed, or in quarantine.
    public var transientBytes: ByteCount
    /// The limits in force.
    public var budget: Budget
    /// Entries that this process displaced since it opened the store, those of policy `memoryOnly` included.
    public var displacedCount: Int
    /// Work of this process on the store that fails at the moment; empty where all is well.
    public var failures: [StandingFailure] = []
    /// Number of entries of policy `memoryOnly` in this process; no other figure includes them.
    public var memoryEntryCount: Int
    /// Memory that they take, of `Configuration.memoryLimit`.
    public var memoryBytes: ByteCount

    /// Bytes that sharing bodies saves: `logicalBytes` less `storedBytes`.
    public var savedBytes: ByteCount { ByteCount(logicalBytes.bytes - storedBytes.bytes) }
}

extension Store {
    /// The size of the store. Commits first what this process has pending, so that the figures are exact. O(1) in the
    /// entries; the few files in `staging/`, `trash/` and `quarantine/` are looked at.
    /// - Throws: `closed`, `io`, `readersFull`.
    public func statistics() throws -> Statistics {
        try requireOpen()
        engine.commitPending()
        return try engine.statistics()
    }

    /// The size of the store, exact.
    ///
    /// Meaning and errors are those of the synchronous form. Waiting holds no thread of the cooperative pool.
    public func statistics() async throws -> Statistics {
        try requireOpen()
        await engine.commitPending()
        let engine = engine
        return try await IOPool.shared.run { try engine.statistics() }
    }
}

extension Engine {
    /// True if the index has a body file of that digest, which is neither published nor staged.
    private func isCounted(_ digest: Digest, _ transaction: ReadTransaction) throws -> Bool {
        guard
            let row = try digest.withBytes({ try transaction.get(index.digests, $0) }).flatMap(DigestRecord.init),
            let head = try transaction.get(index.blobs, row.blob).flatMap(BlobRecord.init),
            head.location == .file, !head.isDamaged
        else { return false }
        return try files.blobStatus(head) == nil
    }

    func statistics() throws -> Statistics {
        if let writing { writing.reaper.drain() }
        return try read { transaction in
            let state = try index.state(transaction)
            // A staged file that is committed and not yet renamed is counted in the index already.
            let staged = try files.allocated(in: files.staging) { name in
                guard let token = StagingToken(name: name) else { return false }
                return try transaction.get(index.unpublished, token.indexKey) != nil
            }
            var transient = staged
            // So is a file whose removal was not committed, or is about to be.
            transient += try files.allocated(in: files.trash) { name in
                guard let digest = Layout.parseTrash(name)?.digest else { return false }
                return try isCounted(digest, transaction)
            }
            transient += try files.allocated(in: files.quarantine)
            let data = try FileSystem.status(Layout.data, in: files.index)?.allocated ?? 0
            let lock = try FileSystem.status(Layout.lock, in: files.index)?.allocated ?? 0
            let small = try files.smallFilesAllocated()
            let inMemory = memory.size
            let live = try index.environment.usedPages(in: transaction, databases: index.databases)
            return Statistics(
                entryCount: Int(clamping: state.entryCount),
                blobCount: Int(clamping: state.blobCount),
                logicalBytes: ByteCount(Int64(clamping: state.logicalBytes)),
                storedBytes: ByteCount(Int64(clamping: state.storedBytes)),
                allocatedBytes: ByteCount(data + lock + small + transient + state.fileAllocated.asBytes),
                indexBytes: ByteCount(data),
                liveIndexBytes: ByteCount(Int64(live * index.environment.pageSize)),
                fileCount: Int(clamping: state.fileCount),
                transientBytes: ByteCount(transient),
                budget: state.budget,
                displacedCount: Int(clamping: displacedCount.load(ordering: .relaxed)), failures: health.failures,
                memoryEntryCount: inMemory.count, memoryBytes: ByteCount(inMemory.bytes))
        }
    }
}
