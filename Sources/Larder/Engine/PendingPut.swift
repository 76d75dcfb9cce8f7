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
    /// Uptime of the put or of the latest hit: orders it among the other uses of its batch.
    var lastUse: UInt64

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
        accessed = stored
        lastUse = uptime
    }

    var indexKey: [UInt8] { IndexKey.bytes(for: key) }

    /// Bytes the pending set holds in memory for it.
    var memory: Int {
        if case .inline(let bytes) = body { return bytes.count + 512 }
        return 512
    }
}
