import LMDB

/// Changes to blobs in one write transaction: their records, references and `unpublished` rows, and what has to happen
/// to their files before and after the commit. A part of a `Mutation`.
final class BlobChanges {
    private let index: Index
    private let files: StoreFiles
    private let transaction: WriteTransaction
    private let tally: MutationTally

    /// Body files that lost their last entry: renamed to `trash/` just before the commit.
    private(set) var deadFiles: [BlobRecord] = []
    /// Body files that the commit makes part of the store: renamed into `blobs/` right after it.
    private(set) var newFiles: [BlobRecord] = []
    /// Files of bodies in progress that their writers leave: renamed into `blobs/`, too.
    private(set) var leftFiles: [BlobRecord] = []
    /// Staged files that turned out to be duplicates: unlinked after the commit.
    private(set) var surplusFiles: [StagedFile] = []
    /// Body files of others' puts that a durable put shares, and that may not be synced yet.
    private(set) var sharedDurably: [BlobRecord] = []
    /// Staged bytes that the commit moves from this process's reservation into the counters.
    private(set) var stagedBytes: Int64 = 0
    /// True if a file has grown that a checkpoint has to sync.
    private(set) var hasGrownFiles = false

    init(index: Index, files: StoreFiles, transaction: WriteTransaction, tally: MutationTally) {
        self.index = index
        self.files = files
        self.transaction = transaction
        self.tally = tally
    }

    // MARK: Puts

    /// The blob with the body of `put`, with one more reference; stored now if no blob has these bytes.
    func acquire(_ put: PendingPut) throws -> UInt64 {
        let digest = put.digest
        let fresh = DigestRecord(blob: tally.state.nextID, references: 1)
        let present = try digest.withBytes {
            try transaction.insert(index.digests, $0, count: DigestRecord.length) { fresh.write(to: $0) }
        }
        // A row that leads to a body of another digest is damaged: that body is left alone, and `Check` counts again.
        if let present, var shared = DigestRecord(present), case let head = try record(shared.blob),
            head.map({ $0.digest == digest }) ?? true
        {
            shared.references &+= 1
            try writeDigest(digest, shared)
            if let head, try isSound(head) {
                if let file = put.stagedFile, !put.completesPartial { surplusFiles.append(file) }
                if put.isDurable, head.location == .file { sharedDurably.append(head) }
            } else {
                if let head {
                    uncount(head)
                    if head.location == .file {
                        try transaction.delete(index.unpublished, head.token.indexKey)
                        if !head.isDamaged { deadFiles.append(head) }
                    }
                }
                try storeBlob(shared.blob, put, replacing: true)
            }
            return shared.blob
        }
        // A record that cannot be read is replaced.
        if present != nil { try writeDigest(digest, fresh) }
        let id = tally.takeID()
        try storeBlob(id, put, replacing: false)
        return id
    }

    /// The body with a digest: its blob with one more reference, or a copy of one that is embedded under the key of the
    /// digest. Nil if no put could share it: there is none, or its bytes are damaged.
    func share(_ digest: Digest, isDurable: Bool) throws -> SharedBody? {
        if let blob = try shareBlob(digest, isDurable: isDurable) { return blob }
        return try index.embedded(digest, transaction.reading).map { .embedded(Array($0)) }
    }

    private func shareBlob(_ digest: Digest, isDurable: Bool) throws -> SharedBody? {
        guard var shared = try index.shared(digest, transaction.reading), let head = try record(shared.blob),
            head.digest == digest,
            head.isComplete, try isSound(head)
        else { return nil }
        shared.references &+= 1
        try writeDigest(digest, shared)
        if isDurable, head.location == .file { sharedDurably.append(head) }
        return .blob(id: shared.blob, length: head.length)
    }

    /// The body of the entry that is stored next, which other entries have, too.
    enum SharedBody {
        /// With a reference taken.
        case blob(id: UInt64, length: UInt64)
        case embedded([UInt8])

        var length: UInt64 {
            switch self {
            case .blob(_, let length): length
            case .embedded(let bytes): UInt64(bytes.count)
            }
        }
    }

    /// The record of a blob that may be replaced or deleted next; nil if there is none, or it cannot be read.
    func record(_ id: UInt64) throws -> BlobRecord? {
        guard let raw = try transaction.reading.get(index.blobs, id) else { return nil }
        try transaction.reading.checkHead(of: raw, keyCount: 8)
        return BlobRecord(raw)
    }

