import SystemPackage

extension Store {
    /// Stores `body` under `key`, replacing what was there. Readers of this process see it at once; the index has it
    /// with the next commit (`Configuration.commitDelay`), or when the call returns with `Durability.durable`.
    ///
    /// A body over the inline threshold is written to a file by this call, which displaces other entries first where
    /// the budget is full.
    ///
    /// Waits while the batch of puts that are not committed is full (`Configuration.pendingLimit`), and for the disk
    /// with a body in a file.
    /// - Complexity: O(length) to hash the body, and O(log n) in the entries at the commit.
    /// - Parameters:
    ///   - body: the bytes; may be empty.
    ///   - key: what to put it under, 1 to 65,536 bytes.
    ///   - options: lifetime, tags, metadata, policy. Default: no tags, and the store's lifetime.
    ///   - digest: the SHA-256 the body is declared to have. Nil (the default): computed and trusted.
    /// - Returns: the SHA-256 of the body.
    /// - Throws: `invalidArgument`, `tooLarge`, `digestMismatch`, `noSpace`, `io`, `closed`, `readOnly`. A relaxed put
    ///   that cannot be committed later is reported by `flush(_:)` or `close()`.
    @discardableResult
    public func put(
        _ body: [UInt8], for key: Key, _ options: PutOptions = PutOptions(), digest: Digest? = nil
    ) throws -> Digest {
        let began = engine.uptime.uptime()
        let budget = try engine.budget()
        let put = try prepare(body, key, options, digest, budget, inlineLimit(budget))
        let generation = try submit(put)
        try engine.awaitCommit(generation, put)
        engine.notePut(since: began)
        return put.digest
    }

    /// Stores `body` under `key`, replacing what was there.
    ///
    /// Parameters, result and errors are those of the synchronous form. Waiting for disks and commits holds no thread
    /// of the cooperative pool.
    @discardableResult
    public func put(
        _ body: [UInt8], for key: Key, _ options: PutOptions = PutOptions(), digest: Digest? = nil
    ) async throws -> Digest {
        try Task.checkCancellation()
        let began = engine.uptime.uptime()
        let budget = try engine.budget()
        let put: PendingPut
        let limit = inlineLimit(budget)
        if body.count <= limit {
            put = try prepare(body, key, options, digest, budget, limit)
        } else {
            put = try await IOPool.shared.run { [self] in try prepare(body, key, options, digest, budget, limit) }
        }
        try await engine.awaitCommit(submit(put), put)
        engine.notePut(since: began)
        return put.digest
    }

    /// As the synchronous `submit`, on the pool if the pending set is full.
    func submit(_ put: PendingPut) async throws -> UInt64 {
        if let generation = try submit(put, mayWait: false) { return generation }
        return try await IOPool.shared.run { [self] in try submit(put) }
    }

    // MARK: Steps

    /// The longest body that is stored inline now. While a snapshot is held, only a body that fits a page is: longer
    /// ones need runs of free pages, which the snapshot keeps, and a file gives its room back when it is removed.
    func inlineLimit(_ budget: Budget) -> Int64 {
        let limit = configuration.inlineLimit(budget)
        guard engine.writing?.snapshots.mayBeHeld ?? false else { return limit }
        return min(limit, Int64(engine.index.environment.pageSize - 16 - BlobRecord.inlineLength))
    }

    private func prepare(
        _ body: [UInt8], _ key: Key, _ options: PutOptions, _ declared: Digest?, _ budget: Budget,
        _ inlineLimit: Int64
    ) throws -> PendingPut {
        try prepare(body, key, options, budget, inlineLimit) {
            let digest = DigestWorker.shared.digest(of: body)
            if let declared, declared != digest.value { throw Store.mismatch(key, declared, digest.value) }
            return digest
        }
    }

