import Synchronization

/// A put that this process sees already and the index does not yet.
final class PendingPut: @unchecked Sendable {
    // SAFETY: immutable but for atomics, for `followsRemoval`, which is set under PendingSet's lock before the committer
    // can see the put, and for `failure`, which the committer sets before it declares the batch over.
    enum Body {
        case inline([UInt8])
        case staged(StagedFile)
    }

    let key: Key
    private let bodyDigest: BodyDigest
    let length: UInt64
    let body: Body
    let options: PutOptions
    let stored: Timestamp
    let expires: Timestamp
    let version: UInt16
    let session: UInt64
    /// The caller waits until the entry survives power loss.
    let isDurable: Bool
    private let hitCount = Atomic<UInt32>(0)
    private let latestUse: Atomic<UInt64>
    private let latestAccess: Atomic<Int64>
    /// Why the put could not be committed.
    var failure: LarderError?
    /// When the key was first put, as far as the pending set knows.
    private(set) var created: Timestamp
    /// Pinned by its own options, or by those of a put it replaced.
    private(set) var isPinned: Bool
    /// The key was removed since the last commit: what the index has under it is to be forgotten, not inherited.
    private(set) var followsRemoval = false

    /// Durable puts that this one took the place of, whose callers wait for it.
    private(set) var replacedDurably: [PendingPut] = []

    init(
        key: Key, digest: BodyDigest, length: UInt64, body: Body, options: PutOptions, stored: Timestamp,
        expires: Timestamp, version: UInt16, session: UInt64, isDurable: Bool, uptime: UInt64
    ) {
        self.key = key
        bodyDigest = digest
        self.length = length
        self.body = body
        self.options = options
        self.stored = stored
        self.expires = expires
        self.version = version
        self.session = session
        self.isDurable = isDurable
        created = stored
        isPinned = options.isPinned
        latestUse = Atomic(uptime)
        latestAccess = Atomic(stored.microseconds)
    }

    /// SHA-256 of the body: computed now if it is not known yet.
    var digest: Digest { bodyDigest.value }

    /// Hits since the put.
    var hits: UInt32 { hitCount.load(ordering: .relaxed) }

    /// Uptime of the put or of the latest hit: orders it among the other uses of its batch.
    var lastUse: UInt64 { latestUse.load(ordering: .relaxed) }

    /// Store time of the put, or of the latest hit where that is noted.
    var accessed: Timestamp { Timestamp(microseconds: latestAccess.load(ordering: .relaxed)) }

    /// Notes a hit.
    func use(at uptime: UInt64, moment: Timestamp? = nil) {
        hitCount.wrappingAdd(1, ordering: .relaxed)
        latestUse.store(uptime, ordering: .relaxed)
        if let moment { latestAccess.store(moment.microseconds, ordering: .relaxed) }
    }

    var indexKey: [UInt8] { IndexKey.bytes(for: key) }

    /// Replaces what was to be done under the same key: what outlives an overwrite is taken over.
    func supersede(_ earlier: PendingSet.Operation) {
        switch earlier {
        case .put(let old):
            created = old.created
            isPinned = isPinned || old.isPinned
            followsRemoval = old.followsRemoval
            replacedDurably = old.replacedDurably + (old.isDurable ? [old] : [])
        case .remove:
            followsRemoval = true
        }
    }

    /// Bytes the pending set holds in memory for it.
    var memory: Int {
        let tags = options.tags.reduce(0) { $0 + $1.utf8.count + 32 }
        let record = 512 + key.bytes.count + options.metadata.count + tags
        if case .inline(let bytes) = body { return bytes.count + record }
        return record
    }
}
