extension Store {
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
        body.withContiguousStorageIfAvailable { of(UnsafeRawBufferPointer($0)) }
            ?? Array(body).withUnsafeBytes { of($0) }
    }

    /// The SHA-256 of the bytes of a span.
    /// - Parameter body: the bytes; may be empty.
    /// - Complexity: O(length).
    public static func of(_ body: RawSpan) -> Digest { body.withUnsafeBytes { of($0) } }
}
