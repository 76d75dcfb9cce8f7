import LMDB

extension Check {
    /// What a walk over all entries adds up to.
    private struct Tally {
        var entries: UInt64 = 0
        var logicalBytes: UInt64 = 0
        var references: [UInt64: UInt64] = [:]
        var recency = 0
        var pinned = 0
        var expiry = 0
        var tags = 0
        var sessions = 0
        /// Bodies that are part of their entries' records.
        var embedded: UInt64 = 0
        var strays: UInt64 = 0
        // Over all bodies.
        var blobs: UInt64 = 0
        var storedBytes: UInt64 = 0
        var compressionGain: UInt64 = 0
        var fileAllocated: UInt64 = 0
        var files: UInt64 = 0
        var highestID: UInt64 = 0
        var highestStamp: UInt64 = 0
        var versions: Set<UInt16> = []
        /// Files of later epochs have a row in `unpublished`.
        var syncedEpoch: UInt64 = 0
    }

    /// I1 to I5, as far as the index alone can tell.
    mutating func checkIndex() throws {
        let before = self
        try Yielding.run(engine.files) { poll in
            self = before
            try checkIndex(poll)
        }
    }

    /// - Parameter poll: called between rows; throws when a writer waits for what the snapshot holds.
    private mutating func checkIndex(_ poll: () throws -> Void) throws {
        try engine.readLong { transaction in
            let index = engine.index
            var tally = Tally()
            let state = try index.state(transaction)
            tally.syncedEpoch = state.syncedEpoch
            try transaction.withCursor(index.entries, showsUnreadable: true) { cursor in
                var pair = try cursor.first()
                while let (key, value) = pair {
                    try poll()
                    try checkEntry(Array(key), value, &tally, transaction)
                    pair = try cursor.next()
                }
            }
            try transaction.withCursor(index.blobs) { cursor in
                var pair = try cursor.first()
                while let (key, value) = pair {
                    try poll()
                    try checkBlob(key.field(0), value, &tally, transaction)
                    pair = try cursor.next()
                }
            }
            try checkCounts(tally, transaction)
            try checkUnpublished(transaction)
            for version in tally.versions.subtracting(try index.versions(transaction).values) where version != 0 {
                disagreement(.I5, "the application version \(version) of entries has no name")
            }
            checkState(tally, state)
        }
    }

    private mutating func checkEntry(
        _ indexKey: [UInt8], _ value: UnsafeRawBufferPointer, _ tally: inout Tally, _ transaction: ReadTransaction
    ) throws {
        let index = engine.index
        report.entryCount += 1
        if report.entryCount % 1024 == 0 { try Cancellation.check() }
        tally.entries += 1
        guard let record = EntryRecord(value) else {
            return disagreement(.I1, "the record of \(Key(bytes: indexKey)) cannot be read")
        }
        let key = record.key(indexKey)
        if EntryView(value)?.isIntact(under: indexKey) != true { disagreement(.I1, "the record of \(key) is damaged") }
        if IndexKey.bytes(for: key) != indexKey { disagreement(.I1, "\(key) stands under another key in the index") }
        tally.logicalBytes &+= record.length
        if record.embedded == nil { tally.references[record.blob, default: 0] += 1 }
        tally.highestID = max(tally.highestID, record.id, record.blob)
        tally.highestStamp = max(tally.highestStamp, record.stamp)
        tally.versions.insert(record.version)
        if let body = record.embedded {
            report.blobCount += 1
            tally.embedded += 1
            if record.isStray(under: indexKey) { tally.strays += 1 }
            tally.storedBytes &+= record.length
            if readsBodies {
                report.hashedBytes = ByteCount(report.hashedBytes.bytes + Int64(body.bytes.count))
                if !body.isSound {
                    violation(.I7, "the body of \(key) is damaged: its bytes in the index do not match")
                    needsRebuild = true
                }
            }
        } else if let head = try index.blob(record.blob, transaction) {
            if !record.fits(head.digest) {
                disagreement(.I1, "the body of \(key) is that of another entry")
            } else if !record.isOf(head) {
                disagreement(.I1, "the bytes that are said to be there of \(key) are not those of its body")
            }
            if head.length != record.length {
                disagreement(.I1, "\(key) has a length of \(record.length), its body \(head.length)")
            }
        } else {
            disagreement(.I1, "the body of \(key), blob \(record.blob), has no readable record")
        }
        let order = record.isKept ? index.pinned : index.recency
        if record.isKept { tally.pinned += 1 } else { tally.recency += 1 }
        if try transaction.get(order, record.stamp).map({ $0.elementsEqual(indexKey) }) != true {
            disagreement(.I4, "\(key) is not in the access order under its stamp \(record.stamp)")
        }
        func expect(_ database: Database, _ row: [UInt8], _ what: String) throws {
            if try transaction.get(database, row).map({ $0.elementsEqual(indexKey) }) != true {
                disagreement(.I5, "\(key) is missing in \(what)")
            }
        }
        if record.expires != .max, !record.isKept {
            tally.expiry += 1
            try expect(index.expiry, Index.expiryKey(record.expires, id: record.id), "the order of expiry")
        }
        for tag in Set(record.tags) {
            tally.tags += 1
            try expect(index.tags, Index.tagKey(tag, id: record.id), "the tag '\(tag)'")
        }
        if record.session != 0 {
            tally.sessions += 1
            try expect(index.sessions, Index.sessionKey(record.session, id: record.id), "its session")
        }
        let isPinnedByTag = try record.tags.contains { try transaction.get(index.pinnedTags, Array($0.utf8)) != nil }
        if isPinnedByTag && !record.isPinnedByTag {
            disagreement(.I5, "\(key) has a pinned tag and is not pinned by it")
        }
    }

