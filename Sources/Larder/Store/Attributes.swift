/// All that a store knows about an entry, except its body.
public struct Attributes: Sendable, Hashable {
    /// The whole key.
    public let key: Key
    /// SHA-256 of the body.
    public let digest: Digest
    /// Length of the body.
    public let length: ByteCount
    /// Bytes stored for the body, which other entries may share: its length unless it is compressed.
    public let storedLength: ByteCount
    /// The relation of the stored bytes to the body.
    public let encoding: BodyEncoding
    /// True if the body lives in the index, false if in a file of its own.
    public let isInline: Bool
    /// Number of entries that share the body; 1 or more. Nil if it was not looked up: in `Entry.attributes`.
    public let references: Int?
    /// When the key was first put (and not removed since).
    public let created: Timestamp
    /// When this body was put.
    public let stored: Timestamp
    /// The latest committed put or hit.
    public let lastAccess: Timestamp
    /// When the entry stops being fresh; nil: never.
    public let expires: Timestamp?
    /// Hits since it was put.
    public let hitCount: Int
    /// The storage policy.
    public let storagePolicy: StoragePolicy
    /// True if displacement skips the entry: it is pinned itself, or through one of its tags.
    public let isPinned: Bool
    /// Its tags, as put.
    public let tags: [String]
    /// The caller's bytes, as put.
    public let metadata: [UInt8]
    /// The application version that put it; nil: none. `Store.applicationVersions()` has the names.
    public let version: ApplicationVersion?
    /// The leases in effect on the entry when it was looked up, those of its tags and of its content included; empty if
    /// there are none. Nil if they were not looked up: in `Entry.attributes` and in listings.
    public let leases: [ActiveLease]?
}

extension Attributes {
    /// When the last of the leases ends, unless it is released or extended earlier; nil if there is none, or `leases`
    /// is nil.
    public var leasedUntil: Timestamp? { leases?.map(\.expires).max() }
}

extension Attributes {
    init(key: Key, record: EntryRecord, head: BlobRecord, references: UInt64?, leases: [ActiveLease]? = nil) {
        self.key = key
        digest = head.digest
        length = ByteCount(Int64(clamping: record.length))
        storedLength = ByteCount(Int64(clamping: head.storedLength))
        encoding = head.encoding
        isInline = head.location == .inline
        self.references = references.map { Int(clamping: $0) }
        created = Timestamp(microseconds: record.created)
        stored = Timestamp(microseconds: record.stored)
        lastAccess = Timestamp(microseconds: record.accessed)
        expires = record.expires == .max ? nil : Timestamp(microseconds: record.expires)
        hitCount = Int(record.hits)
        storagePolicy = record.policy
        isPinned = record.isKept
        tags = record.tags
        metadata = record.metadata
        version = ApplicationVersion(record.version)
        self.leases = leases
    }

    init(
        pending put: PendingPut, _ known: PendingPut.Inheritance, references: Int?, leases: [ActiveLease]? = nil
    ) {
        key = put.key
        digest = put.digest
        length = ByteCount(Int64(clamping: put.length))
        storedLength = length
        encoding = .identity
        if case .inline = put.body { isInline = true } else { isInline = false }
        self.references = references
        created = known.created
        stored = put.stored
        lastAccess = put.accessed
        expires = put.expires == .distantFuture ? nil : put.expires
        hitCount = Int(put.hits)
        storagePolicy = put.options.storagePolicy
        isPinned = known.isPinned
        tags = put.options.tags
        metadata = put.options.metadata
        version = ApplicationVersion(put.version)
        self.leases = leases
    }
}