    /// - Parameter digest: computes the digest, or knows it.
    private func prepare(
        _ body: [UInt8], _ key: Key, _ options: PutOptions, _ budget: Budget, _ inlineLimit: Int64,
        digest: () throws -> BodyDigest
    ) throws -> PendingPut {
        let writing = try writing()
        try options.validate(key: key)
        try Store.checkSize(Int64(body.count), key, budget)
        let digest = try digest()
        guard options.storagePolicy != .memoryOnly, body.count > inlineLimit else {
            return makePut(key, digest, UInt64(body.count), .inline(body), options)
        }
        let file = try body.withUnsafeBytes { bytes in
            try writing.stager.stage(bytes, for: key, isDurable: isDurable(options))
        }
        return makePut(key, digest, UInt64(body.count), .staged(file), options)
    }

    /// As above for bytes that are the caller's: copied only if they stay in memory until the commit.
    private func prepare(
        _ body: UnsafeRawBufferPointer, _ key: Key, _ options: PutOptions, _ declared: Digest?
    ) throws -> PendingPut {
        let budget = try engine.budget()
        let limit = inlineLimit(budget)
        guard options.storagePolicy != .memoryOnly, body.count > limit else {
            return try prepare(Array(body), key, options, declared, budget, limit)
        }
        return try stage(body, key, options, budget) {
            let digest = Digest.of(body)
            if let declared, declared != digest { throw Store.mismatch(key, declared, digest) }
            return digest
        }
    }

    /// A put of bytes whose digest is known.
    func prepare(_ body: [UInt8], _ key: Key, _ options: PutOptions, hashed digest: Digest) throws -> PendingPut {
        let budget = try engine.budget()
        return try prepare(body, key, options, budget, inlineLimit(budget)) { BodyDigest(digest) }
    }

    /// As above for bytes that are the caller's.
    func prepare(
        _ body: UnsafeRawBufferPointer, _ key: Key, _ options: PutOptions, hashed digest: Digest
    ) throws -> PendingPut {
        let budget = try engine.budget()
        let limit = inlineLimit(budget)
        guard options.storagePolicy != .memoryOnly, body.count > limit else {
            return try prepare(Array(body), key, options, budget, limit) { BodyDigest(digest) }
        }
        return try stage(body, key, options, budget) { digest }
    }

    private func stage(
        _ body: UnsafeRawBufferPointer, _ key: Key, _ options: PutOptions, _ budget: Budget,
        digest: () throws -> Digest
    ) throws -> PendingPut {
        let writing = try writing()
        try options.validate(key: key)
        try Store.checkSize(Int64(body.count), key, budget)
        let digest = try digest()
        let file = try writing.stager.stage(body, for: key, isDurable: isDurable(options))
        return makePut(key, digest, UInt64(body.count), .staged(file), options)
    }

    /// Any of the forms a body is passed in, ready to be submitted.
    func prepare(
        _ body: some Collection<UInt8>, _ key: Key, _ options: PutOptions, _ declared: Digest?
    ) throws -> PendingPut {
        if let array = body as? [UInt8] {
            let budget = try engine.budget()
            return try prepare(array, key, options, declared, budget, inlineLimit(budget))
        }
        let put = try body.withContiguousStorageIfAvailable {
            try prepare(UnsafeRawBufferPointer($0), key, options, declared)
        }
        if let put { return put }
        return try prepare(Array(body), key, options, declared)
    }

    func prepare(_ body: borrowing RawSpan, _ key: Key, _ options: PutOptions, _ declared: Digest?) throws -> PendingPut
    {
        try body.withUnsafeBytes { try prepare($0, key, options, declared) }
    }

    func makePut(
        _ key: Key, _ digest: Digest, _ length: UInt64, _ body: PendingPut.Body, _ options: PutOptions,
        progress: EntryRecord.Progress? = nil, completesPartial: Bool = false
    ) -> PendingPut {
        makePut(
            key, BodyDigest(digest), length, body, options, progress: progress, completesPartial: completesPartial)
    }