    private mutating func checkBlob(
        _ id: UInt64, _ value: UnsafeRawBufferPointer, _ tally: inout Tally, _ transaction: ReadTransaction
    ) throws {
        report.blobCount += 1
        tally.blobs += 1
        tally.highestID = max(tally.highestID, id)
        guard let head = BlobRecord(value) else { return disagreement(.I1, "the record of blob \(id) cannot be read") }
        if head.encoding == .partial { report.partialCount += 1 }
        tally.storedBytes &+= head.storedLength
        tally.compressionGain &+= head.compressionGain
        if head.location == .file {
            tally.files += 1
            tally.fileAllocated &+= head.allocated
            if !head.isDamaged, head.epoch > tally.syncedEpoch,
                try transaction.get(engine.index.unpublished, head.token.indexKey) == nil
            {
                disagreement(.I5, "the file of blob \(id) may not be on disk, and no checkpoint would find it")
            }
        }
        let record = try engine.index.shared(head.digest, transaction)
        let uses = tally.references[id] ?? 0
        if record?.blob != id {
            disagreement(.I2, "the digest \(head.digest) does not lead to blob \(id), which has it")
        } else if record?.references != uses || uses == 0 {
            disagreement(.I2, "the blob \(head.digest) counts \(record?.references ?? 0) references and has \(uses)")
        }
    }

    /// Each row that follows from an entry was found: if there are as many rows as that, there are no others.
    private mutating func checkCounts(_ tally: Tally, _ transaction: ReadTransaction) throws {
        let index = engine.index
        let expected: [(Database, Int, Invariant, String)] = [
            (index.recency, tally.recency, .I4, "the access order"),
            (index.pinned, tally.pinned, .I4, "the pinned entries"),
            (index.expiry, tally.expiry, .I5, "the order of expiry"),
            (index.tags, tally.tags, .I5, "the tags"),
            (index.sessions, tally.sessions, .I5, "the sessions"),
            (index.digests, Int(clamping: tally.blobs), .I2, "the digests"),
        ]
        for (database, count, invariant, what) in expected {
            let rows = try transaction.statistics(database).entries
            if rows != count { disagreement(invariant, "\(what) have \(rows) rows instead of \(count)") }
        }
    }

    private mutating func checkUnpublished(_ transaction: ReadTransaction) throws {
        try engine.index.walkUnpublished(transaction) { row, blob in
            if blob == nil {
                let name = StagingToken(indexKey: row)?.name ?? "an unreadable name"
                disagreement(.I5, "a row of unpublished files leads from \(name) to a blob that is not of that file")
            }
            return true
        }
    }

    private mutating func checkState(_ tally: Tally, _ state: StoreState) {
        let counters: [(String, UInt64, UInt64)] = [
            ("entryCount", state.entryCount, tally.entries),
            ("blobCount", state.blobCount, tally.blobs + tally.embedded),
            ("logicalBytes", state.logicalBytes, tally.logicalBytes),
            ("storedBytes", state.storedBytes, tally.storedBytes),
            ("compressionGain", state.compressionGain, tally.compressionGain),
            ("fileAllocated", state.fileAllocated, tally.fileAllocated),
            ("fileCount", state.fileCount, tally.files),
            ("strayCount", state.strayCount, tally.strays),
        ]
        for (name, counter, recount) in counters where counter != recount {
            disagreement(.I3, "the counter \(name) is \(counter), a recount gives \(recount)")
        }
        if state.nextID <= tally.highestID {
            disagreement(.I3, "the next id is \(state.nextID), and \(tally.highestID) is in use")
        }
        if state.nextStamp <= tally.highestStamp {
            disagreement(.I3, "the next stamp is \(state.nextStamp), and \(tally.highestStamp) is in use")
        }
    }
}
