import LMDB

/// One write transaction on a store, and what has to happen to files before and after its commit.
///
/// Counters are loaded when it begins and written back by `finish()`. All changes to an entry's rows go through here,
/// so that invariants I1 to I5 (`docs/architecture.md`) hold at every commit.
final class Mutation {
    let index: Index
    let transaction: WriteTransaction
    /// Counters as they will be after the commit.
    var state: StoreState
    /// Store time of this transaction.
    let now: Timestamp

    /// Body files that lost their last entry: renamed to `trash/` just before the commit.
    private(set) var deadFiles: [BlobRecord] = []
    /// Body files that the commit makes part of the store: renamed into `blobs/` right after it.
    private(set) var newFiles: [BlobRecord] = []
    /// Staged files that turned out to be duplicates: unlinked after the commit.
    private(set) var surplusFiles: [StagedFile] = []
    /// Body files of others' puts that a durable put shares, and that may not be synced yet.
    private(set) var sharedDurably: [BlobRecord] = []
    /// True if a durable put is among the changes.
    private(set) var isDurable = false
    /// Staged bytes that the commit moves from this process's reservation into the counters.
    private(set) var stagedBytes: Int64 = 0
    /// Pages of inline bodies written, and an upper bound of other pages touched.
    private(set) var writtenPages = 0
    /// Pages that removals set free, which the commit has to list.
    var freedPages = 0

    /// Stamp of the entry that was put last: it must not make room for itself.
    private(set) var lastPut: UInt64 = 0

    /// Rows of leased entries that displacement has passed by, so that it looks at each once in a transaction.
    var passed: [Database: [UInt8]] = [:]

    /// Rows of an order that led to no entry and were removed.
    var removedRows = 0

    private let original: StoreState

    private let files: StoreFiles

    init(index: Index, files: StoreFiles, transaction: WriteTransaction, now: Timestamp) throws {
        self.index = index
        self.files = files
        self.transaction = transaction
        self.now = now
        state = try index.state(transaction.reading)
        original = state
    }

    var reading: ReadTransaction { transaction.reading }

    /// Writes the counters, if they changed.
    func finish() throws {
        state.clock = max(state.clock, now.microseconds)
        if state == original { return }
        // A new reading of the clock alone is not worth a commit.
        var comparable = state
        comparable.clock = original.clock
        if comparable == original, writtenPages == 0 {
            state.clock = original.clock
            return
        }
        try transaction.put(index.meta, Index.stateKey, state.bytes)
    }

    /// Every change counts the pages it may copy: one path from root to leaf in each tree it touches.
    func noteChange(trees: Int) { writtenPages += trees * 3 }

    // MARK: Entries

    /// The record under `key`; nil if there is none or it is damaged.
    func record(_ key: [UInt8]) throws -> EntryRecord? {
        guard let raw = try reading.get(index.entries, key) else { return nil }
        try reading.checkHead(of: raw, keyCount: key.count)
        return EntryRecord(raw)
    }

    /// The transaction has a change whose caller waits until it survives power loss.
    func noteDurable() { isDurable = true }

    /// Stores an entry, replacing the one under the same key.
    /// - Parameter inherited: what it takes over from an entry in memory. Nil: from what the index has under its key.
    func put(_ put: PendingPut, pinnedByTag: Bool, inheriting inherited: PendingPut.Inheritance? = nil) throws {
        let key = put.indexKey
        if put.isDurable { isDurable = true }
        if put.removal != nil { try remove(key) }
        var new = EntryRecord()
        new.blob = try acquire(put)
        new.id = state.nextID
        new.stamp = takeStamp()
        lastPut = new.stamp
        new.length = put.length
        new.stored = put.stored.microseconds
        new.accessed = put.accessed.microseconds
        new.created = (inherited?.created ?? put.created).microseconds
        new.expires = put.expires.microseconds
        new.hits = put.hits
        new.version = put.version
        new.policy = put.options.storagePolicy
        new.session = put.options.storagePolicy == .session ? put.session : 0
        new.isPinned = put.isPinned || inherited?.isPinned ?? false
        new.isPinnedByTag = pinnedByTag
        new.tags = put.options.tags
        new.metadata = put.options.metadata
        if IndexKey.isLong(put.key) { new.longKey = put.key.bytes }
        new.seal(for: key, put.digest)
        state.logicalBytes &+= new.length
        let count = new.byteCount
        let present = try key.withUnsafeBytes {
            try transaction.insert(index.entries, $0, count: count) { [new] in new.write(to: $0) }
        }
        if let present {
            // A record that cannot be read is replaced all the same; the rows it leaves are for `Check` to find.
            try reading.checkHead(of: present, keyCount: key.count)
            let old = EntryRecord(present)
            new.id = old?.id ?? takeID()
            if let old, put.overwrites(old.version) {
                new.created = old.created
                new.isPinned = new.isPinned || old.isPinned
            }
            new.reseal(for: key)
            if let old {
                try deleteRows(of: old)
                try release(old.blob)
                state.logicalBytes &-= old.length
            }
            try transaction.put(index.entries, key, new.bytes)
        } else {
            _ = takeID()
            state.entryCount &+= 1
        }
        try insertRows(of: new, key: key)
        writtenPages += count / index.environment.pageSize
        noteChange(trees: 6)
    }

