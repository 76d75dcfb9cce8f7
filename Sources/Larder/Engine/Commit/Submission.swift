import LMDB

/// Hands changes to the committer, and waits for their commits: puts, removals, batches of operations. Its state is the
/// pending set; safe from any thread.
final class Submission: EnginePart {
    let context: EngineContext
    private let pending: PendingSet
    private let memory: MemoryTable
    private let touches: TouchBuffer
    private let staged: StagedFiles

    init(
        context: EngineContext, pending: PendingSet, memory: MemoryTable, touches: TouchBuffer, staged: StagedFiles
    ) {
        self.context = context
        self.pending = pending
        self.memory = memory
        self.touches = touches
        self.staged = staged
    }

    // MARK: Puts

    /// Queues a put, which readers of this process see at once, and waits for its commit where it is durable.
    func put(_ put: PendingPut) throws {
        let generation = try submit(put, mayWait: true) ?? 0
        guard put.isDurable else { return }
        reach("wait.commit")
        pending.wait(for: generation)
        try requireCommitted(generation, put)
    }

    /// As the synchronous form, without holding a thread.
    func put(_ put: PendingPut) async throws {
        let generation: UInt64
        if let immediate = try submit(put, mayWait: false) {
            generation = immediate
        } else {
            generation = try await IOPool.shared.run { [self] in try submit(put, mayWait: true) ?? 0 }
        }
        guard put.isDurable else { return }
        await pending.wait(for: generation)
        try requireCommitted(generation, put)
    }

    /// Queues a put that is not durable. False if the batch is full.
    func putAtOnce(_ put: PendingPut) throws -> Bool { try submit(put, mayWait: false) != nil }

    /// The generation of the batch that has it; nil if it would have had to wait and may not.
    private func submit(_ put: PendingPut, mayWait: Bool) throws -> UInt64? {
        if mayWait { reach("wait.batch") }
        do {
            let memory = memory
            // Together: another thread's put of the key to memory comes before or after both.
            guard
                let added = try pending.add(
                    put, mayWait: mayWait,
                    alongside: { if let old = memory.remove(put.key) { put.inherit(from: old) } })
            else { return nil }
            if let file = added.replaced?.stagedFile { staged.discardLater(file) }
            noteStored(put)
            return added.generation
        } catch {
            if let file = put.stagedFile { staged.discardLater(file) }
            throw error
        }
    }

    /// Throws why a change whose batch is over is not in the store.
    private func requireCommitted(_ generation: UInt64, _ change: PendingChange) throws {
        guard pending.completedGeneration >= generation else {
            throw LarderError(
                .closed, "the store at \(path) was closed before \(change.key) was committed", path: path,
                key: change.key)
        }
        if let failure = change.failure { throw failure }
    }

    // MARK: Removals

    /// Queues a removal, which readers of this process see at once, and waits for its commit where it is durable.
    /// - Returns: true if there was an entry.
    func remove(_ removal: PendingRemoval) throws -> Bool {
        let generation = try submit(removal, mayWait: true) ?? 0
        if removal.isDurable {
            reach("wait.commit")
            pending.wait(for: generation)
            try requireCommitted(generation, removal)
        }
        return removal.hasExisted
    }

    /// As the synchronous form, without holding a thread.
    func remove(_ removal: PendingRemoval) async throws -> Bool {
        let generation: UInt64
        if let immediate = try submit(removal, mayWait: false) {
            generation = immediate
        } else {
            generation = try await IOPool.shared.run { [self] in try submit(removal, mayWait: true) ?? 0 }
        }
        if removal.isDurable {
            await pending.wait(for: generation)
            try requireCommitted(generation, removal)
        }
        return removal.hasExisted
    }

    /// The generation of the batch that has it; nil if it would have had to wait and may not.
    private func submit(_ removal: PendingRemoval, mayWait: Bool) throws -> UInt64? {
        let memory = memory
        let generation = try submit(removal, mayWait: mayWait) {
            if memory.remove(removal.key, where: { removal.covers($0.version) }) != nil { removal.hasExisted = true }
        }
        if generation != nil, removal.hasExisted { noteRemoved(removal.key) }
        return generation
    }

    /// - Parameter alongside: runs together with it, under the lock of the pending set; see `PendingSet.add`.
    func submit(_ removal: PendingRemoval, mayWait: Bool, alongside: () -> Void) throws -> UInt64? {
        if mayWait { reach("wait.batch") }
        guard let added = try pending.add(removal, mayWait: mayWait, alongside: alongside) else { return nil }
        if let file = added.replaced?.stagedFile { staged.discardLater(file) }
        return added.generation
    }

    // MARK: Jobs

