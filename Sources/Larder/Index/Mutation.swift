import LMDB

/// One write transaction on a store, and what has to happen to files before and after its commit.
///
/// Counters are loaded when it begins and written back by `finish()`. All changes to an entry's rows go through here,
/// so that invariants I1 to I5 (`docs/architecture.md`) hold at every commit.
final class Mutation {
    let index: Index
    let files: StoreFiles
    let transaction: WriteTransaction
    /// What the changes come to.
    private let tally: MutationTally
    /// Changes to blobs and their files.
    let blobs: BlobChanges
    /// Store time of this transaction.
    let now: Timestamp

    /// True if a durable put is among the changes.
    private(set) var isDurable = false
    /// Stamp of the entry that was put last: it must not make room for itself.
    private(set) var lastPut: UInt64 = 0

    /// Rows of leased entries that displacement has passed by, so that it looks at each once in a transaction.
    var passed: [Database: [UInt8]] = [:]

    /// Pins that end with an entry; read when displacement first needs them.
    var pinOwners: PinOwners?

    /// The stamps that it has replaced.
    private(set) var moves: [UInt64: UInt64] = [:]
    /// Those that earlier ones have.
    var earlierMoves: StampMoves?

    /// Rows of an order that led to no entry and were removed.
    var removedRows = 0

    /// Where content was put in this transaction; only where a removal of content follows.
    var keysOfContent: [Digest: [[UInt8]]]?

    /// True if what is pending is in the index after the commit: the batch's puts and removals come before its jobs.
    var completesPending = false

    private let original: StoreState

    init(index: Index, files: StoreFiles, transaction: WriteTransaction, now: Timestamp) throws {
        self.index = index
        self.files = files
        self.transaction = transaction
        self.now = now
        original = try index.state(transaction.reading)
        tally = MutationTally(original)
        blobs = BlobChanges(index: index, files: files, transaction: transaction, tally: tally)
    }

    var reading: ReadTransaction { transaction.reading }

    /// Counters as they will be after the commit.
    var state: StoreState {
        get { tally.state }
        _modify { yield &tally.state }
    }

    /// Pages written, an upper bound: no page of a tree is copied twice.
    func writtenPages() throws -> Int {
        if tally.treePages < Self.fewPages { return tally.bodyPages + tally.treePages }
        var all = 0
        for database in index.databases { all += try reading.statistics(database).treePages }
        return tally.bodyPages + min(tally.treePages, all)
    }

    /// Pages of the trees that are not worth counting them all.
    private static let fewPages = 8

    /// Pages set free.
    var freedPages: Int { tally.freedPages }

    /// Writes the counters, if they changed.
    func finish() throws {
        state.clock = max(state.clock, now.microseconds)
        if state == original { return }
        // A new reading of the clock alone is not worth a commit.
        var comparable = state
        comparable.clock = original.clock
        comparable.clockOffset = original.clockOffset
        if comparable == original, tally.bodyPages + tally.treePages == 0 {
            state = comparable
            return
        }
        try transaction.put(index.meta, Index.stateKey, state.bytes)
    }

    /// Every change counts the pages it may copy: one path from root to leaf in each tree it touches.
    func noteChange(trees: Int) { tally.noteChange(trees: trees) }

    /// Pages that a removal of many entries sets free.
    func noteFreed(pages: Int) { tally.freedPages += pages }

    // MARK: Entries

    /// The record under `key`; nil if there is none or it is damaged.
    func record(_ key: [UInt8]) throws -> EntryRecord? {
        guard let raw = try reading.get(index.entries, key) else { return nil }
        try reading.checkHead(of: raw, keyCount: key.count)
        return EntryRecord(raw)
    }

    /// As above; nil also if its seal does not match: what it says must not be sealed again, nor followed.
    func intactRecord(_ key: [UInt8]) throws -> EntryRecord? {
        guard let raw = try reading.get(index.entries, key) else { return nil }
        try reading.checkHead(of: raw, keyCount: key.count)
        return intactRecord(raw, key)
    }

    private func intactRecord(_ raw: UnsafeRawBufferPointer, _ key: [UInt8]) -> EntryRecord? {
        EntryView(raw)?.isIntact(under: key) == true ? EntryRecord(raw) : nil
    }

    /// The transaction has a change whose caller waits until it survives power loss.
    func noteDurable() { isDurable = true }

