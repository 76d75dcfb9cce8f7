/// Writes that are committed together: see `Store.write(_:durability:)`.
///
///     var batch = WriteBatch()
///     for (key, bytes) in pages { batch.put(bytes, for: key, unlessPresent: true) }
///     batch.lease(digest: manifest, for: .seconds(600))
///     batch.change("https://example.com/old", EntryChange(lifetime: .duration(.seconds(60))))
///     try store.write(batch).throwIfFailed()
///
/// A batch is a value: it may be built on any thread, kept, and written several times. Bodies over the inline threshold
/// are written to their files with the batch, not before.
public struct WriteBatch: Sendable {
    /// What becomes a `Change` when the batch is written.
    enum Operation: Sendable {
        case put(Body, Key, PutOptions, Change.Condition)
        case change(Key, EntryChange, Change.Condition)
        case remove(Key, Change.Condition)
        case removeContent(Digest)
        case lease(Index.LeaseKind, [UInt8], Duration)
    }

    /// What a put stores.
    enum Body: Sendable {
        /// Bytes, and the digest that they are declared to have.
        case bytes([UInt8], Digest?)
        /// The body that the store has with this digest.
        case content(Digest)
    }

    private(set) var operations: [Operation] = []

    /// True if its changes, and its puts of content that is in the store, may use the headroom as removals do: the
    /// entries they leave are smaller than before. It holds for `Store.housekeepingLimit` operations.
    package var isHousekeeping = false
    /// False where `put(contentOf:)` does not find small bodies that were not put by content: to find them takes a walk
    /// over all entries.
    package var findsStrays = true

    /// An empty batch.
    public init() {}

    /// Number of operations.
    public var count: Int { operations.count }

    /// True if there are no operations. Writing an empty batch does nothing.
    public var isEmpty: Bool { operations.isEmpty }

    // MARK: Bodies

    /// Stores a body, as `Store.put(_:for:_:digest:)` does.
    ///
    /// - Parameters:
    ///   - body: the bytes, of any collection: an array is kept without a copy, others are copied.
    ///   - key: the key to store it under.
    ///   - options: as for `put`. Those of policy `memoryOnly` are refused, as they are not written; their durability
    ///     is that of the batch.
    ///   - digest: the SHA-256 the body is declared to have. Nil (the default): computed and trusted.
    ///   - unlessPresent: true keeps a fresh entry that exists when the batch is committed. Default: false.
    public mutating func put(
        _ body: some Collection<UInt8>, for key: Key, _ options: PutOptions = PutOptions(), digest: Digest? = nil,
        unlessPresent: Bool = false
    ) {
        operations.append(.put(.bytes(Array(body), digest), key, options, unlessPresent ? .vacant : .none))
    }

    /// Stores the bytes of a span, which are copied.
    ///
    /// - Parameters:
    ///   - body: the bytes.
    ///   - key: the key to store it under.
    ///   - options: as for `put`. Those of policy `memoryOnly` are refused, as they are not written; their durability
    ///     is that of the batch.
    ///   - digest: the SHA-256 the body is declared to have. Nil (the default): computed and trusted.
    ///   - unlessPresent: true keeps a fresh entry that exists when the batch is committed. Default: false.
    public mutating func put(
        _ body: RawSpan, for key: Key, _ options: PutOptions = PutOptions(), digest: Digest? = nil,
        unlessPresent: Bool = false
    ) {
        put(body.withUnsafeBytes { Array($0) }, for: key, options, digest: digest, unlessPresent: unlessPresent)
    }

    /// Stores an entry whose bytes are in the store already: nothing is read, copied or hashed.
    ///
    /// Its result is `stored`, or `absent` if no entry has this content when the batch is committed. A `put` earlier in
    /// the batch counts; one with policy `memoryOnly` does not.
    /// - Parameters:
    ///   - digest: SHA-256 of the body.
    ///   - key: the key to store it under.
    ///   - options: as for `put`. Those of policy `memoryOnly` are refused; their durability is that of the batch.
    ///   - unlessPresent: true keeps a fresh entry that exists when the batch is committed. Default: false.
    public mutating func put(
        contentOf digest: Digest, for key: Key, _ options: PutOptions = PutOptions(), unlessPresent: Bool = false
    ) {
        operations.append(.put(.content(digest), key, options, unlessPresent ? .vacant : .none))
    }

