import Larder

/// The entries of a store as values of a type. A value that was decoded stays in the store's memory, and is found there
/// by the digest of its body: it is never that of a body that was replaced, removed or has expired, also when another
/// process did it.
///
/// Decoded values share `Configuration.memoryLimit` with all handles of the store in this process, and leave by what
/// they cost and how often they are asked for; see `Statistics.memoryTier`. The value that is put is not kept: a reader
/// gets what the codec makes of the body, in this process as in every other.
public struct Values<Codec: ValueCodec>: Sendable {
    /// The type of the values.
    public typealias Value = Codec.Value

    /// The store of the entries.
    public let store: Store
    /// What makes bodies of values, and values of bodies.
    public let codec: Codec
    private let kind: HeldKind<Value>

    init(_ store: Store, _ codec: Codec) {
        self.store = store
        self.codec = codec
        kind = store.heldKind(of: codec)
    }

    // MARK: Reading

    /// The value under `key`; nil if there is no fresh entry, or its body is not such a value: the log says why, and
    /// ``result(for:)``. Counts as an access.
    /// - Parameter key: the key of the entry.
    /// - Throws: as `Store.get`.
    @available(*, noasync, message: "Use the asynchronous form, which waits off the cooperative threads.")
    public func get(_ key: Key) throws -> Value? {
        if let value = try held(key) { return value }
        guard let entry = try store.get(key), !entry.stands(for: Computed.nothingTag) else { return nil }
        return try value(of: entry)
    }

    /// The value under `key`; nil if there is no fresh entry, or its body is not such a value: the log says why, and
    /// ``result(for:)``. Counts as an access.
    ///
    /// A body in a file is read on a thread that may wait for the disk. The codec runs on the thread of the caller.
    /// - Parameter key: the key of the entry.
    /// - Throws: as `Store.get`.
    public func get(_ key: Key) async throws -> Value? {
        try Task.checkCancellation()
        if let value = try held(key) { return value }
        guard let entry = try await store.get(key), !entry.stands(for: Computed.nothingTag) else { return nil }
        return try await value(of: entry)
    }

    /// The value under `key`, or the codec's error that says why its body is not a value; nil if there is no fresh
    /// entry. Counts as an access.
    /// - Parameter key: the key of the entry.
    /// - Throws: as `Store.get`.
    public func result(for key: Key) async throws -> Result<Value, any Error>? {
        try Task.checkCancellation()
        if let value = try held(key) { return .success(value) }
        guard let entry = try await store.get(key), !entry.stands(for: Computed.nothingTag) else { return nil }
        return try await decoded(entry)
    }

    /// The value under `key`; computed and stored first if there is no fresh one. However many callers of this process
    /// ask, it is computed once; `Store.value(for:_:orStore:)` says what other processes do, and what happens to a
    /// value that cannot be stored. An entry whose body is not a value is computed again.
    /// - Parameters:
    ///   - key: the key to look up.
    ///   - options: for other processes that need the value at the same time, and for the use of a stale value.
    ///   - compute: makes the value.
    /// - Returns: the value; nil if the computation returned ``ComputedValue/nothing(for:)``, now or within the
    ///   duration it gave.
    /// - Throws: as `Store.value(for:_:orStore:)`, and the errors of the codec: of `encode`, and of `decode` for a body
    ///   that was computed just now.
    public func value(
        for key: Key, _ options: ReadThroughOptions = ReadThroughOptions(),
        orStore compute: @escaping @Sendable (Key) async throws -> ComputedValue<Value>
    ) async throws -> Value? {
        try Task.checkCancellation()
        if options.staleFor == nil, let value = try held(key) { return value }
        var isSecond = false
        var options = options
        while true {
            let entry = try await store.value(for: key, options) { [self] key in
                let computed = try await compute(key)
                guard let value = computed.value else { return .nothing(for: computed.nothingFor) }
                let bytes = try codec.encode(value)
                // Once, for all who wait.
                hold(try bytes.withUnsafeBytes { try codec.decode($0.bytes) }, Digest.of(bytes), bytes.count)
                return Computed(bytes, computed.options)
            }
            guard let entry else { return nil }
            let result = try await decoded(entry)
            if isSecond { return try result.get() }
            if case .success(let value) = result { return value }
            // It is computed as if it had expired, so that what outlives an overwrite stays.
            try await store.update(entry, metadata: entry.metadata, lifetime: .until(Timestamp(microseconds: 0)))
            isSecond = true
            options.staleFor = nil
        }
    }