    /// True if a body that is there may stand for one that is put now: its file has not vanished, nor lost bytes to a
    /// power loss as far as is known. Otherwise the bytes at hand replace it.
    private func isSound(_ head: BlobRecord) throws -> Bool {
        if head.isDamaged { return false }
        guard head.location == .file else { return true }
        if tally.state.isSuspect(epoch: head.epoch) { return false }
        return try files.hasWhole(head)
    }

    private func storeBlob(_ id: UInt64, _ put: PendingPut, replacing: Bool) throws {
        var head = BlobRecord(digest: put.digest)
        head.length = put.length
        head.storedLength = put.length
        switch put.body {
        case .content: preconditionFailure("content is shared, not stored")
        case .inline(let bytes):
            var body = bytes
            if let member = put.compressed?.value {
                body = member
                noteCompressed(&head, length: member.count)
            }
            let count = BlobRecord.inlineLength + body.count
            let fill: (UnsafeMutableRawBufferPointer) -> Void = { raw in
                head.write(to: raw)
                UnsafeMutableRawBufferPointer(rebasing: raw[BlobRecord.inlineLength...]).copyBytes(from: body)
            }
            if replacing {
                try transaction.replace(index.blobs, id, count: count, fill: fill)
            } else {
                try transaction.append(index.blobs, id, count: count, fill: fill)
            }
            tally.noteValue(bytes: count, index)
        case .staged(let file):
            if let progress = put.progress {
                head.encoding = .partial
                head.storedLength = UInt64(progress.ranges.end)
            }
            if file.encoding == .gzip { noteCompressed(&head, length: Int(file.length)) }
            head.location = .file
            head.allocated = UInt64(file.allocated)
            head.epoch = tally.state.epoch
            head.token = file.token
            try transaction.replace(index.blobs, id, count: head.headLength) { head.write(to: $0) }
            try noteUnpublished(head, id)
            // One in progress stays in `staging/` while it is written.
            if put.progress == nil { newFiles.append(head) } else { hasGrownFiles = true }
            stagedBytes += file.reserved
            tally.state.fileAllocated &+= head.allocated
            tally.state.fileCount &+= 1
        }
        tally.state.blobCount &+= 1
        tally.state.storedBytes &+= head.storedLength
        tally.state.compressionGain &+= head.compressionGain
    }

    private func noteCompressed(_ head: inout BlobRecord, length: Int) {
        head.encoding = .gzip
        head.storedLength = UInt64(length)
    }

    /// Gives a body file the row that it has until a checkpoint has synced it and its name.
    func noteUnpublished(_ head: BlobRecord, _ id: UInt64) throws {
        try transaction.put(index.unpublished, head.token.indexKey, bigEndian(id))
    }

    /// Takes a blob out of the counters.
    private func uncount(_ head: BlobRecord) {
        tally.state.blobCount &-= 1
        tally.state.storedBytes &-= head.storedLength
        tally.state.compressionGain &-= head.compressionGain
        if head.location == .file {
            tally.state.fileAllocated &-= head.allocated
            tally.state.fileCount &-= 1
        }
    }

    /// A put's body is not needed after all.
    func drop(_ body: PendingPut.Body) {
        if case .staged(let file) = body { surplusFiles.append(file) }
    }

    /// True if the file of a blob is there, and is as long as it should be.
    func isWhole(_ head: BlobRecord) throws -> Bool {
        try files.hasWhole(head)
    }

    /// A durable change relies on a file that another put wrote.
    func noteSharedDurably(_ head: BlobRecord) { sharedDurably.append(head) }

    // MARK: Removals

    /// Drops one reference, and with the last one the blob.
    func release(_ id: UInt64) throws {
        guard let blob = try withUnsafeBytes(of: id, { try transaction.position(index.blobs, $0) }) else { return }
        defer { blob.close() }
        try transaction.reading.checkHead(of: blob.value, keyCount: 8)
        guard let head = BlobRecord(blob.value) else { return }
        guard let row = try head.digest.withBytes({ try transaction.position(index.digests, $0) }) else { return }
        defer { row.close() }
        guard var shared = DigestRecord(row.value), shared.blob == id else { return }
        if shared.references > 1 {
            shared.references -= 1
            try shared.withBytes { try row.replace($0) }
            return
        }
        try row.delete()
        try blob.delete()
        try noteDeletion(of: head)
    }