    /// As above, in place of an entry, if that is still the one that `get` returned, with the same body and metadata.
    /// Its result is `stored`, `changed` if there is another one then, or `absent` if there is none, or no entry has
    /// the content.
    /// - Parameters:
    ///   - digest: SHA-256 of the body.
    ///   - entry: the result of `get`.
    ///   - options: as above.
    package mutating func put(contentOf digest: Digest, replacing entry: Entry, _ options: PutOptions) {
        operations.append(.put(.content(digest), entry.key, options, .unchanged(.init(entry))))
    }

    /// Stores a body in place of an entry, if that is still the one that `get` returned, with the same body and
    /// metadata, fresh or expired. Its result is `stored`, `changed` if there is another one then, or `absent`. Use it
    /// for a counter, or any other value that depends on the one before.
    /// - Parameters:
    ///   - body: the bytes, of any collection: an array is kept without a copy, others are copied.
    ///   - entry: the result of `get`.
    ///   - options: as for `put`. Those of policy `memoryOnly` are refused; their durability is that of the batch.
    ///   - digest: the SHA-256 the body is declared to have. Nil (the default): computed and trusted.
    public mutating func put(
        _ body: some Collection<UInt8>, replacing entry: Entry, _ options: PutOptions = PutOptions(),
        digest: Digest? = nil
    ) {
        operations.append(.put(.bytes(Array(body), digest), entry.key, options, .unchanged(.init(entry))))
    }

    // MARK: Entries

    /// Changes whatever entry is under `key` when the batch is committed. Its result is `done`, or `absent`.
    /// - Parameters:
    ///   - key: the key of the entry.
    ///   - change: the fields to change; the body stays as it is.
    public mutating func change(_ key: Key, _ change: EntryChange) {
        operations.append(.change(key, change, .none))
    }

    /// Changes an entry if it is still the one that `get` returned, with the same body and metadata. Its result is
    /// `done`, `changed` if there is another one then, or `absent`.
    /// - Parameters:
    ///   - entry: the result of `get`.
    ///   - change: the fields to change; the body stays as it is.
    public mutating func update(_ entry: Entry, _ change: EntryChange) {
        operations.append(.change(entry.key, change, .unchanged(.init(entry))))
    }

    /// Counts as an access of the entry under `key`. Its result is `done`, or `absent`.
    /// - Parameter key: the key of the entry.
    public mutating func touch(_ key: Key) { change(key, EntryChange(isAccess: true)) }

    /// Removes the entry under `key`. Its result is `done`, or `absent`.
    /// - Parameter key: the key of the entry.
    public mutating func remove(_ key: Key) { operations.append(.remove(key, .none)) }

    /// Removes an entry if it is still the one that `get` returned, with the same body and metadata. Its result is
    /// `done`, `changed` if there is another one then, or `absent`.
    /// - Parameter entry: the result of `get`.
    public mutating func remove(_ entry: Entry) { operations.append(.remove(entry.key, .unchanged(.init(entry)))) }

    /// Removes every entry with this content, of every application version. The index leads from entries to content but
    /// not back, so this reads every entry: seconds for some millions. Its result is `done`, or `absent`.
    /// - Parameter digest: SHA-256 of the body.
    public mutating func remove(digest: Digest) { operations.append(.removeContent(digest)) }

    /// As `put(contentOf:replacing:_:)`, for an entry as a listing returned it.
    package mutating func put(contentOf digest: Digest, replacing entry: Attributes, _ options: PutOptions) {
        operations.append(.put(.content(digest), entry.key, options, .unchanged(.init(entry))))
    }

    /// As `update(_:_:)`, for an entry as a listing returned it.
    package mutating func update(_ entry: Attributes, _ change: EntryChange) {
        operations.append(.change(entry.key, change, .unchanged(.init(entry))))
    }

    /// As `remove(_:)`, for an entry as a listing returned it.
    package mutating func remove(_ entry: Attributes) {
        operations.append(.remove(entry.key, .unchanged(.init(entry))))
    }

    // MARK: Leases

    /// The longest time of a lease in a batch: 30 days.
    public static let longestLease = Duration.seconds(30 * 24 * 3600)

    /// Keeps the entry under `key` out of displacement until `duration` after the commit, by any process. The entry
    /// need not exist yet.
    ///
    /// Unlike a `Lease` it has no holder: it ends with its time, or with `Store.clear`, not when the process ends.
    /// Another lease for the same key makes it longer, never shorter. Its row takes room in the index, which
    /// displacement cannot free, so lease for as long as the work is likely to take, and again if it takes longer.
    /// - Parameters:
    ///   - key: the key of the entry.
    ///   - duration: counted from the commit, and at most `longestLease`; for a longer one the result is
    ///     `invalidArgument`. Zero or less does nothing.
    public mutating func lease(_ key: Key, for duration: Duration) {
        operations.append(.lease(.key, key.bytes, duration))
    }

