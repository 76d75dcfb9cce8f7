import LMDB

// What `Store` calls, whichever part does it.

extension Engine {
    typealias Visibility = Lookups.Visibility

    // MARK: Looking up

    @inline(__always)
    func get(_ key: Key, _ visibility: Visibility) throws -> Entry? { try lookups.get(key, visibility) }

    @inline(__always)
    func lookup(_ key: Key, _ visibility: Visibility, mayWait: Bool) throws -> Lookups.Lookup {
        try lookups.lookup(key, visibility, mayWait: mayWait)
    }

    func get(_ keys: [Key], _ visibility: Visibility) throws -> [Entry?] { try lookups.get(keys, visibility) }

    @inline(__always)
    func visitBody(of key: Key, _ visibility: Visibility, _ body: (RawSpan) throws -> Void) throws {
        try lookups.visitBody(of: key, visibility, body)
    }

    @inline(__always)
    func visitInline<R>(
        _ key: Key, _ visibility: Visibility, _ body: (EntryView, UnsafeRawBufferPointer) throws -> R
    ) throws -> R? {
        try lookups.visitInline(key, visibility, body)
    }

    func contains(_ key: Key, _ visibility: Visibility) throws -> Bool { try lookups.contains(key, visibility) }

    func attributes(of key: Key, _ visibility: Visibility) throws -> Attributes? {
        try lookups.attributes(of: key, visibility)
    }

    /// The limits as of the last commit of any process; see `EngineContext.budget`.
    func budget() throws -> Budget { try context.budget() }

    // MARK: Changing

    /// Runs `body` in a write transaction and commits it within the budget; see `RoomMaker.mutate`.
    @discardableResult
    func mutate<R>(_ purpose: Transactions.Purpose, _ body: (Mutation) throws -> R) throws -> R {
        guard let writing else { throw context.readOnly() }
        return try writing.roomMaker.mutate(purpose, body)
    }

    /// Removes those entries of a walk that are still selected; see `Removals.remove`.
    func remove(_ keys: ArraySlice<(key: [UInt8], id: UInt64)>, _ filter: EntryFilter) throws -> Int {
        guard let writing else { throw context.readOnly() }
        return try writing.removals.remove(keys, filter)
    }

    /// Commits what this process has pending, so that what follows sees it; see `Submission.flush`.
    func commitPending(touches: Bool = true) { writing?.submission.flush(touches: touches) }

    /// As the synchronous form, without holding a thread.
    func commitPending(touches: Bool = true) async { await writing?.submission.flush(touches: touches) }

    /// Does what a job is to do to entries in memory, then commits it and waits for it; see `Submission.run`.
    func run(_ job: PendingJob) throws {
        guard let writing else { throw context.readOnly() }
        writing.memoryStore.apply(job)
        defer { writing.memoryStore.restore(job) }
        if !job.endIfOver() { try writing.submission.run(job) }
    }

    /// As the synchronous form, without holding a thread.
    func run(_ job: PendingJob) async throws {
        guard let writing else { throw context.readOnly() }
        writing.memoryStore.apply(job)
        defer { writing.memoryStore.restore(job) }
        if !job.endIfOver() { try await writing.submission.run(job) }
    }

    /// Waits for the commit of a durable put. Nothing to wait for: generation 0.
    @inline(__always)
    func awaitCommit(_ generation: UInt64, _ put: PendingPut) throws {
        try writing?.submission.awaitCommit(generation, put)
    }

    /// As above, without holding a thread.
    func awaitCommit(_ generation: UInt64, _ put: PendingPut) async throws {
        try await writing?.submission.awaitCommit(generation, put)
    }

    /// Throws what the relaxed puts and removals of `owner` could not, once. For its own flush and close only: a
    /// listing in between must not take the failure away from them.
    func throwFailure(of owner: UInt32) throws { try writing?.submission.throwFailure(of: owner) }

    /// Syncs the index if anything was committed since this process did so last.
    func syncIndexIfNeeded() throws(LarderError) { try writing?.transactions.syncIndexIfNeeded() }

    /// True if a living instance of another process computes the value of a key.
    func isClaimedElsewhere(_ key: Key, _ version: UInt16?) throws -> Bool {
        try writing?.leases.isClaimedElsewhere(key, version) ?? false
    }

    /// Removes, in the background, what other application versions left, and do not use any more.
    func reclaimOtherVersions(_ version: UInt16) { writing?.removals.reclaimOtherVersions(version) }

    /// Sets the limits that an open asks for, unless they are set already.
    func adopt(_ budget: Budget) throws {
        guard try state().budget != budget.with(pageSize: index.environment.pageSize) else { return }
        guard let writing else { throw context.readOnly() }
        try writing.roomMaker.set(budget)
    }
}
