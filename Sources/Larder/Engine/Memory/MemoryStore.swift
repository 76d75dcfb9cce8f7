/// The entries of policy `memoryOnly`: how they are put, and what batches do to them. Its state is the table.
///
/// A key is in memory or on disk. A put to either side removes the key from the other, under the lock of the pending
/// set: of two puts at the same time one is the later one. Readers look into memory first.
final class MemoryStore: EnginePart {
    let context: EngineContext
    private let table: MemoryTable
    private let pending: PendingSet
    private let submission: Submission
    private let staged: StagedFiles
    private let leases: LeaseBook
    private let descriptions: Descriptions
    private let log: DisplacementLog

    init(
        context: EngineContext, table: MemoryTable, pending: PendingSet, submission: Submission, staged: StagedFiles,
        leases: LeaseBook, descriptions: Descriptions, log: DisplacementLog
    ) {
        self.context = context
        self.table = table
        self.pending = pending
        self.submission = submission
        self.staged = staged
        self.leases = leases
        self.descriptions = descriptions
        self.log = log
    }

    // MARK: Puts

    /// Stores an entry, and queues the removal of what is on disk under its key. Returns false if the removal would
    /// have had to wait and may not.
    func put(_ put: PendingPut, mayWait: Bool) throws -> Bool {
        try reserve(put)
        do {
            if let old = try legacy(of: put) { put.inherit(old) }
            let removal = PendingRemoval(
                key: put.key, owner: put.owner, version: nil, isDurable: false, uptime: uptime.uptime())
            let table = table
            let generation = try submission.submit(removal, mayWait: mayWait, alongside: { table.insert(put) })
            if generation == nil {
                table.cancel(put)
                return false
            }
        } catch {
            table.cancel(put)
            throw error
        }
        noteStored(put)
        return true
    }

    /// Takes the memory that an entry needs. Throws `tooLarge`, `noSpace`.
    private func reserve(_ put: PendingPut) throws {
        log.report(evicted: try table.reserve(for: put, at: clock.now(), kept: leases.kept))
    }

    /// What `put` takes over from an entry on disk, or on its way there, that it replaces.
    private func legacy(of put: PendingPut) throws -> PendingPut.Inheritance? {
        switch pending.lookup(put.key, use: nil) {
        case .removed: return nil
        case .put(let earlier):
            guard put.overwrites(earlier.version) else { return nil }
            return try descriptions.inheritance(of: earlier)
        case nil: return try descriptions.inheritance(fromIndex: put)
        }
    }

    // MARK: Batches

    /// Does what a job is to do to entries in memory, at once: those operations are over then. What it puts to disk
    /// leaves memory when the job is committed (`PendingSet.publish`).
    func apply(_ job: PendingJob) {
        if table.isEmpty { return }
        // Operations on keys that it puts to disk come after those puts.
        var stored: Set<Key> = []
        for (place, operation) in job.operations.enumerated() {
            if let key = operation.key, stored.contains(key) { continue }
            do {
                if let result = try apply(operation, at: place, job) {
                    if case .staged(let file)? = operation.put?.body { staged.discardLater(file) }
                    job.end(place, result)
                } else if let put = operation.put {
                    stored.insert(put.key)
                }
            } catch {
                job.end(place, .failed(translate(error)))
            }
        }
    }

    /// The result of an operation; nil if it is for the disk.
    private func apply(
        _ operation: PendingJob.Operation, at place: Int, _ job: PendingJob
    ) throws -> WriteResult? {
        switch operation {
        case .put(let put, let unlessPresent), .putContent(let put, let unlessPresent, nil):
            guard let old = table.lookup(put.key, use: nil) else { return nil }
            if unlessPresent, job.sees(old.version), old.expires > clock.now() { return .present }
            put.inherit(from: old)
            return nil
        case .replace(let put, let expected), .putContent(let put, _, let expected?):
            guard let old = table.lookup(put.key, use: nil) else { return nil }
            guard job.sees(old.version) else { return .absent }
            guard old.isUnchanged(expected), table.remove(put.key, where: { $0 === old }) != nil else {
                return .changed
            }
            job.displaced.append(old)
            put.inherit(from: old)
            job.replace(place, by: operation.withoutExpectation)
            return nil
        case .change(let key, let change, let expected): return try self.change(key, change, expected, job)
        case .remove(let key, let expected): return remove(key, expected, job)
        case .removeContent(let digest, _):
            let count = table.remove { $0.digest == digest }
            counters.add(.removed, UInt64(count))
            job.hasRemovedContent = job.hasRemovedContent || count > 0
            return nil
        case .over, .timedLease, .heldLease, .claim, .endLease, .partial: return nil
        }
    }

    private func change(
        _ key: Key, _ change: EntryChange, _ expected: WriteBatch.Expected?, _ job: PendingJob
    ) throws -> WriteResult? {
        while let old = table.lookup(key, use: nil) {
            guard job.sees(old.version) else { return .absent }
            if let refusal = change.refusalInMemory(key) { return .failed(refusal) }
            guard old.isUnchanged(expected) else { return .changed }
            let new = old.copy(change, job.configuration, at: clock.advance(), uptime: uptime.uptime())
            try reserve(new)
            if table.replace(old, by: new) { return .done }
        }
        return nil
    }

    private func remove(_ key: Key, _ expected: WriteBatch.Expected?, _ job: PendingJob) -> WriteResult? {
        while let old = table.lookup(key, use: nil) {
            guard job.sees(old.version) else { return .absent }
            guard old.isUnchanged(expected) else { return .changed }
            if table.remove(key, where: { $0 === old }) != nil {
                noteRemoved(key)
                return .done
            }
        }
        return nil
    }

    /// Puts an entry back that a job was to replace, if the job has not, and nothing else has its place.
    func restore(_ job: PendingJob) {
        for old in job.displaced where !job.isCommitted || !job.storedKeys.contains(old.key) {
            guard pending.lookup(old.key, use: nil) == nil else { continue }
            let isGone = try? read { try index.entry(old.indexKey, $0) == nil }
            if isGone ?? false { _ = try? put(old, mayWait: true) }
        }
    }

    // MARK: Selections

    /// Removes the entries that a selection selects; returns how many.
    func remove(_ filter: EntryFilter) throws -> Int {
        try descriptions.inMemory(filter).count { put in
            if table.remove(put.key, where: { $0 === put }) == nil { return false }
            noteRemoved(put.key)
            return true
        }
    }
}

extension EntryChange {
    /// What a change of an entry in memory cannot do; nil if it can be made.
    fileprivate func refusalInMemory(_ key: Key) -> LarderError? {
        if tags == nil, storagePolicy == nil { return nil }
        return LarderError(
            .unsupported, "\(key) is in memory only: put it again with other tags or another policy", key: key)
    }
}

extension PendingPut {
    /// True if the entry has the body and the metadata that are expected.
    fileprivate func isUnchanged(_ expected: WriteBatch.Expected?) -> Bool {
        guard let expected else { return true }
        return options.metadata == expected.metadata && digest == expected.digest
    }

    /// The entry with a change that can be made in memory.
    fileprivate func copy(
        _ change: EntryChange, _ configuration: Configuration, at now: Timestamp, uptime: UInt64
    ) -> PendingPut {
        copy(
            expires: change.lifetime.map { configuration.expiry($0, at: now) }, isPinned: change.isPinned,
            metadata: change.metadata, use: change.isAccess ? (uptime: uptime, moment: now) : nil)
    }
}
