/// Options of a put: attributes to keep with the body, and its durability.
public struct PutOptions: Sendable, Hashable {
    /// How long the entry is fresh. Default: the store's.
    public var lifetime: Lifetime
    /// The storage policy: it decides if the entry is kept across sessions, and on disk at all. Default: permanent.
    public var storagePolicy: StoragePolicy
    /// Names under which the entry can be listed and removed with others: 1 to 200 bytes of UTF-8 each, no NUL, at most
    /// 4,096 of them and 32,768 bytes together, where each tag counts one byte more than its length. Tags that begin
    /// with `larder:` are reserved and refused.
    public var tags: [String]
    /// The caller's own bytes, such as HTTP status and fields: at most 1 MiB.
    public var metadata: [UInt8]
    /// Keeps the entry out of displacement. Overwriting a pinned entry leaves it pinned.
    public var isPinned: Bool
    /// The durability of the put. Nil: the store's default. An entry of policy `memoryOnly` cannot be `durable`.
    public var durability: Durability?
    /// Whether the body is stored compressed. Nil: as `Configuration.compression` says.
    public var compression: Compression?
    /// For the modules of Larder, and entries that have such names already.
    package var mayUseReservedNames = false
    /// The body is not embedded, however small: other entries are put with its digest later.
    package var isShared = false

    /// Options; every one has a default.
    /// - Parameters:
    ///   - lifetime: how long the entry is fresh. Default: the store's.
    ///   - storagePolicy: decides if the entry is kept across sessions, and on disk at all. Default: permanent.
    ///   - tags: names shared with other entries, within the limits of `tags`. Default: none.
    ///   - metadata: the caller's own bytes, at most 1 MiB. Default: none.
    ///   - isPinned: true keeps the entry out of displacement. Default: false.
    ///   - durability: the durability of the put. Nil (the default): as `Configuration.durability` says.
    ///   - compression: whether the body is stored compressed. Nil (the default): as `Configuration.compression` says.
    public init(
        lifetime: Lifetime = .standard, storagePolicy: StoragePolicy = .permanent, tags: [String] = [],
        metadata: [UInt8] = [], isPinned: Bool = false, durability: Durability? = nil, compression: Compression? = nil
    ) {
        self.lifetime = lifetime
        self.storagePolicy = storagePolicy
        self.tags = tags
        self.metadata = metadata
        self.isPinned = isPinned
        self.durability = durability
        self.compression = compression
    }

    /// These options, for an entry with reserved names.
    package var withReservedNames: PutOptions {
        var options = self
        options.mayUseReservedNames = true
        return options
    }

    /// These options, for an entry whose body other entries are to share.
    package var withSharedBody: PutOptions {
        var options = self
        options.isShared = true
        return options
    }

    static let maximumMetadata = 1 << 20
    static let maximumTagLength = 200
    static let maximumTags = 4_096
    static let maximumTagBytes = 32_768

    /// True if an entry can have all of these tags.
    package static func canHold(tags: [String]) -> Bool {
        tags.count <= maximumTags && bytes(of: tags) <= maximumTagBytes
    }

    private static func bytes(of tags: [String]) -> Int { tags.reduce(0) { $0 + 1 + $1.utf8.count } }

    func validate(key: Key) throws(LarderError) {
        try key.validate()
        if storagePolicy == .memoryOnly, durability == .durable {
            throw LarderError(
                .invalidArgument,
                "\(key) cannot be `memoryOnly` and `durable`: an entry that is never written does not survive anything",
                key: key)
        }
        if metadata.count > Self.maximumMetadata {
            throw LarderError(
                .tooLarge,
                "the metadata of \(key) has \(metadata.count) bytes; the most is \(Self.maximumMetadata) (1 MiB): "
                    + "store it as a body of its own",
                key: key)
        }
        if !mayUseReservedNames { try ReservedNames.refuse(key) }
        for tag in tags {
            try Self.validate(tag: tag)
            if !mayUseReservedNames { try ReservedNames.refuse(tag: tag) }
        }
        if !Self.canHold(tags: tags) {
            throw LarderError(
                .tooLarge,
                "\(key) has \(tags.count) tags of \(Self.bytes(of: tags)) bytes; the most is \(Self.maximumTags) tags "
                    + "and \(Self.maximumTagBytes) bytes",
                key: key)
        }
    }

    /// For a tag of the caller: refuses reserved ones.
    package static func validate(callersTag tag: String) throws(LarderError) {
        try validate(tag: tag)
        try ReservedNames.refuse(tag: tag)
    }

    static func validate(tag: String) throws(LarderError) {
        if tag.isEmpty || tag.utf8.count > maximumTagLength || tag.utf8.contains(0) {
            throw LarderError(
                .invalidArgument,
                "'\(Key(tag))' is not a tag: a tag has 1 to \(maximumTagLength) bytes of UTF-8 and no NUL")
        }
    }
}
