import SystemPackage

extension Store {
    /// Stores `body` under `key`, replacing any entry there. Readers of this process see it immediately; the index has
    /// it with the next commit (`Configuration.commitDelay`), or when the call returns with `Durability.durable`.
    ///
    /// A body over the inline threshold is written to a file by this call, which displaces other entries first where
    /// the budget is full.
    ///
    /// Waits while the batch of uncommitted puts is full (`Configuration.pendingLimit`), and for the disk if the body
    /// goes to a file.
    /// - Complexity: O(length) to hash the body, and O(log n) in the entries at the commit.
    /// - Parameters:
    ///   - body: the bytes, of any collection: an array, `Data`, a slice, `String.utf8`; may be empty. An array is kept
    ///     without a copy until the commit. Other contiguous bytes are copied only up to the inline threshold, and
    ///     bytes that are not contiguous always.
    ///   - key: the key to store it under, 1 to 65,536 bytes.
    ///   - options: lifetime, tags, metadata, policy. Default: no tags, and the store's lifetime.
    ///   - digest: the SHA-256 the body is declared to have. Nil (the default): computed and trusted.
    /// - Returns: the SHA-256 of the body.
    /// - Throws: `invalidArgument`, `tooLarge`, `digestMismatch`, `noSpace`, `io`, `closed`, `readOnly`. If a relaxed
    ///   put cannot be committed later, `flush(_:)` or `close()` reports it.
    @discardableResult
    public func put(
        _ body: some Collection<UInt8>, for key: Key, _ options: PutOptions = PutOptions(), digest: Digest? = nil
    ) throws -> Digest {
        let began = engine.uptime.uptime()
        return try complete(makePut(of: body, key, options, .computed(declared: digest)), since: began).digest
    }

    /// Stores `body` under `key`, replacing any entry there.
    ///
    /// Parameters, result and errors are those of the synchronous form. Waiting for disks and commits holds no thread
    /// of the cooperative pool.
    @discardableResult
    public func put(
        _ body: some Collection<UInt8> & Sendable, for key: Key, _ options: PutOptions = PutOptions(),
        digest: Digest? = nil
    ) async throws -> Digest {
        try Task.checkCancellation()
        let began = engine.uptime.uptime()
        // Short ones stay in memory until the commit, and nothing waits.
        let limit = try inlineLimit(engine.budget())
        let make: @Sendable () throws -> PendingPut = { [self] in
            try makePut(of: body, key, options, .computed(declared: digest), inlineLimit: limit)
        }
        let put = try body.count <= limit ? make() : await IOPool.shared.run(make)
        return try await complete(put, since: began).digest
    }

    // MARK: Arrays

    /// As `put` of a collection. An array is the commonest body, and asking a collection if it is one takes a twentieth
    /// of a short put.
    @discardableResult
    public func put(
        _ body: [UInt8], for key: Key, _ options: PutOptions = PutOptions(), digest: Digest? = nil
    ) throws -> Digest {
        let began = engine.uptime.uptime()
        return try complete(makePut(of: body, key, options, .computed(declared: digest)), since: began).digest
    }

    // MARK: At once

    /// Whether puts need not wait for a disk, unless their options say so.
    package var isRelaxed: Bool { !isDurable(nil) }

    /// As `put`, for threads that must not wait.
    /// - Returns: false, having stored nothing, where it takes long: the body belongs in a file or is to be compressed,
    ///   the put is durable, or the batch is full. Nor does it store in memory only.
    package func putAtOnce(_ body: [UInt8], for key: Key, _ options: PutOptions) throws -> Bool {
        let began = engine.uptime.uptime()
        let limit = try inlineLimit(engine.budget())
        guard body.count <= limit, options.storagePolicy != .memoryOnly, !isDurable(options),
            !compresses(Int64(body.count), options)
        else { return false }
        let put = try makePut(of: body, key, options, .known(.of(body)), inlineLimit: limit)
        guard try writing().putAtOnce(put) else { return false }
        engine.notePut(since: began)
        return true
    }

    // MARK: Completing

    /// Makes a put visible, and waits for its commit where it is durable.
    /// - Parameter began: the beginning of the call, by the uptime.
    @discardableResult
    func complete(_ put: PendingPut, since began: UInt64) throws -> PendingPut {
        try writing(discarding: put).put(put)
        engine.notePut(since: began)
        return put
    }

    /// As the synchronous form, without holding a thread.
    @discardableResult
    func complete(_ put: PendingPut, since began: UInt64) async throws -> PendingPut {
        try await writing(discarding: put).put(put)
        engine.notePut(since: began)
        return put
    }

    /// The writing parts; where there are none, the file of `put` goes.
    func writing(discarding put: PendingPut) throws -> Engine.Writing {
        do {
            return try writing()
        } catch {
            if let file = put.stagedFile { engine.writing?.staged.discardLater(file) }
            throw error
        }
    }
}
