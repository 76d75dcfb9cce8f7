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
    let digest: Digest
    let length: UInt64
    let body: Body
    let options: PutOptions
    let stored: Timestamp
    let expires: Timestamp
    let version: UInt16
    let session: UInt64
    private let hitCount = Atomic<UInt32>(0)
    private let latestUse: Atomic<UInt64>
    /// Why the put could not be committed.
    var failure: LarderError?

    /// True if the key was removed earlier in the batch: the entry starts anew and inherits neither pin nor creation.
    var followsRemoval = false

    init(
        key: Key, digest: Digest, length: UInt64, body: Body, options: PutOptions, stored: Timestamp,
        expires: Timestamp, version: UInt16, session: UInt64, uptime: UInt64
    ) {
        self.key = key
        self.digest = digest
        self.length = length
        self.body = body
        self.options = options
        self.stored = stored
        self.expires = expires
        self.version = version
        self.session = session
        latestUse = Atomic(uptime)
    }

    /// Hits since the put.
    var hits: UInt32 { hitCount.load(ordering: .relaxed) }

    /// Uptime of the put or of the latest hit: orders it among the other uses of its batch.
    var lastUse: UInt64 { latestUse.load(ordering: .relaxed) }

    /// Notes a hit.
    func use(at uptime: UInt64) {
        hitCount.wrappingAdd(1, ordering: .relaxed)
        latestUse.store(uptime, ordering: .relaxed)
    }

    var indexKey: [UInt8] { IndexKey.bytes(for: key) }

    /// Bytes the pending set holds in memory for it.
    var memory: Int {
        let tags = options.tags.reduce(0) { $0 + $1.utf8.count + 32 }
        let record = 512 + key.bytes.count + options.metadata.count + tags
        if case .inline(let bytes) = body { return bytes.count + record }
        return record
    }
}
