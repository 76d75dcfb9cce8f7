import LMDB

extension Store {
    /// Writes the operations of a batch in one commit: those that can be done become visible together, in the order in
    /// which they were added, and a crash keeps all of them or none. Everything put and removed before is committed
    /// with or before them.
    ///
    /// An operation that cannot be done has its own result and does not affect the others. Entries of policy
    /// `memoryOnly` are changed and removed when the batch is queued. A batch that cannot be committed throws, and then
    /// no other part of it is in the store; room may have been made for it. The batch has to fit the budget as a whole,
    /// and its bodies up to the inline threshold are in memory until the commit. Calls from several threads and tasks
    /// share commits, so thousands of small batches a second cost some hundred commits.
    ///
    /// A batch is one transaction, and other writers wait for it: some milliseconds for a thousand operations.
    /// - Parameters:
    ///   - batch: at most 16,384 operations.
    ///   - durability: the durability of the changes. Nil (the default): as `Configuration.durability` says. The
    ///     durability in the options of its puts has no effect.
    /// - Returns: one result for each operation, in order.
    /// - Throws: `invalidArgument` (too many operations), `tooLarge` (it can never fit the budget), `noSpace`,
    ///   `mapFull`, `readersFull`, `corruption`, `mustReopen`, `closed`, `readOnly`, `io`. `io` of a durable batch may
    ///   also mean that its sync failed: the changes are made then, and may not survive power loss.
    @discardableResult
    public func write(_ batch: WriteBatch, durability: Durability? = nil) throws -> [WriteResult] {
        if batch.isEmpty { return [] }
        let job = try makeJob(batch, durability)
        try engine.run(job)
        return job.results
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
        let job = try await makeJob(batch, durability)
        try await engine.run(job)
        return job.results
    }

    // MARK: One operation

    /// As a batch with one operation.
    func write(_ change: Change, _ durability: Durability?) throws -> WriteResult {
        _ = try writing()
        let job = PendingJob([change], isDurable: isDurable(durability))
        try engine.run(job)
        return try job.results[0].orThrow()
    }

    /// As the synchronous form, without holding a thread of the cooperative pool. It is carried through in a cancelled
    /// task: callers rely on what they undo.
    func write(_ change: Change, _ durability: Durability?) async throws -> WriteResult {
        _ = try writing()
        let job = PendingJob([change], isDurable: isDurable(durability))
        try await engine.run(job)
        return try job.results[0].orThrow()
    }

    /// The change of an entry that this store sees.
    func alteration(_ key: Key, _ fields: EntryChange, _ condition: Change.Condition = .none) -> Change {
        .alter(
            Change.Alteration(
                key: key, fields: fields, condition: condition, configuration: configuration, version: version))
    }

    /// The removal of an entry that this store sees.
    func removal(of key: Key, isDurable: Bool) -> PendingRemoval {
        PendingRemoval(
            key: key, owner: handle, version: version, isDurable: isDurable, uptime: engine.uptime.uptime())
    }

    /// The claim of a key for work that others need not do meanwhile; it ends after a day, whatever happens.
    func computation(of key: Key, version: UInt16?) -> Change {
        .lease(
            Change.LeaseRequest(
                kind: .computation, subject: key.bytes, version: version, duration: .seconds(24 * 3600)))
    }

    // MARK: Steps

    /// Stages the bodies that belong in files. After an error nothing is left of the batch.
    private func makeJob(_ batch: WriteBatch, _ durability: Durability?) throws -> PendingJob {
        let writing = try writing()
        try checkSize(of: batch)
        var changes: [Change] = []
        changes.reserveCapacity(batch.count)
        do {
            let content = BatchContent(
                keys: try writing.submission.keys(of: batch.removedContent),
                strays: try writing.submission.strays(batch.linkedContent))
            for operation in batch.operations {
                changes.append(try makeChange(operation, isDurable(durability), content))
            }
        } catch {
            for file in changes.compactMap(\.stagedFile) { writing.staged.discard(file) }
            throw error
        }
        return PendingJob(
            changes, isDurable: isDurable(durability), isBatch: true, isHousekeeping: batch.isHousekeeping)
    }