    /// Removes the entry under a key, if it is of a version that the removal is for.
    func remove(_ removal: PendingRemoval) throws {
        let key = IndexKey.bytes(for: removal.key)
        if removal.versions != nil, let record = try record(key), !removal.covers(record.version) { return }
        try remove(key)
    }

    /// Removes the entry under an index key; nil if there is none.
    /// - Parameter isWanted: false for an entry that stays, as one does that cannot be read. Nil: any.
    @discardableResult
    func remove(_ key: [UInt8], where isWanted: ((EntryRecord) -> Bool)? = nil) throws -> EntryRecord? {
        guard let row = try key.withUnsafeBytes({ try transaction.position(index.entries, $0) }) else { return nil }
        let record: EntryRecord?
        do {
            defer { row.close() }
            try reading.checkHead(of: row.value, keyCount: key.count)
            record = EntryRecord(row.value)
            if let isWanted, !(record.map(isWanted) ?? false) { return nil }
            try row.delete()
        }
        state.entryCount &-= 1
        noteChange(trees: 5)
        // A damaged record cannot say which rows are its own; `Check` finds and removes those.
        guard let record else { return nil }
        try deleteRows(of: record)
        try release(record.blob)
        state.logicalBytes &-= record.length
        return record
    }

    /// Changes fields of an entry that its rows do not depend on, or whose rows `change` may move.
    /// False if there is no such entry.
    @discardableResult
    func update(_ key: [UInt8], _ change: (inout EntryRecord) throws -> Void) throws -> Bool {
        guard let old = try record(key) else { return false }
        var new = old
        try change(&new)
        guard new != old else { return true }
        new.reseal(for: key)
        try deleteRows(of: old)
        try insertRows(of: new, key: key)
        try transaction.put(index.entries, key, new.bytes)
        writtenPages += new.byteCount / index.environment.pageSize
        noteChange(trees: 4)
        return true
    }

    /// Moves the entry that was at `stamp` to the young end of the access order. False if it is gone or has moved.
    @discardableResult
    func touch(stamp: UInt64, hits: UInt32, accessed: Timestamp) throws -> Bool {
        var home = index.recency
        var found = try reading.get(home, stamp)
        if found == nil {
            home = index.pinned
            found = try reading.get(home, stamp)
        }
        guard let found, let raw = try reading.get(index.entries, found), EntryView(raw)?.stamp == stamp else {
            return false
        }
        try reading.checkHead(of: raw, keyCount: found.count)
        // Values point into pages that a change may move or free.
        try withCopy(of: found) { key in
            try withCopy(of: raw) { record in
                try transaction.delete(home, stamp)
                let fresh = takeStamp()
                EntryRecord.touch(record, stamp: fresh, hits: hits, accessed: accessed.microseconds)
                try appendStamp(home, fresh, UnsafeRawBufferPointer(key))
                try transaction.put(index.entries, UnsafeRawBufferPointer(key), UnsafeRawBufferPointer(record))
            }
        }
        noteChange(trees: 2)
        return true
    }

    private func withCopy<R>(
        of bytes: UnsafeRawBufferPointer, _ body: (UnsafeMutableRawBufferPointer) throws -> R
    ) rethrows -> R {
        try withUnsafeTemporaryAllocation(byteCount: bytes.count, alignment: 8) { copy in
            copy.copyMemory(from: bytes)
            return try body(copy)
        }
    }

    private func takeID() -> UInt64 {
        defer { state.nextID &+= 1 }
        return state.nextID
    }

    func takeStamp() -> UInt64 {
        defer { state.nextStamp &+= 1 }
        return state.nextStamp
    }

    // MARK: Conditions