    /// Commits a job together with what else is pending, and waits for it. It concerns no entry in memory.
    /// - Throws: `closed`, `readOnly`, or the error that prevented the commit: then no part of the job is in the store.
    func run(_ job: PendingJob) throws {
        if case .added(let generation) = try queue(job, mayWait: true) { try wait(for: generation, job) }
    }

    /// Adds a job to the open batch; see `PendingSet.add`.
    func queue(
        _ job: PendingJob, mayWait: Bool, memoryKeys: some Collection<Key> = [], alongside: () -> Bool = { true }
    ) throws -> PendingSet.Admission {
        if mayWait { reach("wait.batch") }
        do {
            return try pending.add(job, mayWait: mayWait, memoryKeys: memoryKeys, alongside: alongside)
        } catch {
            for file in job.stagedFiles { staged.discardLater(file) }
            throw error
        }
    }

    /// Adds a job that no caller waits for to the batch of what is pending, which is written when it is due.
    func queue(_ job: PendingJob) throws {
        _ = try pending.add(job, isPatient: true)
    }

    /// Waits for the commit of a job. Nothing to wait for: generation 0.
    func wait(for generation: UInt64, _ job: PendingJob) throws {
        guard generation > 0 else { return }
        reach("wait.commit")
        pending.wait(for: generation)
        try requireCommitted(generation, job)
    }

    /// As the synchronous form, without holding a thread.
    func wait(for generation: UInt64, _ job: PendingJob) async throws {
        guard generation > 0 else { return }
        await pending.wait(for: generation)
        try requireCommitted(generation, job)
    }

    private func requireCommitted(_ generation: UInt64, _ job: PendingJob) throws {
        if pending.completedGeneration < generation {
            throw LarderError(.closed, "the store at \(path) was closed before the batch was committed", path: path)
        }
        if let failure = job.failure { throw failure }
    }

    /// The index keys of the entries that have some of this content now. Looks at every entry, if there may be any.
    func keys(of digests: Set<Digest>) throws -> [Digest: [[UInt8]]] {
        if digests.isEmpty { return [:] }
        flush()
        return try Yielding.run(files) { poll in
            try readLong { transaction in
                var blobs: [UInt64: Digest] = [:]
                for digest in digests {
                    if let row = try index.shared(digest, transaction) { blobs[row.blob] = digest }
                }
                var keys: [Digest: [[UInt8]]] = [:]
                if !blobs.isEmpty {
                    try index.forEachEntry(transaction) { key, record in
                        try poll()
                        if let digest = blobs[record.blob] { keys[digest, default: []].append(Array(key)) }
                    }
                }
                if try index.state(transaction).strayCount > 0 {
                    try index.walkEmbedded(digests, transaction, poll: poll) { key, digest, _ in
                        keys[digest, default: []].append(Array(key))
                        return true
                    }
                } else {
                    for digest in digests where try index.embedded(digest, transaction) != nil {
                        keys[digest, default: []].append(Key(digest).bytes)
                    }
                }
                return keys
            }
        }
    }

    /// Those of some contents that no digest leads to, with their bytes: strays, pending or committed. Before a
    /// transaction, which must not walk over all entries.
    func strays(_ digests: Set<Digest>) throws -> [Digest: [UInt8]] {
        if digests.isEmpty { return [:] }
        let missing = try read { transaction in
            try digests.filter {
                try index.shared($0, transaction) == nil && index.embedded($0, transaction) == nil
            }
        }
        if missing.isEmpty { return [:] }
        // Pending ones first: what is committed meanwhile is in the index then.
        var found = pending.embeddableBodies(missing)
        let rest = missing.subtracting(found.keys)
        guard !rest.isEmpty, try state().strayCount > 0 else { return found }
        try Yielding.run(files) { poll in
            try readLong { transaction in
                try index.walkEmbedded(rest, transaction, poll: poll) {
                    found[$1] = Array($2)
                    return found.count < missing.count
                }
            }
        }
        return found
    }

    // MARK: Everything pending

    /// Commits what this process has pending, so that what follows sees it.
    /// - Parameter includesTouches: whether accesses that were noted count as pending; where they are not looked at, a
    ///   lookup after each hit must not cost a commit.
    func flush(touches includesTouches: Bool = true) {
        reach("wait.commit")
        pending.wait(for: pending.requestFlush(force: includesTouches && touches.isDirty))
    }

    /// As the synchronous form, without holding a thread.
    func flush(touches includesTouches: Bool = true) async {
        await pending.wait(for: pending.requestFlush(force: includesTouches && touches.isDirty))
    }

    /// Throws what the relaxed puts and removals of `owner` could not, once. For its own flush and close only: a
    /// listing in between must not take the failure away from them.
    func throwFailure(of owner: UInt32) throws {
        if let failure = pending.takeFailure(of: owner) { throw failure }
    }
}