    // MARK: Writing

    /// Stores a value under `key`, in place of what is there.
    /// - Parameters:
    ///   - value: becomes the body.
    ///   - key: the key of the entry, 1 to 65,536 bytes.
    ///   - options: lifetime, tags, metadata, policy. Default: no tags, and the store's lifetime.
    /// - Returns: the SHA-256 of the body.
    /// - Throws: as `Store.put`, and the errors of the codec: then nothing has changed.
    @discardableResult
    @available(*, noasync, message: "Use the asynchronous form, which waits off the cooperative threads.")
    public func put(_ value: Value, for key: Key, _ options: PutOptions = PutOptions()) throws -> Digest {
        try store.put(codec.encode(value), for: key, options)
    }

    /// Stores a value under `key`, in place of what is there. Parameters, result and errors are those of the
    /// synchronous form.
    @discardableResult
    public func put(_ value: Value, for key: Key, _ options: PutOptions = PutOptions()) async throws -> Digest {
        try await store.put(codec.encode(value), for: key, options)
    }

    // MARK: Decoded values

    private func held(_ key: Key) throws -> Value? {
        var value: Value?
        _ = try store.visitHeld(key, kind) { value = $1.value as? Value }
        return value
    }

    private func hold(_ value: Value, _ digest: Digest, _ length: Int) {
        store.hold(value, kind, of: digest, cost: max(0, codec.cost(of: value, length: length)))
    }

    private func value(of entry: Entry) throws -> Value? {
        let digest = entry.digest
        if let value = store.held(kind, of: digest) { return value }
        return reported(decoded(try entry.body.bytes(), digest), entry)
    }

    private func value(of entry: Entry) async throws -> Value? { reported(try await decoded(entry), entry) }

    private func decoded(_ entry: Entry) async throws -> Result<Value, any Error> {
        let digest = entry.digest
        if let value = store.held(kind, of: digest) { return .success(value) }
        return decoded(try await entry.body.bytes(), digest)
    }

    /// Held only if the bytes are those of the digest: a later put of the same body must not find what a damaged file
    /// was decoded to.
    private func decoded(_ bytes: [UInt8], _ digest: Digest) -> Result<Value, any Error> {
        Result {
            let value = try bytes.withUnsafeBytes { try codec.decode($0.bytes) }
            if Digest.of(bytes) == digest { hold(value, digest, bytes.count) }
            return value
        }
    }

    private func reported(_ result: Result<Value, any Error>, _ entry: Entry) -> Value? {
        switch result {
        case .success(let value): return value
        case .failure(let error):
            store.report(undecodable: entry.key, as: "\(Value.self)", error)
            return nil
        }
    }
}

extension Store {
    /// The entries of this store as values of a type.
    ///
    ///     let feeds = store.values(of: Feed.self, codec: .json())
    ///     let feed = try await feeds.get("https://a.example/feed.json")
    /// - Parameters:
    ///   - type: of the values.
    ///   - codec: makes bodies of values, and values of bodies.
    public func values<Codec: ValueCodec>(of type: Codec.Value.Type, codec: Codec) -> Values<Codec> {
        Values(self, codec)
    }

    /// The entries of this store as values of a type, in JSON.
    /// - Parameter type: of the values.
    public func values<Value: Codable & Sendable>(of type: Value.Type) -> Values<JSONCodec<Value>> {
        Values(self, JSONCodec())
    }
}

/// The result of a computation of ``Values/value(for:_:orStore:)``.
public struct ComputedValue<Value: Sendable>: Sendable {
    let value: Value?
    let options: PutOptions
    let nothingFor: Duration

    /// A value to store.
    /// - Parameters:
    ///   - value: the value.
    ///   - options: lifetime, tags, metadata, policy. Default: no tags, and the store's lifetime.
    public init(_ value: Value, _ options: PutOptions = PutOptions()) {
        self.value = value
        self.options = options
        nothingFor = .zero
    }

    private init(nothingFor: Duration) {
        value = nil
        options = PutOptions()
        self.nothingFor = nothingFor
    }

    /// There is nothing under the key, and it need not be computed again for `duration`: see `Computed.nothing(for:)`.
    /// - Parameter duration: how long the store remembers this.
    public static func nothing(for duration: Duration) -> ComputedValue {
        ComputedValue(nothingFor: duration)
    }
}

extension Entry {
    fileprivate func stands(for tag: String) -> Bool { body.length == .zero && attributes.tags.contains(tag) }
}
