extension Store {
    // MARK: Bytes of other types

    /// Stores the bytes of a collection: `Data`, a slice, `ByteBufferView`, `String.utf8`. Meaning, result and errors
    /// are those of `put(_:for:_:digest:)` for an array.
    ///
    /// Contiguous bytes over the inline threshold are written to their file without a copy; others are copied once.
    @discardableResult
    public func put(
        _ body: some Collection<UInt8>, for key: Key, _ options: PutOptions = PutOptions(), digest: Digest? = nil
    ) throws -> Digest {
        let began = engine.uptime.uptime()
        let put = try prepare(body, key, options, digest)
        try engine.awaitCommit(submit(put), put)
        engine.notePut(since: began)
        return put.digest
    }

    /// Stores the bytes of a collection under `key`, replacing what was there.
    ///
    /// Meaning, result and errors are those of `put(_:for:_:digest:)` for an array. Waiting for disks and commits holds
    /// no thread of the cooperative pool.
    @discardableResult
    public func put(
        _ body: some Collection<UInt8> & Sendable, for key: Key, _ options: PutOptions = PutOptions(),
        digest: Digest? = nil
    ) async throws -> Digest {
        try Task.checkCancellation()
        let began = engine.uptime.uptime()
        // Short ones stay in memory until the commit, and nothing waits.
        let put =
            try body.count <= inlineLimit(engine.budget())
            ? prepare(body, key, options, digest)
            : await IOPool.shared.run { [self] in try prepare(body, key, options, digest) }
        try await engine.awaitCommit(submit(put), put)
        engine.notePut(since: began)
        return put.digest
    }

    /// Stores the bytes of a span under `key`, replacing what was there. The memory need not outlive the call.
    ///
    /// Readers of this process see the entry at once; the index has it with the next commit
    /// (`Configuration.commitDelay`), or when the call returns with `Durability.durable`. What it waits for and what
    /// it costs is the same as with an array.
    /// - Parameters:
    ///   - body: the bytes; may be empty.
    ///   - key: what to put it under, 1 to 65,536 bytes.
    ///   - options: lifetime, tags, metadata, policy. Default: no tags, and the store's lifetime.
    ///   - digest: the SHA-256 the body is declared to have. Nil (the default): computed and trusted.
    /// - Returns: the SHA-256 of the body.
    /// - Throws: `invalidArgument`, `tooLarge`, `digestMismatch`, `noSpace`, `io`, `closed`, `readOnly`.
    @discardableResult
    public func put(
        _ body: RawSpan, for key: Key, _ options: PutOptions = PutOptions(), digest: Digest? = nil
    ) throws -> Digest {
        let began = engine.uptime.uptime()
        let put = try prepare(body, key, options, digest)
        try engine.awaitCommit(submit(put), put)
        engine.notePut(since: began)
        return put.digest
    }

    // MARK: Keys that the store makes

    /// Stores `body` under a new unique key: `urn:uuid:` and a random UUID (RFC 9562, version 4).
    /// - Parameters:
    ///   - body: the bytes; may be empty.
    ///   - options: lifetime, tags, metadata, policy. Default: no tags, and the store's lifetime.
    /// - Returns: the key.
    /// - Throws: what `put(_:for:_:digest:)` throws.
    public func put(_ body: some Collection<UInt8>, _ options: PutOptions = PutOptions()) throws -> Key {
        let key = Store.uniqueKey()
        try put(body, for: key, options)
        return key
    }

    /// Stores `body` under a new unique key: `urn:uuid:` and a random UUID (RFC 9562, version 4).
    ///
    /// Parameters, result and errors are those of the synchronous form. Waiting holds no thread of the cooperative
    /// pool.
    public func put(
        _ body: some Collection<UInt8> & Sendable, _ options: PutOptions = PutOptions()
    ) async throws -> Key {
        let key = Store.uniqueKey()
        try await put(body, for: key, options)
        return key
    }

    /// Stores `body` under its own digest, `sha256:` and 64 hexadecimal digits. The same bytes give the same key.
    /// - Parameters:
    ///   - body: the bytes; may be empty.
    ///   - options: lifetime, tags, metadata, policy. Default: no tags, and the store's lifetime.
    /// - Returns: the key.
    /// - Throws: what `put(_:for:_:digest:)` throws.
    public func putByContent(_ body: some Collection<UInt8>, _ options: PutOptions = PutOptions()) throws -> Key {
        let digest = Digest.of(body)
        let key = Key(digest)
        try put(body, for: key, options, digest: digest)
        return key
    }

    /// Stores `body` under its own digest, `sha256:` and 64 hexadecimal digits. The same bytes give the same key.
    ///
    /// Parameters, result and errors are those of the synchronous form. Waiting for disks holds no thread of the
    /// cooperative pool; hashing runs on the thread of the caller.
    public func putByContent(
        _ body: some Collection<UInt8> & Sendable, _ options: PutOptions = PutOptions()
    ) async throws -> Key {
        try Task.checkCancellation()
        let digest = Digest.of(body)
        let key = Key(digest)
        try await put(body, for: key, options, digest: digest)
        return key
    }
}

extension Key {
    /// The key under which `Store.putByContent` stores a body: `sha256:` and 64 hexadecimal digits.
    public init(_ digest: Digest) { self.init("sha256:" + digest.hexadecimal) }
}

extension Digest {
    /// The SHA-256 of the bytes of a collection, which are not copied if they are contiguous.
    public static func of(_ body: some Collection<UInt8>) -> Digest {
        body.withContiguousStorageIfAvailable { of(UnsafeRawBufferPointer($0)) } ?? of(Array(body))
    }

    /// The SHA-256 of the bytes of a span.
    public static func of(_ body: RawSpan) -> Digest { body.withUnsafeBytes { of($0) } }
}