    /// As the synchronous form. One body at a time is staged where that may wait for the disk, so others get their
    /// turn; cancelling the task gives the batch up.
    private func makeJob(_ batch: WriteBatch, _ durability: Durability?) async throws -> PendingJob {
        let writing = try writing()
        try checkSize(of: batch)
        let limit = try inlineLimit(engine.budget())
        let mustSync = isDurable(durability)
        var changes: [Change] = []
        changes.reserveCapacity(batch.count)
        do {
            let (removed, linked) = (batch.removedContent, batch.linkedContent)
            // Walks over every entry.
            let content =
                removed.isEmpty && linked.isEmpty
                ? BatchContent()
                : try await IOPool.long.run {
                    BatchContent(
                        keys: try writing.submission.keys(of: removed), strays: try writing.submission.strays(linked))
                }
            for operation in batch.operations {
                try Task.checkCancellation()
                let prepared =
                    operation.mayWait(limit)
                    ? try await IOPool.shared.run { [self] in try makeChange(operation, mustSync, content) }
                    : try makeChange(operation, mustSync, content)
                changes.append(prepared)
            }
            try Task.checkCancellation()
        } catch {
            let files = changes.compactMap(\.stagedFile)
            if !files.isEmpty {
                try await IOPool.shared.run { for file in files { writing.staged.discard(file) } }
            }
            throw error
        }
        return PendingJob(
            changes, isDurable: isDurable(durability), isBatch: true, isHousekeeping: batch.isHousekeeping)
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

    private func makeChange(
        _ operation: WriteBatch.Operation, _ isDurable: Bool, _ content: BatchContent
    ) throws -> Change {
        do {
            switch operation {
            case .put(let body, let key, var options, let condition):
                try checkIsWritten(options, key)
                options.durability = isDurable ? .durable : .relaxed
                return .put(try makePut(body, key, options, content), condition)
            case .change(let key, let fields, let condition):
                try fields.validate(key)
                return alteration(key, fields, condition)
            case .remove(let key, let condition):
                try key.validate()
                return .remove(removal(of: key, isDurable: isDurable), condition)
            case .removeContent(let digest):
                return .removeContent(digest, content.keys[digest] ?? [])
            case .lease(let kind, let subject, let duration):
                return .lease(try makeLease(kind, subject, duration))
            }
        } catch let error as LarderError where !error.concernsStore {
            return .over(.failed(error))
        }
    }

    private func makePut(
        _ body: WriteBatch.Body, _ key: Key, _ options: PutOptions, _ content: BatchContent
    ) throws -> PendingPut {
        switch body {
        case .bytes(let bytes, let digest):
            return try makePut(of: bytes, key, options, .computed(declared: digest)).withoutDescriptor
        case .content(let digest):
            if let stray = content.strays[digest] { return try makePut(of: stray, key, options, .known(digest)) }
            try options.validate(key: key)
            return makePut(key, digest, 0, .content, options)
        }
    }

    private func makeLease(
        _ kind: Index.LeaseKind, _ subject: [UInt8], _ duration: Duration
    ) throws -> Change.LeaseRequest {
        switch kind {
        case .tag, .tagOfVersion: try PutOptions.validate(callersTag: String(decoding: subject, as: UTF8.self))
        case .key, .keyOfVersion: try Key(bytes: subject).validate()
        case .digest, .computation: break
        }
        if duration > WriteBatch.longestLease {
            throw LarderError(
                .invalidArgument, "a lease lasts 30 days at most: take a shorter one, and another before it ends")
        }
        // Content is of no version.
        return Change.LeaseRequest(
            kind: kind, subject: subject, version: kind == .digest ? nil : version, duration: duration, isHeld: false)
    }

    private func checkIsWritten(_ options: PutOptions, _ key: Key) throws(LarderError) {
        guard options.storagePolicy == .memoryOnly else { return }
        throw LarderError(
            .invalidArgument, "\(key) is `memoryOnly`, which a batch does not write: use `put`", key: key)
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
            // It replaces one, or does nothing.
            case .put(let body, _, let options, .unchanged): bytes += body.count + options.metadata.count
            case .put(let body, let key, let options, _):
                bytes += body.count + options.metadata.count
                let row = min(key.bytes.count, IndexKey.longLength) * (2 + options.tags.count)
                let tags = options.tags.reduce(0) { $0 + 2 * $1.utf8.count }
                rows[key] = row + tags + (IndexKey.isLong(key) ? key.bytes.count : 0)
            case .remove(let key, .none): rows[key] = nil
            // It may remove any of them.
            case .removeContent: rows = [:]
            case .change, .remove, .lease: break
            }
        }
        return (rows.count, Int64(rows.values.reduce(bytes, +)))
    }

    /// The content that entries are to be put with, where it may be looked for.
    fileprivate var linkedContent: Set<Digest> {
        if !findsStrays { return [] }
        return Set(
            operations.compactMap { if case .put(.content(let digest), _, _, _) = $0 { digest } else { nil } })
    }

    /// The content that is to be removed.
    fileprivate var removedContent: Set<Digest> {
        Set(operations.compactMap { if case .removeContent(let digest) = $0 { digest } else { nil } })
    }
}

/// What was found for the operations of a batch that name content.
private struct BatchContent: Sendable {
    /// Where content that is to be removed was found.
    var keys: [Digest: [[UInt8]]] = [:]
    /// Bytes that only a walk finds.
    var strays: [Digest: [UInt8]] = [:]
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
        case .put(let body, _, _, _): body.count > inlineLimit
        case .change, .remove, .removeContent, .lease: false
        }
    }
}

extension WriteResult {
    /// The result, unless it is an error.
    fileprivate func orThrow() throws(LarderError) -> WriteResult {
        if case .failed(let error) = self { throw error }
        return self
    }
}

extension WriteBatch.Body {
    /// Bytes that the caller has given.
    fileprivate var count: Int { if case .bytes(let bytes, _) = self { bytes.count } else { 0 } }
}
