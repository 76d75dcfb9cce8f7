import Locks

/// A put that this process sees already and the index does not yet.
final class PendingPut: PendingChange, @unchecked Sendable {
    // SAFETY: `created`, `isPinned` and `removal` change only before another thread can find the put: in the call that
    // makes it, or under the lock of the `PendingSet` or the `MemoryTable` that it is being added to, which a thread
    // that finds it there takes, too. The rest is immutable, atomic, or an `EngineMutex`; see also `PendingChange`.
    enum Body {
        case inline([UInt8])
        case staged(StagedFile)
        /// The bytes that the store has with its digest.
        case content
    }

    private let bodyDigest: BodyDigest
    let length: UInt64
    let body: Body
    /// What is stored for a body that is not in a file, if that is shorter.
    let compressed: CompressedForm?
    let options: PutOptions
    let stored: Timestamp
    let expires: Timestamp
    let version: UInt16
    let session: UInt64
    private let hitCount = Atomic<UInt32>(0)
    private let latestUse: Atomic<UInt64>
    private let latestAccess: Atomic<Int64>
    /// When the key was first put, as far as the pending set knows.
    private(set) var created: Timestamp
    /// Pinned by its own options, or by those of a put it replaced.
    private(set) var isPinned: Bool
    /// The removal of the key since the last commit: what the index has under it is to be forgotten, not inherited.
    private(set) var removal: PendingRemoval?
    /// For a body in progress: which bytes are there.
    let progress: EntryRecord.Progress?
    /// True if the body may become part of the entry's record, where it fits a page with it.
    let isEmbeddable: Bool
    /// True if its file was that of a body in progress, which the index has under its key.
    let completesPartial: Bool
    /// What readers need, and may change.
    private struct Reading {
        /// The file that becomes its body.
        var file: OwnedDescriptor?
        /// What the entry takes over from the one that the index has under its key, once that was looked up.
        var inheritance: Inheritance?
    }

    private let reading: EngineMutex<Reading>

    init(
        key: Key, digest: BodyDigest, length: UInt64, body: Body, options: PutOptions, stored: Timestamp,
        expires: Timestamp, version: UInt16, session: UInt64, isDurable: Bool, uptime: UInt64, owner: UInt32,
        progress: EntryRecord.Progress? = nil, completesPartial: Bool = false, isEmbeddable: Bool = false,
        compressed: CompressedForm? = nil
    ) {
        bodyDigest = digest
        self.length = length
        self.compressed = compressed
        if case .staged(let file) = body {
            self.body = .staged(file.closed)
            reading = EngineMutex(Reading(file: file.descriptor))
        } else {
            self.body = body
            reading = EngineMutex(Reading())
        }
        self.options = options
        self.stored = stored
        self.expires = expires
        self.version = version
        self.session = session
        self.progress = progress
        self.completesPartial = completesPartial
        self.isEmbeddable = isEmbeddable
        created = stored
        isPinned = options.isPinned
        latestUse = Atomic(uptime)
        latestAccess = Atomic(stored.microseconds)
        super.init(key: key, owner: owner, isDurable: isDurable)
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

    /// The file that becomes its body, to read it. Nil where the body is not a file, and after `closeFile()`.
    var openFile: OwnedDescriptor? { reading.withLock { $0.file } }

    /// The index has the entry: readers open its file by name. What it takes is free as soon as it is displaced.
    func closeFile() { reading.withLock { $0.file = nil } }

    /// The file that becomes its body.
    var stagedFile: StagedFile? {
        guard case .staged(let file) = body else { return nil }
        return openFile.map { file.opened(as: $0) } ?? file
    }

    /// The bytes of the body, where they are in memory and whole, and are stored as they are.
    var bytesAtHand: [UInt8]? {
        guard case .inline(let bytes) = body, compressed == nil, progress == nil else { return nil }
        return bytes
    }

    var indexKey: [UInt8] { IndexKey.bytes(for: key) }

    /// Replaces what was to be done under the same key: what outlives an overwrite is taken over.
    func supersede(_ earlier: PendingPut) {
        answer(for: earlier)
        removal = earlier.removal
        inherit(from: earlier)
    }

    /// As above, where the key was to be removed.
    func supersede(_ earlier: PendingRemoval) {
        answer(for: earlier)
        removal = earlier
    }

    // MARK: What outlives an overwrite

    /// What an entry takes over from the one that it overwrites.
    struct Inheritance: Sendable {
        var created: Timestamp
        var isPinned: Bool
    }

    /// True if an entry of `version` is one that this put overwrites, as far as its store can see; others it replaces
    /// without taking anything over.
    func overwrites(_ version: UInt16) -> Bool { self.version == 0 || self.version == version }

    /// Takes over from an earlier put of the key. Called under the pending set's lock, or before any other thread has
    /// the put.
    func inherit(from old: PendingPut) {
        guard overwrites(old.version) else { return }
        inherit(Inheritance(created: old.created, isPinned: old.isPinned))
    }

    /// What an entry that overwrites this one takes over.
    var legacy: Inheritance { Inheritance(created: created, isPinned: isPinned) }

    /// As above, from an entry of the index.
    func inherit(_ old: Inheritance) {
        created = old.created
        isPinned = isPinned || old.isPinned
    }

    /// Readers see the entry before its commit as it will be afterwards. `look` looks into the index, once.
    func inheritance(_ look: () throws -> Inheritance?) rethrows -> Inheritance {
        if let known = reading.withLock({ $0.inheritance }) { return known }
        var result = Inheritance(created: created, isPinned: isPinned)
        if removal == nil, let old = try look() {
            result.created = old.created
            result.isPinned = result.isPinned || old.isPinned
        }
        return reading.withLock { reading in
            if let known = reading.inheritance { return known }
            reading.inheritance = result
            return result
        }
    }

    /// The same entry with other fields; its hits and times stay.
    func copy(
        expires: Timestamp? = nil, isPinned: Bool? = nil, metadata: [UInt8]? = nil,
        use: (uptime: UInt64, moment: Timestamp)? = nil, body: Body? = nil
    ) -> PendingPut {
        var options = options
        if let metadata { options.metadata = metadata }
        let copy = PendingPut(
            key: key, digest: bodyDigest, length: length, body: body ?? self.body, options: options, stored: stored,
            expires: expires ?? self.expires, version: version, session: session, isDurable: isDurable,
            uptime: use?.uptime ?? lastUse, owner: owner, progress: progress, completesPartial: completesPartial,
            isEmbeddable: isEmbeddable, compressed: compressed)
        if body == nil, let openFile { copy.reading.withLock { $0.file = openFile } }
        copy.created = created
        copy.isPinned = isPinned ?? self.isPinned
        copy.hitCount.store(hits, ordering: .relaxed)
        copy.latestAccess.store((use?.moment ?? accessed).microseconds, ordering: .relaxed)
        return copy
    }

    /// Bytes the pending set holds in memory for it.
    var memory: Int {
        let tags = options.tags.reduce(0) { $0 + $1.utf8.count + 32 }
        let record = 512 + key.bytes.count + options.metadata.count + tags
        if case .inline(let bytes) = body { return bytes.count + record }
        return record
    }
}
