import LMDB

extension Store {
    /// Writes the operations of a batch in one commit: those that can be done become visible together, in the order in
    /// which they were added, and a crash keeps all of them or none. Everything put and removed before is committed
    /// with or before them.
    ///
    /// An operation that cannot be done has its own result and leaves the others alone. Entries of policy `memoryOnly`
    /// are changed and removed before the commit. A batch that cannot be committed throws, and then nothing else of it
    /// is in the store; room may have been made for it. It has to fit the budget as a whole, and its bodies up to the
    /// inline threshold are in memory until then. Calls from several threads and tasks share commits, so thousands of
    /// small batches a second cost some hundred commits.
    ///
    /// A batch is one transaction, and other writers wait for it: some milliseconds for a thousand operations.
    /// - Parameters:
    ///   - batch: at most 16,384 operations.
    ///   - durability: whether the call waits until the changes survive power loss. Nil (the default): as
    ///     `Configuration.durability` says. The durability in the options of its puts has no effect.
    /// - Returns: one result for each operation, in order.
    /// - Throws: `invalidArgument` (too many operations), `tooLarge` (it can never fit the budget), `noSpace`,
    ///   `mapFull`, `readersFull`, `corruption`, `mustReopen`, `closed`, `readOnly`, `io`. `io` of a durable batch may
    ///   also mean that its sync failed: the changes are made then, and may not survive power loss.
    @discardableResult
    public func write(_ batch: WriteBatch, durability: Durability? = nil) throws -> [WriteResult] {
        if batch.isEmpty { return [] }
        let job = try prepare(batch, durability)
        try engine.run(job)
        return job.writeResults
    }

    /// Writes the operations of a batch in one commit: those that can be done become visible together, in the order in
    /// which they were added, and a crash keeps all of them or none.
    ///
    /// Parameters, result and errors are those of the synchronous form. Waiting holds no thread of the cooperative
    /// pool. Cancelling the task before its bodies are staged throws `CancellationError` and changes nothing; after
    /// that the batch is written.
    @discardableResult
    public func write(_ batch: WriteBatch, durability: Durability? = nil) async throws -> [WriteResult] {
        if batch.isEmpty { return [] }
        try Task.checkCancellation()
        let job: PendingJob = try await prepare(batch, durability)
        try await engine.run(job)
        return job.writeResults
    }

    // MARK: One operation

    /// As a batch with one operation.
    func write(_ operation: PendingJob.Operation, _ durability: Durability?) throws -> WriteResult {
        let job = makeJob([operation], durability)
        try engine.run(job)
        return job.writeResults[0]
    }

    /// As the synchronous form, without holding a thread of the cooperative pool. It is carried through in a cancelled
    /// task: callers rely on what they undo.
    func write(_ operation: PendingJob.Operation, _ durability: Durability?) async throws -> WriteResult {
        let job = makeJob([operation], durability)
        try await engine.run(job)
        return job.writeResults[0]
    }

    func makeJob(
        _ operations: [PendingJob.Operation], _ durability: Durability?, isHousekeeping: Bool = false
    ) -> PendingJob {
        PendingJob(
            operations, configuration: configuration, version: version, isDurable: isDurable(durability),
            isHousekeeping: isHousekeeping)
    }

    // MARK: Steps

    /// Stages the bodies that belong in files. After an error nothing is left of the batch.
    private func prepare(_ batch: WriteBatch, _ durability: Durability?) throws -> PendingJob {
        let writing = try writing()
        try checkSize(of: batch)
        var operations: [PendingJob.Operation] = []
        operations.reserveCapacity(batch.count)
        do {
            let content = try writing.submission.keys(of: batch.removedContent)
            for operation in batch.operations {
                operations.append(try prepare(operation, isDurable(durability) ? .durable : .relaxed, content))
            }
        } catch {
            for file in makeJob(operations, durability).stagedFiles { writing.staged.discard(file) }
            throw error
        }
        return makeJob(operations, durability, isHousekeeping: batch.isHousekeeping)
    }

    /// As the synchronous form. One body at a time is staged where that may wait for the disk, so others get their
    /// turn; cancelling the task gives the batch up.
    private func prepare(_ batch: WriteBatch, _ durability: Durability?) async throws -> PendingJob {
        let writing = try writing()
        try checkSize(of: batch)
        let limit = try inlineLimit(engine.budget())
        let moment = isDurable(durability) ? Durability.durable : .relaxed
        var operations: [PendingJob.Operation] = []
        operations.reserveCapacity(batch.count)
        do {
            let digests = batch.removedContent
            // A walk over every entry.
            let content =
                digests.isEmpty
                ? [:] : try await IOPool.long.run { try writing.submission.keys(of: digests) }
            for operation in batch.operations {
                try Task.checkCancellation()
                let prepared =
                    operation.mayWait(limit)
                    ? try await IOPool.shared.run { [self] in try prepare(operation, moment, content) }
                    : try prepare(operation, moment, content)
                operations.append(prepared)
            }
            try Task.checkCancellation()
        } catch {
            let files = makeJob(operations, durability).stagedFiles
            if !files.isEmpty {
                try await IOPool.shared.run { for file in files { writing.staged.discard(file) } }
            }
            throw error
        }
        return makeJob(operations, durability, isHousekeeping: batch.isHousekeeping)
    }