    /// Removes a blob's record and, just before the commit, its file.
    func delete(_ id: UInt64, _ head: BlobRecord) throws {
        try transaction.delete(index.blobs, id)
        try noteDeletion(of: head)
    }

    /// What follows from the removal of a blob's record.
    private func noteDeletion(of head: BlobRecord) throws {
        uncount(head)
        switch head.location {
        case .inline:
            tally.freedPages += Int(head.storedLength.asBytes) / index.environment.pageSize + 1
        case .file:
            try transaction.delete(index.unpublished, head.token.indexKey)
            if !head.isDamaged { deadFiles.append(head) }
        }
    }

    /// Marks a blob whose bytes are lost: entries that use it become misses, and the next put of these bytes heals it.
    /// The caller has moved the file away.
    func markDamaged(_ id: UInt64) throws {
        guard var head = try record(id), !head.isDamaged else { return }
        uncount(head)
        head.isDamaged = true
        head.allocated = 0
        head.storedLength = 0
        tally.state.blobCount &+= 1
        if head.location == .file {
            tally.state.fileCount &+= 1
            try transaction.delete(index.unpublished, head.token.indexKey)
        }
        try transaction.replace(index.blobs, id, count: head.headLength) { head.write(to: $0) }
        tally.noteChange(trees: 2)
    }

    // MARK: Bodies in progress

    /// Notes how far a body in progress has come, and that this process no longer reserves `transferred` bytes for it.
    /// - Parameter isPublished: true if no writer has it any longer: its file is renamed into `blobs/`.
    func advance(_ id: UInt64, _ old: BlobRecord, _ new: BlobRecord, transferred: Int64, isPublished: Bool) throws {
        tally.state.storedBytes = tally.state.storedBytes &- old.storedLength &+ new.storedLength
        try rewrite(id, old, new)
        try noteUnpublished(new, id)
        stagedBytes += transferred
        hasGrownFiles = true
        if isPublished { leftFiles.append(new) }
    }

    /// Gives the file of a body in progress the name of another writer, which takes it over.
    func rename(_ id: UInt64, _ old: BlobRecord, _ new: BlobRecord) throws {
        try transaction.delete(index.unpublished, old.token.indexKey)
        try advance(id, old, new, transferred: 0, isPublished: false)
    }

    /// Deletes the rows of a body in progress whose file becomes that of a complete one.
    func detach(_ id: UInt64, _ head: BlobRecord) throws {
        try transaction.delete(index.blobs, id)
        try head.digest.withBytes { _ = try transaction.delete(index.digests, $0) }
        try transaction.delete(index.unpublished, head.token.indexKey)
        uncount(head)
        tally.noteChange(trees: 3)
    }

    /// Removes a file that was detached, and is not needed after all.
    func discard(_ head: BlobRecord, transferred: Int64) {
        deadFiles.append(head)
        stagedBytes += transferred
    }

    /// Marks a body in progress whose bytes are lost, or may be, and removes its file.
    func drop(_ id: UInt64, _ head: BlobRecord) throws {
        try markDamaged(id)
        deadFiles.append(head)
    }

    /// Replaces a file blob's record; see `charge` for its allocated size.
    func rewrite(_ id: UInt64, _ old: BlobRecord, _ new: BlobRecord) throws {
        tally.state.fileAllocated = tally.state.fileAllocated &- old.allocated &+ new.allocated
        try transaction.replace(index.blobs, id, count: new.headLength) { new.write(to: $0) }
        tally.noteChange(trees: 1)
    }

    /// Charges a file with what it takes on disk.
    func charge(_ blob: NumberedBlob, _ allocated: Int64) throws {
        var charged = blob.head
        charged.allocated = UInt64(max(0, allocated))
        if charged != blob.head { try rewrite(blob.id, blob.head, charged) }
    }

    func writeDigest(_ digest: Digest, _ record: DigestRecord) throws {
        try digest.withBytes { key in
            try record.withBytes { try transaction.put(index.digests, key, $0) }
        }
    }
}