    /// Stores an entry, replacing the one under the same key.
    /// - Parameters:
    ///   - content: its bytes, where those are not the put's own.
    func put(_ put: PendingPut, content: BlobChanges.SharedBody? = nil) throws {
        let key = put.indexKey
        if put.isDurable { isDurable = true }
        if put.removal != nil { try remove(key) }
        var new = EntryRecord()
        new.stamp = takeStamp()
        lastPut = new.stamp
        new.length = content?.length ?? put.length
        new.stored = put.stored.microseconds
        new.accessed = put.accessed.microseconds
        new.created = put.created.microseconds
        new.expires = put.expires.microseconds
        new.hits = put.hits
        new.version = put.version
        new.policy = put.options.storagePolicy
        new.session = put.options.storagePolicy == .session ? put.session : 0
        new.isPinned = put.isPinned
        new.isPinnedByTag = try hasPinnedTag(put.options.tags)
        new.tags = put.options.tags
        new.metadata = put.options.metadata
        if IndexKey.isLong(put.key) { new.longKey = put.key.bytes }
        new.progress = put.progress
        try setBody(of: &new, key, put, content)
        new.id = state.nextID
        new.seal(for: key, put.digest)
        state.logicalBytes &+= new.length
        let count = new.byteCount
        let present = try key.withUnsafeBytes {
            try transaction.insert(index.entries, $0, count: count) { [new] in new.write(to: $0) }
        }
        var hasBlob = new.embedded == nil
        if let present {
            // A damaged record is replaced all the same; the rows it leaves are for `Check` to find.
            try reading.checkHead(of: present, keyCount: key.count)
            let old = intactRecord(present, key)
            new.id = old?.id ?? takeID()
            if let old, put.overwrites(old.version) {
                new.created = old.created
                new.isPinned = new.isPinned || old.isPinned
            }
            new.reseal(for: key)
            if let old {
                hasBlob = hasBlob || old.embedded == nil
                try deleteRows(of: old)
                try releaseBody(of: old, under: key)
                state.logicalBytes &-= old.length
            }
            try transaction.put(index.entries, key, new.bytes)
        } else {
            _ = takeID()
            state.entryCount &+= 1
        }
        try insertRows(of: new, key: key)
        keysOfContent?[put.digest, default: []].append(key)
        tally.noteValue(bytes: count, index)
        noteChange(trees: hasBlob ? 6 : 4)
    }

    /// Puts the body of an entry into its record, or the record of a blob beside it.
    private func setBody(
        of new: inout EntryRecord, _ key: [UInt8], _ put: PendingPut, _ content: BlobChanges.SharedBody?
    ) throws {
        switch content {
        case .blob(let id, _): return new.blob = id
        case .embedded(let bytes): new.embedded = EntryRecord.Embedded(bytes, put.digest)
        case nil:
            if case .inline(let bytes) = put.body, put.isEmbeddable {
                new.embedded = EntryRecord.Embedded(bytes, put.digest)
                // One that does not fit a page beside its key and metadata would have pages of its own.
                if index.fitsPage(key, new) { break }
                new.embedded = nil
            }
            return new.blob = try blobs.acquire(put)
        }
        state.blobCount &+= 1
        state.storedBytes &+= new.length
        if new.isStray(under: key) { state.strayCount &+= 1 }
    }

    /// What an entry that goes, or gets another body, leaves of the one it has.
    private func releaseBody(of record: EntryRecord, under key: [UInt8]) throws {
        guard record.embedded != nil else { return try blobs.release(record.blob) }
        noteFreed(pages: 1)
        state.blobCount &-= 1
        state.storedBytes &-= record.length
        if record.isStray(under: key) { state.strayCount &-= 1 }
    }

    /// Removes the entry under a key, if it is of a version that the removal is for; false if there is none.
    @discardableResult
    func remove(_ removal: PendingRemoval) throws -> Bool {
        let key = IndexKey.bytes(for: removal.key)
        if removal.versions != nil, let record = try record(key), !removal.covers(record.version) { return false }
        return try remove(key) != nil
    }

    /// Removes the entry under an index key; nil if there is none.
    /// - Parameter isWanted: false for an entry that stays, as one does whose record is damaged. Nil: any.
    @discardableResult
    func remove(_ key: [UInt8], where isWanted: ((EntryRecord) -> Bool)? = nil) throws -> EntryRecord? {
        guard let row = try key.withUnsafeBytes({ try transaction.position(index.entries, $0) }) else { return nil }
        let record: EntryRecord?
        do {
            defer { row.close() }
            try reading.checkHead(of: row.value, keyCount: key.count)
            record = intactRecord(row.value, key)
            if let isWanted, !(record.map(isWanted) ?? false) { return nil }
            try row.delete()
        }
        state.entryCount &-= 1
        noteChange(trees: 5)
        // A damaged record cannot say which rows are its own; `Check` finds and removes those.
        guard let record else { return nil }
        try deleteRows(of: record)
        try releaseBody(of: record, under: key)
        state.logicalBytes &-= record.length
        return record
    }