    /// Uses the entry that a put would find in its way: true if a lookup by a caller that sees these versions would be
    /// a hit.
    /// - Parameter isDurable: the caller relies on the body to survive power loss.
    func useFreshEntry(_ key: [UInt8], isDurable: Bool, where sees: (UInt16) -> Bool) throws -> Bool {
        guard let record = try record(key), sees(record.version), !record.isExpired(at: now),
            let head = try blob(record.blob), !head.isDamaged
        else { return false }
        // A file that a power loss may have damaged is compared when it is read, as for every lookup.
        if head.location == .file {
            guard try files.blobStatus(head)?.size == Int64(clamping: head.storedLength) else { return false }
            if isDurable { sharedDurably.append(head) }
        }
        return try touch(stamp: record.stamp, hits: 0, accessed: now)
    }

    /// A put's body is not needed after all.
    func drop(_ body: PendingPut.Body) {
        if case .staged(let file) = body { surplusFiles.append(file) }
    }

    /// Removes the entries with some content; returns how many.
    /// - Parameter known: index keys where they are most likely to be found.
    func remove(content digest: Digest, _ known: [[UInt8]]) throws -> Int {
        guard let row = try digest.withBytes({ try reading.get(index.digests, $0) }).flatMap(DigestRecord.init) else {
            return 0
        }
        var count = 0
        for key in known where try remove(key, where: { $0.blob == row.blob }) != nil { count += 1 }
        guard try digest.withBytes({ try reading.get(index.digests, $0) }) != nil else { return count }
        // Entries that were stored since the others were looked for.
        var others: [[UInt8]] = []
        try index.forEachEntry(reading) { if $1.blob == row.blob { others.append(Array($0)) } }
        for key in others where try remove(key) != nil { count += 1 }
        return count
    }

    // MARK: Rows that follow from a record

    func insertRows(of record: EntryRecord, key: [UInt8]) throws {
        passed = [:]
        try key.withUnsafeBytes { try appendStamp(record.isKept ? index.pinned : index.recency, record.stamp, $0) }
        if record.expires != .max, !record.isKept {
            try transaction.put(index.expiry, Index.expiryKey(record.expires, id: record.id), key)
        }
        for tag in record.tags { try transaction.put(index.tags, Index.tagKey(tag, id: record.id), key) }
        if record.session != 0 {
            try transaction.put(index.sessions, Index.sessionKey(record.session, id: record.id), key)
        }
    }

    private func deleteRows(of record: EntryRecord) throws {
        try transaction.delete(record.isKept ? index.pinned : index.recency, record.stamp)
        if record.expires != .max, !record.isKept {
            try transaction.delete(index.expiry, Index.expiryKey(record.expires, id: record.id))
        }
        for tag in record.tags { try transaction.delete(index.tags, Index.tagKey(tag, id: record.id)) }
        if record.session != 0 {
            try transaction.delete(index.sessions, Index.sessionKey(record.session, id: record.id))
        }
    }

    /// Fresh stamps are the greatest, so the row is appended; one that returns from the other tree may not be.
    private func appendStamp(_ database: Database, _ stamp: UInt64, _ key: UnsafeRawBufferPointer) throws {
        if stamp == state.nextStamp &- 1 {
            do {
                return try transaction.append(database, stamp, count: key.count) { $0.copyBytes(from: key) }
            } catch let error as LMDBError where error.isKeyThere {
                // A damaged row has a stamp that was not given yet. It must not make every put fail.
            }
        }
        try withUnsafeBytes(of: stamp) { try transaction.put(database, $0, key) }
    }

    // MARK: Blobs

