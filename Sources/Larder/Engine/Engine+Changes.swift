/// How `Store` changes something: in memory, in the batch, or in a transaction of its own.
extension Engine {
    /// Runs `body` in a write transaction and commits it within the budget; see `RoomMaker.mutate`.
    @discardableResult
    func mutate<R>(_ purpose: Transactions.Purpose, _ body: (Mutation) throws -> R) throws -> R {
        guard let writing else { throw context.readOnly() }
        return try writing.roomMaker.mutate(purpose, body)
    }

    /// Commits what this process has pending, so that what follows sees it; see `Submission.flush`.
    func commitPending(touches: Bool = true) { writing?.submission.flush(touches: touches) }

    /// As the synchronous form, without holding a thread.
    func commitPending(touches: Bool = true) async { await writing?.submission.flush(touches: touches) }

    /// Does what a job is to do in memory, commits the rest and waits for it; see `MemoryStore.run`.
    func run(_ job: PendingJob) throws {
        guard let writing else { throw context.readOnly() }
        try writing.memoryStore.run(job)
    }

    /// As the synchronous form, without holding a thread.
    func run(_ job: PendingJob) async throws {
        guard let writing else { throw context.readOnly() }
        try await writing.memoryStore.run(job)
    }

    /// Sets the limits that an open asks for, unless they are set already.
    func adopt(_ budget: Budget) throws {
        guard try state().budget != budget.with(pageSize: index.environment.pageSize) else { return }
        guard let writing else { throw context.readOnly() }
        try writing.roomMaker.set(budget)
    }
}

extension Engine.Writing {
    /// Makes a put visible, in memory or on its way to the disk, and waits for its commit where it is durable.
    func put(_ put: PendingPut) throws {
        if put.options.storagePolicy == .memoryOnly { try memoryStore.put(put) } else { try submission.put(put) }
    }

    /// As the synchronous form, without holding a thread.
    func put(_ put: PendingPut) async throws {
        if put.options.storagePolicy == .memoryOnly {
            try await memoryStore.put(put)
        } else {
            try await submission.put(put)
        }
    }

    /// As above, without waiting. False if that is not possible: nothing is put.
    func putAtOnce(_ put: PendingPut) throws -> Bool { try submission.putAtOnce(put) }
}