    /// Changes fields of an entry that its rows do not depend on, or whose rows `change` may move.
    /// False if there is no such entry.
    @discardableResult
    func update(_ key: [UInt8], _ change: (inout EntryRecord) throws -> Void) throws -> Bool {
        guard let old = try intactRecord(key) else { return false }
        var new = old
        try change(&new)
        guard new != old else { return true }
        new.reseal(for: key)
        if new.stamp != old.stamp { moves[old.stamp] = new.stamp }
        try deleteRows(of: old)
        try insertRows(of: new, key: key)
        try transaction.put(index.entries, key, new.bytes)
        tally.noteValue(bytes: new.byteCount, index)
        noteChange(trees: 4)
        return true
    }

    /// Moves the entry that was at `stamp` to the young end of the access order. False if it is gone or has moved.
    @discardableResult
    func touch(stamp: UInt64, hits: UInt32, accessed: Timestamp) throws -> Bool {
        var home = index.recency
        var found = try withUnsafeBytes(of: stamp) { try transaction.position(home, $0) }
        if found == nil {
            home = index.pinned
            found = try withUnsafeBytes(of: stamp) { try transaction.position(home, $0) }
        }
        guard let found else { return false }
        // Values point into pages that a change may move or free.
        return try withCopy(of: found.value) { key in
            do {
                defer { found.close() }
                guard let entry = try transaction.position(index.entries, UnsafeRawBufferPointer(key)) else {
                    return false
                }
                defer { entry.close() }
                guard EntryView(entry.value)?.stamp == stamp else { return false }
                try reading.checkHead(of: entry.value, keyCount: key.count)
                try withCopy(of: entry.value) { record in
                    EntryRecord.touch(record, stamp: takeStamp(), hits: hits, accessed: accessed.microseconds)
                    try entry.replace(UnsafeRawBufferPointer(record))
                }
                try found.delete()
            }
            try appendStamp(home, state.nextStamp &- 1, UnsafeRawBufferPointer(key))
            moves[stamp] = state.nextStamp &- 1
            noteChange(trees: 2)
            return true
        }
    }

    private func withCopy<R>(
        of bytes: UnsafeRawBufferPointer, _ body: (UnsafeMutableRawBufferPointer) throws -> R
    ) rethrows -> R {
        try withUnsafeTemporaryAllocation(byteCount: bytes.count, alignment: 8) { copy in
            copy.copyMemory(from: bytes)
            return try body(copy)
        }
    }

    /// A number for an entry, a blob, or the row of a lease.
    func takeID() -> UInt64 { tally.takeID() }

    /// The highest stamp so far: the young end of the access order.
    func takeStamp() -> UInt64 { tally.takeStamp() }

    // MARK: Conditions

    /// Uses the entry that a put would find in its way: true if a lookup by a caller that sees these versions would be
    /// a hit.
    /// - Parameter isDurable: the caller relies on the body to survive power loss.
    func useFreshEntry(_ key: [UInt8], isDurable: Bool, where sees: (UInt16) -> Bool) throws -> Bool {
        guard let record = try intactRecord(key), sees(record.version), !record.isExpired(at: now),
            let head = try head(of: record), head.isComplete, record.progress == nil, record.isOf(head)
        else { return false }
        // A file that a power loss may have damaged is compared when it is read, as for every lookup.
        if head.location == .file {
            guard try blobs.isWhole(head) else { return false }
            if isDurable { blobs.noteSharedDurably(head) }
        }
        return try touch(stamp: record.stamp, hits: 0, accessed: now)
    }

    /// Removes the entries with some content; returns how many.
    /// - Parameter known: index keys under which it was found before. Those of this transaction are known anyway.
    func remove(content digest: Digest, _ known: [[UInt8]]) throws -> Int {
        let blob = try index.shared(digest, reading)?.blob
        func has(_ record: EntryRecord) -> Bool {
            record.embedded.map { record.fits(digest) && $0.digest == digest } ?? (record.blob == blob)
        }
        var count = 0
        for key in known + (keysOfContent?[digest] ?? []) where try remove(key, where: has) != nil { count += 1 }
        guard try digest.withBytes({ try reading.get(index.digests, $0) }) != nil else { return count }
        // Entries that were stored by others since these were looked for.
        var others: [[UInt8]] = []
        try index.forEachEntry(reading) { if has($1) { others.append(Array($0)) } }
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

    func deleteRows(of record: EntryRecord) throws {
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

    /// What is known of the body of an entry, which may be removed next; nil if there is no such blob, or its record
    /// cannot be read.
    func head(of record: EntryRecord) throws -> BlobRecord? {
        try record.embedded.map(BlobRecord.init(embedded:)) ?? blobs.record(record.blob)
    }

    /// The digest of the body of an entry; nil as above.
    func digest(of record: EntryRecord) throws -> Digest? { try head(of: record)?.digest }
}
