/// Storing without a key: under a new unique one, or under the digest of the content.
extension Store {
    // MARK: Unique keys

    /// Stores `body` under a new unique key (`Key.unique()`).
    /// - Parameters:
    ///   - body: the bytes; may be empty.
    ///   - options: lifetime, tags, metadata, policy. Default: no tags, and the store's lifetime.
    /// - Returns: the key.
    /// - Throws: the errors of `put(_:for:_:digest:)`.
    public func put(_ body: some Collection<UInt8>, _ options: PutOptions = PutOptions()) throws -> Key {
        let key = Key.unique()
        try put(body, for: key, options)
        return key
    }

    /// Stores `body` under a new unique key (`Key.unique()`).
    ///
    /// Parameters, result and errors are those of the synchronous form. Waiting holds no thread of the cooperative
    /// pool.
    public func put(
        _ body: some Collection<UInt8> & Sendable, _ options: PutOptions = PutOptions()
    ) async throws -> Key {
        let key = Key.unique()
        try await put(body, for: key, options)
        return key
    }

    /// Stores the bytes of a span under a new unique key (`Key.unique()`). The memory need not outlive the call.
    /// - Parameters:
    ///   - body: the bytes; may be empty.
    ///   - options: lifetime, tags, metadata, policy. Default: no tags, and the store's lifetime.
    /// - Returns: the key.
    /// - Throws: the errors of `put(_:for:_:digest:)`.
    public func put(_ body: RawSpan, _ options: PutOptions = PutOptions()) throws -> Key {
        let key = Key.unique()
        try put(body, for: key, options)
        return key
    }

    // MARK: Keys of the content

    /// Stores `body` under its own digest, `sha256:` and 64 hexadecimal digits. The same bytes give the same key.
    /// - Parameters:
    ///   - body: the bytes; may be empty.
    ///   - options: lifetime, tags, metadata, policy. Default: no tags, and the store's lifetime.
    /// - Returns: the key.
    /// - Throws: the errors of `put(_:for:_:digest:)`.
    public func putByContent(_ body: some Collection<UInt8>, _ options: PutOptions = PutOptions()) throws -> Key {
        if let array = body as? [UInt8] { return try putByContent(array, options) }
        let key = try body.withContiguousStorageIfAvailable {
            try putByContent(UnsafeRawBufferPointer($0), options)
        }
        return try key ?? putByContent(Array(body), options)
    }

    private func putByContent(_ body: [UInt8], _ options: PutOptions) throws -> Key {
        let began = engine.uptime.uptime()
        let digest = Digest.of(body)
        return try complete(makePut(of: body, Key(digest), options, .known(digest)), since: began).key
    }

    private func putByContent(_ body: UnsafeRawBufferPointer, _ options: PutOptions) throws -> Key {
        let began = engine.uptime.uptime()
        let digest = Digest.of(body)
        return try complete(makePut(of: body, Key(digest), options, .known(digest)), since: began).key
    }

    /// Stores `body` under its own digest, `sha256:` and 64 hexadecimal digits. The same bytes give the same key.
    ///
    /// Parameters, result and errors are those of the synchronous form. Waiting for disks holds no thread of the
    /// cooperative pool; hashing runs on the thread of the caller.
    public func putByContent(
        _ body: some Collection<UInt8> & Sendable, _ options: PutOptions = PutOptions()
    ) async throws -> Key {
        try Task.checkCancellation()
        let began = engine.uptime.uptime()
        let bytes = body as? [UInt8] ?? Array(body)
        let digest = Digest.of(bytes)
        let limit = try inlineLimit(engine.budget())
        let make: @Sendable () throws -> PendingPut = { [self] in
            try makePut(of: bytes, Key(digest), options, .known(digest), inlineLimit: limit)
        }
        let put = try bytes.count <= limit ? make() : await IOPool.shared.run(make)
        return try await complete(put, since: began).key
    }

    /// Stores the bytes of a span under their own digest, `sha256:` and 64 hexadecimal digits. The memory need not
    /// outlive the call.
    /// - Parameters:
    ///   - body: the bytes; may be empty.
    ///   - options: lifetime, tags, metadata, policy. Default: no tags, and the store's lifetime.
    /// - Returns: the key.
    /// - Throws: the errors of `put(_:for:_:digest:)`.
    public func putByContent(_ body: RawSpan, _ options: PutOptions = PutOptions()) throws -> Key {
        try body.withUnsafeBytes { try putByContent($0, options) }
    }

    /// A writer that stores its body under the digest of the written bytes: `commit()` returns the digest, and
    /// `Key(digest)` is the key.
    /// - Parameters:
    ///   - options: as for `put`. Default: no tags, and the store's lifetime.
    ///   - length: the length the body will have; nil (the default) if not known. Its room is reserved immediately, so
    ///     that a body that does not fit fails early.
    ///   - digest: the SHA-256 the body will have; nil (the default) if not known.
    /// - Returns: a writer without bytes.
    /// - Throws: `invalidArgument`, `tooLarge`, `closed`, `readOnly`.
    public func writerByContent(
        _ options: PutOptions = PutOptions(), length: ByteCount? = nil, digest: Digest? = nil
    ) throws -> BodyWriter {
        _ = try writing()
        return try BodyWriter(store: self, key: nil, options: options, length: length, digest: digest)
    }
}

extension Key {
    /// The key under which `Store.putByContent` stores a body: `sha256:` and 64 hexadecimal digits.
    /// - Parameter digest: SHA-256 of the body.
    public init(_ digest: Digest) { self.init("sha256:" + digest.hexadecimal) }

    /// A key that no entry has: `urn:uuid:` and a random UUID (RFC 9562, version 4).
    public static func unique() -> Key {
        var generator = SystemRandomNumberGenerator()
        let high = (generator.next() & 0xFFFF_FFFF_FFFF_0FFF) | 0x4000
        let low = (generator.next() & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000
        let digits = Array(Layout.hex(high, width: 16) + Layout.hex(low, width: 16))
        let parts = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }
        return Key("urn:uuid:" + parts.joined(separator: "-"))
    }
}