    private func makePut(
        _ key: Key, _ digest: BodyDigest, _ length: UInt64, _ body: PendingPut.Body, _ options: PutOptions,
        progress: EntryRecord.Progress? = nil, completesPartial: Bool = false
    ) -> PendingPut {
        let now = engine.clock.advance()
        return PendingPut(
            key: key, digest: digest, length: length, body: body, options: options, stored: now,
            expires: configuration.expiry(options.lifetime, at: now), version: version ?? 0,
            session: engine.writing?.lock.instance ?? 0, isDurable: isDurable(options), uptime: engine.uptime.uptime(),
            owner: handle, progress: progress, completesPartial: completesPartial)
    }

    /// Makes a put visible. Returns the generation of the batch to wait for; 0 if there is none.
    func submit(_ put: PendingPut) throws -> UInt64 {
        // Nil is the answer of a call that may not wait.
        try submit(put, mayWait: true) ?? 0
    }

    private func submit(_ put: PendingPut, mayWait: Bool) throws -> UInt64? {
        let writing: Engine.Writing
        do {
            writing = try self.writing()
        } catch {
            if let file = put.stagedFile { engine.writing?.staged.discardLater(file) }
            throw error
        }
        if put.options.storagePolicy == .memoryOnly {
            // There is nothing to wait for.
            return try writing.memoryStore.put(put, mayWait: mayWait) ? 0 : nil
        }
        return try writing.submission.submit(put, mayWait: mayWait)
    }

    func isDurable(_ options: PutOptions) -> Bool {
        options.storagePolicy != .memoryOnly && isDurable(options.durability)
    }

    func isDurable(_ durability: Durability?) -> Bool { (durability ?? configuration.durability) == .durable }

    /// Longer than any file system's files; keeps sums of lengths from overflowing.
    static let maximumLength: Int64 = 1 << 53

    static func checkSize(_ bytes: Int64, _ key: Key, _ budget: Budget) throws(LarderError) {
        if bytes > maximumLength {
            throw LarderError(
                .tooLarge,
                "the body of \(key) has \(ByteCount(bytes).exactly); no body can have more than \(ByteCount(maximumLength))",
                key: key)
        }
        // Not made for a body that is accepted.
        func text(_ rest: String) -> String { "the body of \(key) has \(ByteCount(bytes).exactly) or more\(rest)" }
        if bytes > budget.largestEntry.bytes {
            throw LarderError(
                .tooLarge, text("; the largest entry allowed is \(budget.largestEntry.exactly)"),
                remedy: .raiseLargestEntry, key: key)
        }
        if bytes > budget.usableBytes {
            throw LarderError(
                .tooLarge, text(" and does not fit the byte budget of \(budget.bytes.exactly)"),
                remedy: .raiseBudget, key: key)
        }
        let half = budget.effectiveLargestEntry
        if bytes > half.bytes {
            throw LarderError(
                .tooLarge,
                text("; the largest entry allowed is \(half.exactly), half of what the byte budget leaves for entries"),
                remedy: .raiseLargestEntry, key: key)
        }
    }

    static func mismatch(_ key: Key, _ declared: Digest, _ actual: Digest) -> LarderError {
        LarderError(
            .digestMismatch,
            "the body of \(key) has the SHA-256 \(actual), not \(declared) as declared: fetch it again; nothing was stored",
            key: key)
    }
}

extension Configuration {
    /// When an entry put at `now` stops being fresh, the ceiling applied.
    func expiry(_ lifetime: Lifetime, at now: Timestamp) -> Timestamp {
        let asked: Timestamp
        switch lifetime {
        case .standard:
            // A default of `standard` would refer to itself; it means no default.
            asked = defaultLifetime == .standard ? .distantFuture : expiryWithoutCeiling(defaultLifetime, at: now)
        default:
            asked = expiryWithoutCeiling(lifetime, at: now)
        }
        guard let maximumLifetime else { return asked }
        return min(asked, now + max(.zero, maximumLifetime))
    }

    private func expiryWithoutCeiling(_ lifetime: Lifetime, at now: Timestamp) -> Timestamp {
        switch lifetime {
        case .standard, .never: .distantFuture
        case .duration(let duration): now + max(.zero, duration)
        case .until(let moment): moment
        }
    }
}
