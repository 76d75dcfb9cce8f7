import LMDB

extension Engine {
    /// The size of the store, as of the last commit; see `Store.statistics()`.
    func statistics() throws -> Statistics {
        writing?.reaper.drain()
        return try read { transaction in
            let state = try index.state(transaction)
            // A staged file that is committed and not yet renamed is counted in the index already.
            var grown: Int64 = 0
            let staged = try files.allocated(in: files.staging, .staging) { name in
                guard let token = StagingToken(name: name),
                    try transaction.get(index.unpublished, token.indexKey) != nil
                else { return false }
                grown += try growth(token, transaction)
                return true
            }
            var transient = staged + grown
            // So is a file whose removal was not committed, or is about to be.
            transient += try files.allocated(in: files.trash, .trash) { name in
                guard let digest = Layout.parseTrash(name).flatMap({ files.digest(ofFile: $0.name.hexadecimal) }) else {
                    return false
                }
                return try isCounted(digest, transaction)
            }
            transient += try files.allocated(in: files.quarantine, .quarantine)
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
                compressionGain: ByteCount(Int64(clamping: state.compressionGain)),
                allocatedBytes: ByteCount(data + lock + small + transient + state.fileAllocated.asBytes),
                indexBytes: ByteCount(data),
                liveIndexBytes: ByteCount(Int64(live * index.environment.pageSize)),
                fileCount: Int(clamping: state.fileCount),
                transientBytes: ByteCount(transient),
                budget: state.budget,
                displacedCount: Int(clamping: writing?.log.count ?? 0), failures: context.health.failures,
                memoryEntryCount: inMemory.count, memoryBytes: ByteCount(inMemory.bytes),
                memoryTier: tier.statistics, counters: context.counterFile.totals)
        }
    }

    /// By how much the file of a body in progress is larger than the index counts, in bytes.
    private func growth(_ token: StagingToken, _ transaction: ReadTransaction) throws -> Int64 {
        guard let head = try index.unpublished(token, transaction)?.head, head.encoding == .partial,
            let status = try files.blobStatus(head)
        else { return 0 }
        return status.allocated - head.allocated.asBytes
    }

    /// True if the index has a body file of that digest, which is neither published nor staged.
    private func isCounted(_ digest: Digest, _ transaction: ReadTransaction) throws -> Bool {
        guard let head = try index.blob(digest, transaction)?.head, head.location == .file, !head.isDamaged else {
            return false
        }
        return try files.blobStatus(head) == nil
    }
}