    /// As `lease(_:for:)`, for all entries with this tag, including those put later.
    /// - Parameters:
    ///   - tag: 1 to 200 bytes of UTF-8, no NUL.
    ///   - duration: counted from the commit, and at most `longestLease`.
    public mutating func lease(tag: String, for duration: Duration) {
        operations.append(.lease(.tag, Array(tag.utf8), duration))
    }

    /// As `lease(_:for:)`, for all entries with this content, of every application version.
    /// - Parameters:
    ///   - digest: SHA-256 of the body.
    ///   - duration: counted from the commit, and at most `longestLease`.
    public mutating func lease(digest: Digest, for duration: Duration) {
        operations.append(.lease(.digest, digest.bytes, duration))
    }
}

/// Changes of a live entry; nil leaves a field as it is. The body stays as it is.
public struct EntryChange: Sendable, Hashable {
    /// The caller's bytes: at most 1 MiB.
    public var metadata: [UInt8]?
    /// How long the entry is fresh from the commit on.
    public var lifetime: Lifetime?
    /// Its tags, all of them, within the limits of `PutOptions.tags`.
    public var tags: [String]?
    /// `permanent` or `session`; an entry on disk cannot become `memoryOnly`.
    public var storagePolicy: StoragePolicy?
    /// True keeps the entry out of displacement, false ends that. Pins of its tags are not changed.
    public var isPinned: Bool?
    /// True counts as an access. Default: false.
    public var isAccess: Bool
    /// For the modules of Larder, and entries that have such names already.
    package var mayUseReservedNames = false

    /// These changes, for an entry with reserved names.
    package var withReservedNames: EntryChange {
        var change = self
        change.mayUseReservedNames = true
        return change
    }

    /// A change; nil leaves a field as it is.
    /// - Parameters:
    ///   - metadata: the caller's bytes, at most 1 MiB. Default: as before.
    ///   - lifetime: how long the entry is fresh from the commit on. Default: as before.
    ///   - tags: all its tags, within the limits of `PutOptions.tags`. Default: as before.
    ///   - storagePolicy: `permanent` or `session`. Default: as before.
    ///   - isPinned: true keeps the entry out of displacement, false ends that. Default: as before.
    ///   - isAccess: true counts as an access. Default: false.
    public init(
        metadata: [UInt8]? = nil, lifetime: Lifetime? = nil, tags: [String]? = nil, storagePolicy: StoragePolicy? = nil,
        isPinned: Bool? = nil, isAccess: Bool = false
    ) {
        self.metadata = metadata
        self.lifetime = lifetime
        self.tags = tags
        self.storagePolicy = storagePolicy
        self.isPinned = isPinned
        self.isAccess = isAccess
    }

    /// Throws what is wrong with the fields, whatever the entry is.
    func validate(_ key: Key) throws(LarderError) {
        var options = PutOptions(tags: tags ?? [], metadata: metadata ?? [])
        // Lifetimes of Larder's own entries may change.
        options.mayUseReservedNames = mayUseReservedNames || tags == nil && metadata == nil
        try options.validate(key: key)
        if storagePolicy == .memoryOnly {
            throw LarderError(
                .invalidArgument, "\(key) cannot become `memoryOnly`: put it again with that policy", key: key)
        }
    }
}

/// The result of one operation of a `WriteBatch`.
public enum WriteResult: Sendable {
    /// The body with this SHA-256 is stored.
    case stored(Digest)
    /// The entry is changed or removed, or the lease taken.
    case done
    /// A fresh entry exists; nothing was stored.
    case present
    /// There is no such entry, or only one of another application version.
    case absent
    /// The entry has been replaced; nothing was changed.
    case changed
    /// The operation cannot be done: `invalidArgument`, `tooLarge`, `digestMismatch`, `noSpace`, `io`. This does not
    /// affect the others.
    case failed(LarderError)

    /// True if the store is now in the state the operation asks for: `stored`, `done` or `present`.
    public var isSuccess: Bool {
        switch self {
        case .stored, .done, .present: true
        case .absent, .changed, .failed: false
        }
    }
}

extension Sequence where Element == WriteResult {
    /// Throws the error of the first operation that could not be done, if there is one. The results `absent`, `changed`
    /// and `present` are answers, not errors.
    /// - Throws: `invalidArgument`, `tooLarge`, `digestMismatch`, `noSpace`, `io`. The other operations are done.
    public func throwIfFailed() throws(LarderError) {
        for case .failed(let error) in self { throw error }
    }
}
