/// A put that this process sees already and the index does not yet.
///
/// Written by the thread that puts, changed under the pending set's lock (`accessed`, `hits`, `lastUse`) until the
/// committer has taken the batch it is in.
final class PendingPut: @unchecked Sendable {
    // SAFETY: the variable fields are touched only under PendingSet's lock, or by the committer for a batch it took.
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
    var accessed: Timestamp
    var hits: UInt32 = 0
    /// When the key was first put, as far as the pending set knows.
    var created: Timestamp
    /// Pinned by its own options, or by those of a put it replaced.
    var isPinned: Bool
    /// The key was removed since the last commit: what the index has under it is to be forgotten, not inherited.
    var followsRemoval = false
    /// Uptime of the put or of the latest hit: orders it among the other uses of its batch.
    var lastUse: UInt64

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
        accessed = stored
        created = stored
        isPinned = options.isPinned
        lastUse = uptime
    }

    var indexKey: [UInt8] { IndexKey.bytes(for: key) }

    /// Replaces what was to be done under the same key: what outlives an overwrite is taken over.
    func supersede(_ earlier: PendingSet.Operation) {
        switch earlier {
        case .put(let old):
            created = old.created
            isPinned = isPinned || old.isPinned
            followsRemoval = old.followsRemoval
        case .remove:
            followsRemoval = true
        }
    }

    /// Bytes the pending set holds in memory for it.
    var memory: Int {
        if case .inline(let bytes) = body { return bytes.count + 512 }
        return 512
    }
}
