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
    /// - Parameter keys: of entries that stay, beside those that are pinned and leased.
    private func reserve(
        _ put: PendingPut, keeping keys: some Collection<Key> = [], mayEvict: Bool = true
    ) throws {
        let evicted = try table.reserve(for: put, at: clock.now()) { [leases] candidates in
            mayEvict ? try leases.kept(candidates).union(keys) : Set(candidates.map(\.key))
        }
        log.report(evicted: evicted)
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

    // MARK: Jobs

    /// Does what a job is to do to entries in memory, commits the rest of it, and waits for that.
    ///
    /// What it does to memory is planned first, and done under the lock of the pending set when the job is queued, if
    /// the entries are the same until then. From then on the job claims its keys: nothing else changes them in memory,
    /// and what it puts to disk leaves memory when it is committed (`PendingSet.publish`).
    func run(_ job: PendingJob) throws {
        var round = 1
        while true {
            let isLast = round >= Self.rounds
            let plan = try isLast ? MemoryPlan() : plan(job)
            switch try queue(job, plan, mayWait: true, isLast: isLast) {
            case .added(let generation): return try submission.wait(for: generation, job)
            case .claimed(let generation): pending.wait(for: generation)
            case .stale: round += 1
            case .full: continue
            }
        }
    }

    /// As the synchronous form, without holding a thread.
    func run(_ job: PendingJob) async throws {
        var mayWait = job.isBatch && !table.isEmpty
        var round = 1
        while true {
            let isLast = round >= Self.rounds
            let plan: MemoryPlan
            if isLast {
                plan = MemoryPlan()
            } else {
                plan = try await mayWait ? IOPool.shared.run { [self] in try self.plan(job) } : self.plan(job)
            }
            let admission =
                try await mayWait
                ? IOPool.shared.run { [self] in try queue(job, plan, mayWait: true, isLast: isLast) }
                : queue(job, plan, mayWait: false, isLast: isLast)
            switch admission {
            case .added(let generation): return try await submission.wait(for: generation, job)
            case .claimed(let generation): await pending.wait(for: generation)
            case .stale: round += 1
            case .full: mayWait = true
            }
        }
    }

    /// How often a job is planned, at most, while others change its entries. The last time it is planned under the lock
    /// of the pending set, where they cannot.
    private static let rounds = 4

    private func queue(
        _ job: PendingJob, _ planned: MemoryPlan, mayWait: Bool, isLast: Bool
    ) throws -> PendingSet.Admission {
        var plan = planned
        var isDone = false
        defer { if !isDone { cancel(plan) } }
        let carryOut = { [self] in
            // Without eviction, which reads the index, so that it does not throw.
            if isLast, let locked = try? self.plan(job, mayEvict: false) { plan = locked }
            return plan.carryOut(job, in: table)
        }
        let isOver = !isLast && !job.isBatch && plan.isOver
        let admission =
            if isOver {
                pending.unlessClaimed(plan.keys, carryOut)
            } else {
                try submission.queue(
                    job, mayWait: mayWait, memoryKeys: isLast ? job.changes.compactMap(\.key) : Array(plan.keys),
                    alongside: carryOut)
            }
        guard case .added = admission else { return admission }
        isDone = true
        if isOver { job.endIfOver() }
        for key in plan.removedKeys { noteRemoved(key) }
        counters.add(.removed, UInt64(plan.removedContent))
        for file in plan.unneeded { staged.discardLater(file) }
        return admission
    }

    /// Gives back the memory that was reserved for a plan that was not carried out.
    private func cancel(_ plan: MemoryPlan) {
        for put in plan.reserved.values { table.cancel(put) }
    }

    /// - Parameter mayEvict: false refuses what needs the room of other entries.
    private func plan(_ job: PendingJob, mayEvict: Bool = true) throws -> MemoryPlan {
        var plan = MemoryPlan()
        if table.isEmpty { return plan }
        do {
            for change in job.changes {
                // Changes of keys that it puts to disk come after those puts.
                if let key = change.key, plan.stored.contains(key) {
                    plan.left.append(change)
                    continue
                }
                let left = try left(of: change, &plan, mayEvict)
                if case .put(let put, _) = left { plan.stored.insert(put.key) }
                if case .over = left, let file = change.stagedFile { plan.unneeded.append(file) }
                plan.left.append(left)
            }
        } catch {
            cancel(plan)
            for file in job.stagedFiles { staged.discardLater(file) }
            throw error
        }
        return plan
    }

    /// What is left of a change for the disk, or its result.
    private func left(of change: Change, _ plan: inout MemoryPlan, _ mayEvict: Bool) throws -> Change {
        switch change {
        case .put(let put, let condition):
            guard let old = plan.entry(put.key, in: table) else { return change }
            var left = condition
            switch condition {
            case .none: break
            case .vacant: if put.overwrites(old.version), old.expires > clock.now() { return .over(.present) }
            case .unchanged:
                guard put.overwrites(old.version) else { return .over(.absent) }
                guard old.meets(condition) else { return .over(.changed) }
                left = .none
            }
            plan.heirs.append((put, old))
            return .put(put, left)
        case .alter(let alteration):
            guard let old = plan.entry(alteration.key, in: table) else { return change }
            return .over(try alter(old, alteration, &plan, mayEvict))
        case .remove(let removal, let condition):
            guard let old = plan.entry(removal.key, in: table) else { return change }
            guard removal.covers(old.version) else { return .over(.absent) }
            guard old.meets(condition) else { return .over(.changed) }
            remove(removal.key, &plan)
            plan.removedKeys.append(removal.key)
            return .over(.done)
        case .removeContent(let digest, let keys, _):
            var count = 0
            for put in table.all where put.digest == digest && !plan.stored.contains(put.key) {
                guard plan.entry(put.key, in: table)?.digest == digest else { continue }
                remove(put.key, &plan)
                count += 1
            }
            plan.removedContent += count
            return .removeContent(digest, keys, fromMemory: count)
        case .partial(let step):
            if case .begin(let put) = step.kind, let old = plan.entry(put.key, in: table) {
                plan.heirs.append((put, old))
            }
            return change
        case .lease, .endLease, .over: return change
        }
    }

    private func remove(_ key: Key, _ plan: inout MemoryPlan) {
        plan.changed.updateValue(nil, forKey: key)
        if let earlier = plan.reserved.removeValue(forKey: key) { table.cancel(earlier) }
    }

    private func alter(
        _ old: PendingPut, _ alteration: Change.Alteration, _ plan: inout MemoryPlan, _ mayEvict: Bool
    ) throws -> WriteResult {
        guard alteration.sees(old.version) else { return .absent }
        if let refusal = alteration.refusalInMemory { return .failed(refusal) }
        guard old.meets(alteration.condition) else { return .changed }
        let new = old.copy(alteration, at: clock.advance(), uptime: uptime.uptime())
        if new.memory > plan.seen[old.key]?.memory ?? 0 {
            do {
                try reserve(new, keeping: plan.seen.keys, mayEvict: mayEvict)
            } catch let error as LarderError where error.code == .tooLarge || error.code == .noSpace {
                return .failed(error)
            }
            if let earlier = plan.reserved.updateValue(new, forKey: old.key) { table.cancel(earlier) }
        } else if let earlier = plan.reserved.removeValue(forKey: old.key) {
            table.cancel(earlier)
        }
        plan.changed[old.key] = new
        return .done
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
    /// True unless another body or other metadata are expected.
    fileprivate func meets(_ condition: Change.Condition) -> Bool {
        guard case .unchanged(let expected) = condition else { return true }
        return options.metadata == expected.metadata && digest == expected.digest
    }

    /// The entry with a change that can be made in memory.
    fileprivate func copy(_ change: Change.Alteration, at now: Timestamp, uptime: UInt64) -> PendingPut {
        copy(
            expires: change.fields.lifetime.map { change.configuration.expiry($0, at: now) },
            isPinned: change.fields.isPinned, metadata: change.fields.metadata,
            use: change.fields.isAccess ? (uptime: uptime, moment: now) : nil)
    }
}