    /// The blob with the body of `put`, with one more reference; stored now if no blob has these bytes.
    private func acquire(_ put: PendingPut) throws -> UInt64 {
        let digest = put.digest
        let fresh = DigestRecord(blob: state.nextID, references: 1)
        let present = try digest.withBytes {
            try transaction.insert(index.digests, $0, count: DigestRecord.length) { fresh.write(to: $0) }
        }
        // A row that leads to a body of another digest is damaged: that body is left alone, and `Check` counts again.
        if let present, var shared = DigestRecord(present), case let head = try blob(shared.blob),
            head.map({ $0.digest == digest }) ?? true
        {
            shared.references &+= 1
            try writeDigest(digest, shared)
            if let head, try isSound(head) {
                if case .staged(let file) = put.body { surplusFiles.append(file) }
                if put.isDurable, head.location == .file { sharedDurably.append(head) }
            } else {
                if let head {
                    forget(head)
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
        let id = takeID()
        try storeBlob(id, put, replacing: false)
        return id
    }

    /// The record of a blob that may be replaced or deleted next; nil if there is none, or it cannot be read.
    private func blob(_ id: UInt64) throws -> BlobRecord? {
        guard let raw = try reading.get(index.blobs, id) else { return nil }
        try reading.checkHead(of: raw, keyCount: 8)
        return BlobRecord(raw)
    }

    /// The digest of a blob; nil if there is no such blob, or its record cannot be read.
    func digest(ofBlob id: UInt64) throws -> Digest? { try blob(id)?.digest }

    /// True if a body that is there may stand for one that is put now: its file has not vanished, nor lost bytes to a
    /// power loss as far as is known. Otherwise the bytes at hand replace it.
    private func isSound(_ head: BlobRecord) throws -> Bool {
        if head.isDamaged { return false }
        guard head.location == .file else { return true }
        if state.isSuspect(epoch: head.epoch) { return false }
        return try files.blobStatus(head)?.size == Int64(clamping: head.storedLength)
    }

    private func storeBlob(_ id: UInt64, _ put: PendingPut, replacing: Bool) throws {
        var head = BlobRecord(digest: put.digest)
        head.length = put.length
        head.storedLength = put.length
        switch put.body {
        case .inline(let body):
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
            writtenPages += count / index.environment.pageSize + 2
        case .staged(let file):
            head.location = .file
            head.allocated = UInt64(file.allocated)
            head.epoch = state.epoch
            head.token = file.token
            try transaction.replace(index.blobs, id, count: head.headLength) { head.write(to: $0) }
            try noteUnpublished(head, id)
            newFiles.append(head)
            stagedBytes += file.reserved
            state.fileAllocated &+= head.allocated
            state.fileCount &+= 1
        }
        state.blobCount &+= 1
        state.storedBytes &+= head.storedLength
    }

    /// Gives a body file the row that it has until a checkpoint has synced it and its name.
    func noteUnpublished(_ head: BlobRecord, _ id: UInt64) throws {
        try transaction.put(index.unpublished, head.token.indexKey, bigEndian(id))
    }

    /// Takes a blob out of the counters.
    private func forget(_ head: BlobRecord) {
        state.blobCount &-= 1
        state.storedBytes &-= head.storedLength
        if head.location == .file {
            state.fileAllocated &-= head.allocated
            state.fileCount &-= 1
        }
    }

    /// Drops one reference, and with the last one the blob.
    private func release(_ id: UInt64) throws {
        guard let blob = try withUnsafeBytes(of: id, { try transaction.position(index.blobs, $0) }) else { return }
        defer { blob.close() }
        try reading.checkHead(of: blob.value, keyCount: 8)
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
    func deleteBlob(_ id: UInt64, _ head: BlobRecord) throws {
        try transaction.delete(index.blobs, id)
        try noteDeletion(of: head)
    }

    /// What follows from the removal of a blob's record.
    private func noteDeletion(of head: BlobRecord) throws {
        forget(head)
        switch head.location {
        case .inline:
            freedPages += Int(head.storedLength.asBytes) / index.environment.pageSize + 1
        case .file:
            try transaction.delete(index.unpublished, head.token.indexKey)
            if !head.isDamaged { deadFiles.append(head) }
        }
    }

    /// Marks a blob whose bytes are lost: entries that use it become misses, and the next put of these bytes heals it.
    /// The caller has moved the file away.
    func markDamaged(_ id: UInt64) throws {
        guard var head = try blob(id), !head.isDamaged else { return }
        forget(head)
        head.isDamaged = true
        head.allocated = 0
        head.storedLength = 0
        state.blobCount &+= 1
        if head.location == .file {
            state.fileCount &+= 1
            try transaction.delete(index.unpublished, head.token.indexKey)
        }
        try transaction.replace(index.blobs, id, count: head.headLength) { head.write(to: $0) }
        noteChange(trees: 2)
    }

    /// Replaces a file blob's record; for corrections of its allocated size and for moves out of suspicion.
    func rewrite(_ id: UInt64, _ old: BlobRecord, _ new: BlobRecord) throws {
        state.fileAllocated = state.fileAllocated &- old.allocated &+ new.allocated
        try transaction.replace(index.blobs, id, count: new.headLength) { new.write(to: $0) }
        noteChange(trees: 1)
    }

    func writeDigest(_ digest: Digest, _ record: DigestRecord) throws {
        try digest.withBytes { key in
            try record.withBytes { try transaction.put(index.digests, key, $0) }
        }
    }
}
