import LMDB

extension Engine {
    /// Commits a job together with what else is pending, and waits for it.
    /// - Throws: `closed`, `readOnly`, or the error that prevented the commit: then no part of the job is in the store.
    func run(_ job: PendingJob) throws {
        guard let writing else { throw readOnly() }
        reach("wait.batch")
        let generation = try submit(job, writing, mayWait: true) ?? 0
        reach("wait.commit")
        writing.pending.wait(for: generation)
        try requireCommitted(generation, job, writing)
    }

    /// As the synchronous form, without holding a thread.
    func run(_ job: PendingJob) async throws {
        guard let writing else { throw readOnly() }
        let generation: UInt64
        if let immediate = try submit(job, writing, mayWait: false) {
            generation = immediate
        } else {
            generation = try await IOPool.shared.run { [self] in try submit(job, writing, mayWait: true) ?? 0 }
        }
        await writing.pending.wait(for: generation)
        try requireCommitted(generation, job, writing)
    }

    private func submit(_ job: PendingJob, _ writing: Writing, mayWait: Bool) throws -> UInt64? {
        do {
            return try writing.pending.add(job, mayWait: mayWait)
        } catch {
            for file in job.stagedFiles { discard(file, writing) }
            throw error
        }
    }

    private func requireCommitted(_ generation: UInt64, _ job: PendingJob, _ writing: Writing) throws {
        if writing.pending.completedGeneration < generation {
            throw LarderError(.closed, "the store at \(path) was closed before the batch was committed", path: path)
        }
        if let failure = job.failure { throw failure }
    }

    /// The index keys of the entries that have some of this content now. Looks at every entry, if there is such
    /// content.
    func keys(of digests: Set<Digest>) throws -> [Digest: [[UInt8]]] {
        if digests.isEmpty { return [:] }
        commitPending()
        return try readLong { transaction in
            var blobs: [UInt64: Digest] = [:]
            for digest in digests {
                let raw = try digest.withBytes { try transaction.get(index.digests, $0) }
                if let row = raw.flatMap(DigestRecord.init) { blobs[row.blob] = digest }
            }
            if blobs.isEmpty { return [:] }
            var keys: [Digest: [[UInt8]]] = [:]
            try index.forEachEntry(transaction) { key, record in
                if let digest = blobs[record.blob] { keys[digest, default: []].append(Array(key)) }
            }
            return keys
        }
    }

    /// True if a living instance of another process computes the value of a key.
    func isClaimedElsewhere(_ key: Key, _ version: UInt16?) throws -> Bool {
        try read { try isClaimedElsewhere(key.bytes, version, $0) }
    }

    func isClaimedElsewhere(_ subject: [UInt8], _ version: UInt16?, _ transaction: ReadTransaction) throws -> Bool {
        let prefix = Index.leasePrefix(.computation, subject, version: version)
        let now = clock.now().microseconds
        let own = writing?.lock.instance
        return try transaction.withCursor(index.leases) { cursor in
            var pair = try cursor.seek(prefix)
            while let (row, value) = pair, row.hasPrefix(prefix) {
                if value.count == 16, value.field(0, as: Int64.self) > now, value.field(8, as: UInt64.self) != own,
                    try InstanceLock.isAlive(value.field(8), staging: files.staging)
                {
                    return true
                }
                pair = try cursor.next()
            }
            return false
        }
    }
}
