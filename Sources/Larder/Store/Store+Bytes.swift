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
        return try complete(makePut(of: body, key, options, .computed(declared: digest)), since: began).digest
    }

    /// Stores the bytes of a collection under `key`, replacing any entry there.
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
            ? makePut(of: body, key, options, .computed(declared: digest))
            : await IOPool.shared.run { [self] in try makePut(of: body, key, options, .computed(declared: digest)) }
        return try await complete(put, since: began).digest
    }

    /// Stores the bytes of a span under `key`, replacing any entry there. The memory need not outlive the call.
    ///
    /// Readers of this process see the entry immediately; the index has it with the next commit
    /// (`Configuration.commitDelay`), or when the call returns with `Durability.durable`. Waiting and cost are the same
    /// as with an array.
    /// - Parameters:
    ///   - body: the bytes; may be empty.
    ///   - key: the key to store it under, 1 to 65,536 bytes.
    ///   - options: lifetime, tags, metadata, policy. Default: no tags, and the store's lifetime.
    ///   - digest: the SHA-256 the body is declared to have. Nil (the default): computed and trusted.
    /// - Returns: the SHA-256 of the body.
    /// - Throws: `invalidArgument`, `tooLarge`, `digestMismatch`, `noSpace`, `io`, `closed`, `readOnly`.
    @discardableResult
    public func put(
        _ body: RawSpan, for key: Key, _ options: PutOptions = PutOptions(), digest: Digest? = nil
    ) throws -> Digest {
        let began = engine.uptime.uptime()
        return try complete(makePut(of: body, key, options, .computed(declared: digest)), since: began).digest
    }
}

extension Digest {
    /// The SHA-256 of the bytes of a collection, which are not copied if they are contiguous.
    /// - Parameter body: the bytes; may be empty.
    /// - Complexity: O(length).
    public static func of(_ body: some Collection<UInt8>) -> Digest {
        body.withContiguousStorageIfAvailable { of(UnsafeRawBufferPointer($0)) } ?? of(Array(body))
    }

    /// The SHA-256 of the bytes of a span.
    /// - Parameter body: the bytes; may be empty.
    /// - Complexity: O(length).
    public static func of(_ body: RawSpan) -> Digest { body.withUnsafeBytes { of($0) } }
}
