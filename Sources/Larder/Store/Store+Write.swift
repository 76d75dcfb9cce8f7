import LMDB

extension Store {
    /// Writes the operations of a batch in one commit: those that can be done become visible together, in the order in
    /// which they were added, and a crash keeps all of them or none. Everything put and removed before is committed
    /// with or before them.
    ///
    /// An operation that cannot be done has its own result and leaves the others alone. A batch that cannot be
    /// committed throws, and then nothing has changed: it has to fit the budget as a whole, and its bodies up to the
    /// inline threshold are in memory until then. Calls from several threads and tasks share commits, so thousands of
    /// small batches a second cost some hundred commits.
    ///
    /// Entries of policy `memoryOnly` are changed and removed right after the commit.
    /// - Parameter durability: whether the call waits until the changes survive power loss. Nil (the default): as
    ///   `Configuration.durability` says. The durability in the options of its puts is not looked at.
    /// - Returns: one result for each operation, in order.
    /// - Throws: `closed`, `readOnly`, `noSpace`, `io`.
    @discardableResult
    public func write(_ batch: WriteBatch, durability: Durability? = nil) throws -> [WriteResult] {
        if batch.isEmpty { return [] }
        let job = try prepare(batch, durability)
        try engine.run(job)
        return try finish(job)
    }

    /// As the synchronous form, without holding a thread of the cooperative pool. Cancelling the task before the batch
    /// is on its way throws `CancellationError` and changes nothing; after that the batch is written.
    @discardableResult
    public func write(_ batch: WriteBatch, durability: Durability? = nil) async throws -> [WriteResult] {
        if batch.isEmpty { return [] }
        try Task.checkCancellation()
        // Bodies that belong in files, and walks, may wait for the disk.
        let limit = try inlineLimit(engine.budget())
        let job =
            batch.operations.contains(where: { $0.mayWait(limit) })
            ? try await IOPool.shared.run { [self] in try prepare(batch, durability) } : try prepare(batch, durability)
        try await engine.run(job)
        return try finish(job)
    }

    // MARK: One operation

    /// As a batch with one operation.
    func write(_ operation: PendingJob.Operation, _ durability: Durability?) throws -> WriteResult {
        _ = try writing()
        if let result = try applyInMemory(operation) { return result }
        let job = makeJob([operation], durability)
        try engine.run(job)
        return try finish(job)[0]
    }

    /// As the synchronous form, without holding a thread of the cooperative pool.
    func write(_ operation: PendingJob.Operation, _ durability: Durability?) async throws -> WriteResult {
        _ = try writing()
        try Task.checkCancellation()
        if let result = try applyInMemory(operation) { return result }
        let job = makeJob([operation], durability)
        try await engine.run(job)
        return try finish(job)[0]
    }

    func makeJob(_ operations: [PendingJob.Operation], _ durability: Durability?) -> PendingJob {
        PendingJob(operations, configuration: configuration, version: version, isDurable: isDurable(durability))
    }

    // MARK: Steps

    /// Stages the bodies that belong in files. After an error nothing is left of the batch.
    private func prepare(_ batch: WriteBatch, _ durability: Durability?) throws -> PendingJob {
        let writing = try writing()
        var operations: [PendingJob.Operation] = []
        operations.reserveCapacity(batch.count)
        do {
            for operation in batch.operations {
                operations.append(try prepare(operation, isDurable(durability) ? .durable : .relaxed))
            }
        } catch {
            for file in makeJob(operations, durability).stagedFiles { engine.discard(file, writing) }
            throw error
        }
        return makeJob(operations, durability)
    }

    private func prepare(_ operation: WriteBatch.Operation, _ durability: Durability) throws -> PendingJob.Operation {
        do {
            switch operation {
            case .put(let body, let key, var options, let digest, let unlessPresent):
                if options.storagePolicy == .memoryOnly {
                    throw LarderError(
                        .invalidArgument, "\(key) is `memoryOnly`, which a batch does not write: use `put`", key: key)
                }
                options.durability = durability
                return .put(try prepare(body, key, options, digest), unlessPresent: unlessPresent)
            case .change(let key, let change, let expected):
                try change.validate(key)
                return .change(key, change, expected)
            case .remove(let key, let expected):
                try key.validate()
                return .remove(key, expected)
            case .removeContent(let digest):
                return .removeContent(digest, try engine.keys(of: digest))
            case .lease(let kind, let subject, let duration):
                switch kind {
                case .tag, .tagOfVersion: try PutOptions.validate(tag: String(decoding: subject, as: UTF8.self))
                case .key, .keyOfVersion: try Key(bytes: subject).validate()
                case .digest: break
                }
                return .timedLease(kind, subject, duration)
            }
        } catch let error as LarderError where !error.concernsStore {
            return .failed(error)
        }
    }

    /// The results of a job that is committed, with what is left to do in memory done.
    private func finish(_ job: PendingJob) throws -> [WriteResult] {
        try zip(job.operations, job.results).map { operation, result in
            switch result {
            case .over(let result):
                // The entry on disk is the later one.
                if case .put(let put, _) = operation, case .stored = result { engine.memory.remove(put.key) }
                return result
            case .leased: return .done
            case .inMemory:
                // It may have been evicted meanwhile.
                return try applyInMemory(operation) ?? .absent
            }
        }
    }

    /// Applies an operation to an entry of policy `memoryOnly`; nil if there is none under its key.
    private func applyInMemory(_ operation: PendingJob.Operation) throws -> WriteResult? {
        switch operation {
        case .remove(let key, let expected):
            guard let put = engine.memory.lookup(key, use: nil) else { return nil }
            guard sees(put.version) else { return .absent }
            let removed = engine.memory.remove(key) { sees($0.version) && $0.isUnchanged(expected) }
            return removed == nil ? .changed : .done
        case .change(let key, let change, let expected):
            guard let put = engine.memory.lookup(key, use: nil) else { return nil }
            guard sees(put.version) else { return .absent }
            guard change.tags == nil, change.storagePolicy == nil else {
                return .failed(
                    LarderError(
                        .unsupported, "\(key) is in memory only: put it again with other tags or another policy",
                        key: key))
            }
            let now = engine.clock.advance()
            let use = change.isAccess ? (uptime: engine.uptime.uptime(), moment: now) : nil
            let expires = change.lifetime.map { configuration.expiry($0, at: now) }
            let isDone = try engine.changeInMemory(key) { put in
                guard sees(put.version), put.isUnchanged(expected) else { return nil }
                return put.copy(expires: expires, isPinned: change.isPinned, metadata: change.metadata, use: use)
            }
            return isDone ? .done : .changed
        case .failed, .put, .removeContent, .timedLease, .heldLease: return nil
        }
    }
}

extension LarderError {
    /// True if no operation of the store can be done, whatever it is.
    fileprivate var concernsStore: Bool { code == .closed || code == .readOnly || code == .corruption }
}

extension WriteBatch.Operation {
    /// True if preparing it may wait for the disk.
    fileprivate func mayWait(_ inlineLimit: Int64) -> Bool {
        switch self {
        case .put(let body, _, _, _, _): body.count > inlineLimit
        case .removeContent: true
        case .change, .remove, .lease: false
        }
    }
}

extension PendingPut {
    /// True if the entry has the body and the metadata that are expected.
    fileprivate func isUnchanged(_ expected: WriteBatch.Expected?) -> Bool {
        guard let expected else { return true }
        return options.metadata == expected.metadata && digest == expected.digest
    }
}