    /// A batch that can never fit must not displace what is there.
    private func checkSize(of batch: WriteBatch) throws {
        if batch.count > Self.maximumOperations {
            throw LarderError(
                .invalidArgument,
                "the batch has \(batch.count) operations; the most is \(Self.maximumOperations): write it in parts")
        }
        let budget = try engine.budget()
        let (entries, bytes) = batch.least
        if bytes > budget.usableBytes {
            throw LarderError(
                .tooLarge,
                "the batch has \(ByteCount(bytes).exactly) and does not fit the byte budget of \(budget.bytes.exactly)",
                remedy: .raiseBudget)
        }
        if entries > budget.entries {
            throw LarderError(
                .tooLarge,
                "the batch stores \(entries) entries and does not fit the budget of \(budget.entries) entries",
                remedy: .raiseBudget)
        }
    }

    /// Operations of a batch.
    private static let maximumOperations = 16_384

    private func prepare(
        _ operation: WriteBatch.Operation, _ durability: Durability, _ content: [Digest: [[UInt8]]]
    ) throws -> PendingJob.Operation {
        do {
            switch operation {
            case .put(let body, let key, var options, let digest, let unlessPresent):
                try checkIsWritten(options, key)
                options.durability = durability
                return .put(try prepare(body, key, options, digest).withoutDescriptor, unlessPresent: unlessPresent)
            case .putContent(let digest, let key, var options, let unlessPresent, let expected):
                try checkIsWritten(options, key)
                options.durability = durability
                try options.validate(key: key)
                return .putContent(
                    makePut(key, digest, 0, .inline([]), options), unlessPresent: unlessPresent, expected)
            case .replace(let body, var options, let digest, let key, let expected):
                try checkIsWritten(options, key)
                options.durability = durability
                return .replace(try prepare(body, key, options, digest).withoutDescriptor, expected)
            case .change(let key, let change, let expected):
                try change.validate(key)
                return .change(key, change, expected)
            case .remove(let key, let expected):
                try key.validate()
                return .remove(key, expected)
            case .removeContent(let digest):
                return .removeContent(digest, content[digest] ?? [])
            case .lease(let kind, let subject, let duration):
                switch kind {
                case .tag, .tagOfVersion:
                    try PutOptions.validate(callersTag: String(decoding: subject, as: UTF8.self))
                case .key, .keyOfVersion: try Key(bytes: subject).validate()
                case .digest, .computation: break
                }
                if duration > WriteBatch.longestLease {
                    throw LarderError(
                        .invalidArgument,
                        "a lease lasts 30 days at most: take a shorter one, and another before it ends")
                }
                return .timedLease(kind, subject, duration)
            }
        } catch let error as LarderError where !error.concernsStore {
            return .over(.failed(error))
        }
    }

    private func checkIsWritten(_ options: PutOptions, _ key: Key) throws(LarderError) {
        guard options.storagePolicy == .memoryOnly else { return }
        throw LarderError(
            .invalidArgument, "\(key) is `memoryOnly`, which a batch does not write: use `put`", key: key)
    }
}

extension PendingJob {
    fileprivate var writeResults: [WriteResult] {
        results.map { result in
            switch result {
            case .over(let result): result
            case .leased: .done
            }
        }
    }
}

extension WriteBatch {
    /// What the batch needs at the least: how many entries it leaves, and the bytes of its bodies, metadata, keys and
    /// tags, those of the latter as often as the index has them.
    fileprivate var least: (entries: Int, bytes: Int64) {
        var rows: [Key: Int] = [:]
        var bytes = 0
        for operation in operations {
            switch operation {
            case .put(_, let key, let options, _, _), .putContent(_, let key, let options, _, _):
                if case .put(let body, _, _, _, _) = operation { bytes += body.count }
                bytes += options.metadata.count
                let row = min(key.bytes.count, IndexKey.longLength) * (2 + options.tags.count)
                let tags = options.tags.reduce(0) { $0 + 2 * $1.utf8.count }
                rows[key] = row + tags + (IndexKey.isLong(key) ? key.bytes.count : 0)
            case .remove(let key, nil): rows[key] = nil
            // It replaces one, or does nothing.
            case .replace(let body, let options, _, _, _): bytes += body.count + options.metadata.count
            // It may remove any of them.
            case .removeContent: rows = [:]
            case .change, .remove, .lease: break
            }
        }
        return (rows.count, Int64(rows.values.reduce(bytes, +)))
    }

    /// The content that is to be removed.
    fileprivate var removedContent: Set<Digest> {
        Set(operations.compactMap { if case .removeContent(let digest) = $0 { digest } else { nil } })
    }
}

extension PendingPut {
    /// The put without the descriptor of its file, which is needed only to read it before the commit.
    fileprivate var withoutDescriptor: PendingPut {
        guard case .staged(let file) = body else { return self }
        return copy(body: .staged(file.closed))
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
        case .put(let body, _, _, _, _), .replace(let body, _, _, _, _): body.count > inlineLimit
        case .putContent, .change, .remove, .removeContent, .lease: false
        }
    }
}
