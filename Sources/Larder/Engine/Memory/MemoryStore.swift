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

    /// Stores an entry, and queues the removal of what is on disk under its key. Waits only for room for that removal.
    func put(_ put: PendingPut) throws { _ = try self.put(put, mayWait: true) }

    /// As the synchronous form, without holding a thread.
    func put(_ put: PendingPut) async throws {
        if try self.put(put, mayWait: false) { return }
        try await IOPool.shared.run { [self] in _ = try self.put(put, mayWait: true) }
    }

    /// False if it would have had to wait and may not.
    private func put(_ put: PendingPut, mayWait: Bool) throws -> Bool {
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

    /// Does what a job is to do to entries in memory, at once: those changes are over then. What it puts to disk leaves
    /// memory when the job is committed (`PendingSet.publish`).
    func apply(_ job: PendingJob) {
        if table.isEmpty { return }
        // Changes of keys that it puts to disk come after those puts.
        var stored: Set<Key> = []
        for (place, change) in job.changes.enumerated() {
            if let key = change.key, stored.contains(key) { continue }
            let left: Change
            do {
                left = try apply(change, of: job)
            } catch {
                left = .over(.failed(translate(error)))
            }
            job.replace(place, by: left)
            if case .put(let put, _) = left { stored.insert(put.key) }
            if case .over = left, let file = change.stagedFile { staged.discardLater(file) }
        }
    }

    /// Makes a change as far as it concerns memory; returns what is left of it.
    private func apply(_ change: Change, of job: PendingJob) throws -> Change {
        switch change {
        case .put(let put, let condition):
            guard let old = table.lookup(put.key, use: nil) else { return change }
            var left = condition
            switch condition {
            case .none: break
            case .vacant: if put.overwrites(old.version), old.expires > clock.now() { return .over(.present) }
            case .unchanged(let expected):
                guard put.overwrites(old.version) else { return .over(.absent) }
                guard old.isStill(expected), table.remove(put.key, where: { $0 === old }) != nil else {
                    return .over(.changed)
                }
                job.replaced.append(old)
                left = .none
            }
            put.inherit(from: old)
            return .put(put, left)
        case .alter(let alteration): return try alter(alteration).map(Change.over) ?? change
        case .remove(let removal, let condition): return remove(removal, condition).map(Change.over) ?? change
        case .removeContent(let digest, let keys, _):
            return .removeContent(digest, keys, fromMemory: table.remove { $0.digest == digest })
        case .lease, .endLease, .partial, .over: return change
        }
    }

    /// Nil: there is no entry in memory.
    private func alter(_ alteration: Change.Alteration) throws -> WriteResult? {
        while let old = table.lookup(alteration.key, use: nil) {
            guard alteration.sees(old.version) else { return .absent }
            if let refusal = alteration.refusalInMemory { return .failed(refusal) }
            guard old.meets(alteration.condition) else { return .changed }
            let new = old.copy(alteration, at: clock.advance(), uptime: uptime.uptime())
            try reserve(new)
            if table.replace(old, by: new) { return .done }
        }
        return nil
    }

    /// Nil: there is no entry in memory.
    private func remove(_ removal: PendingRemoval, _ condition: Change.Condition) -> WriteResult? {
        while let old = table.lookup(removal.key, use: nil) {
            guard removal.covers(old.version) else { return .absent }
            guard old.meets(condition) else { return .changed }
            if table.remove(removal.key, where: { $0 === old }) != nil {
                noteRemoved(removal.key)
                return .done
            }
        }
        return nil
    }

    /// Puts an entry back that a job was to replace, if the job has not, and nothing else has its place.
    func restore(_ job: PendingJob) {
        if job.replaced.isEmpty { return }
        let stored = job.isCommitted ? Set(job.storedKeys) : []
        for old in job.replaced where !stored.contains(old.key) {
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

extension Change.Alteration {
    /// Why it cannot be made in memory; nil if it can.
    fileprivate var refusalInMemory: LarderError? {
        if fields.tags == nil, fields.storagePolicy == nil { return nil }
        return LarderError(
            .unsupported, "\(key) is in memory only: put it again with other tags or another policy", key: key)
    }
}

extension PendingPut {
    /// True if the entry has the body and the metadata that are expected.
    fileprivate func isStill(_ expected: Change.Expected) -> Bool {
        options.metadata == expected.metadata && digest == expected.digest
    }

    fileprivate func meets(_ condition: Change.Condition) -> Bool {
        if case .unchanged(let expected) = condition { isStill(expected) } else { true }
    }

    /// The entry with a change that can be made in memory.
    fileprivate func copy(_ change: Change.Alteration, at now: Timestamp, uptime: UInt64) -> PendingPut {
        copy(
            expires: change.fields.lifetime.map { change.configuration.expiry($0, at: now) },
            isPinned: change.fields.isPinned, metadata: change.fields.metadata,
            use: change.fields.isAccess ? (uptime: uptime, moment: now) : nil)
    }
}
