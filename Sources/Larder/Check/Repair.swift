import LMDB

/// Makes everything that follows from entries and blobs again: orders, tags, sessions, digests, references, counters.
///
/// Part of one transaction: others see the store before or after it. What cannot be kept is an entry whose record
/// cannot be read, or whose body is gone; files that lose their record become orphans, which the check removes.
struct Repair {
    let index: Index
    let files: StoreFiles

    /// Ids and stamps count from 1; no store gets here.
    static let numberLimit: UInt64 = 1 << 46

    func run(_ mutation: Mutation) throws {
        let blobs = try collectBlobs(mutation)
        try rebuildEntries(mutation, blobs)
        mutation.noteChange(trees: 64)
    }

    private struct Blobs {
        var heads: [UInt64: BlobRecord] = [:]
        /// The blob that keeps a digest, where several had it.
        var keeper: [Digest: UInt64] = [:]
        var references: [UInt64: UInt64] = [:]

        /// The id under which the body of an entry is kept; nil if it is lost.
        func resolve(_ record: EntryRecord) -> UInt64? {
            guard let head = heads[record.blob], !head.isDamaged, record.isOf(head) else { return nil }
            return keeper[head.digest]
        }
    }

    private func collectBlobs(_ mutation: Mutation) throws -> Blobs {
        var blobs = Blobs()
        var unreadable: [UInt64] = []
        try mutation.reading.withCursor(index.blobs) { cursor in
            var pair = try cursor.first()
            while let (key, value) = pair {
                let id: UInt64 = key.field(0)
                if let head = BlobRecord(value), id < Self.numberLimit {
                    blobs.heads[id] = head
                    if !head.isDamaged, blobs.keeper[head.digest] == nil { blobs.keeper[head.digest] = id }
                } else {
                    unreadable.append(id)
                }
                pair = try cursor.next()
            }
        }
        for id in unreadable { try mutation.transaction.delete(index.blobs, id) }
        return blobs
    }

    private func rebuildEntries(_ mutation: Mutation, _ found: Blobs) throws {
        var blobs = found
        var kept: [(key: [UInt8], record: EntryRecord)] = []
        var lost: [[UInt8]] = []
        var pinnedTags = Set<String>()
        try mutation.reading.withCursor(index.pinnedTags) { cursor in
            var pair = try cursor.first()
            while let (tag, _) = pair {
                // After a NUL it is the owner of a pin.
                pinnedTags.insert(String(decoding: tag, as: UTF8.self))
                pair = try cursor.next()
            }
        }
        try mutation.reading.withCursor(index.entries, showsUnreadable: true) { cursor in
            var pair = try cursor.first()
            while let (row, value) = pair {
                let key = Array(row)
                if var record = EntryRecord(value), EntryView(value)?.isIntact(under: key) == true,
                    let blob = record.embedded.map({ $0.isSound ? 0 : nil }) ?? blobs.resolve(record),
                    IndexKey.bytes(for: record.key(key)) == key
                {
                    if record.embedded == nil {
                        record.blob = blob
                        record.length = blobs.heads[blob]?.length ?? record.length
                        blobs.references[blob, default: 0] += 1
                    }
                    // Read again when the record is written: all of them together may not fit into memory.
                    record.embedded?.bytes = []
                    if record.tags.contains(where: pinnedTags.contains) { record.isPinnedByTag = true }
                    kept.append((key, record))
                } else {
                    lost.append(key)
                }
                pair = try cursor.next()
            }
        }
        for key in lost { try mutation.transaction.delete(index.entries, key) }
        try renumber(mutation, &kept)
        try nameVersions(mutation, Set(kept.map(\.record.version)))
        try writeRows(mutation, kept)
        try writeBlobs(mutation, blobs)
        mutation.state.entryCount = UInt64(kept.count)
        mutation.state.logicalBytes = kept.reduce(0) { $0 &+ $1.record.length }
        mutation.state.strayCount = 0
        for (key, record) in kept where record.embedded != nil {
            mutation.state.blobCount &+= 1
            mutation.state.storedBytes &+= record.length
            if record.isStray(under: key) { mutation.state.strayCount &+= 1 }
        }
    }

    /// In the order of access, each entry with an id and a stamp of its own.
    private func renumber(_ mutation: Mutation, _ kept: inout [(key: [UInt8], record: EntryRecord)]) throws {
        kept.sort { $0.record.stamp < $1.record.stamp }
        // A damaged number far beyond what a store can reach would bring the counters to their end.
        if mutation.state.nextID > Self.numberLimit { mutation.state.nextID = 1 }
        if mutation.state.nextStamp > Self.numberLimit { mutation.state.nextStamp = 1 }
        for position in kept.indices {
            if kept[position].record.id > Self.numberLimit { kept[position].record.id = 0 }
            if kept[position].record.stamp > Self.numberLimit { kept[position].record.stamp = 0 }
        }
        var highest = mutation.state.nextID
        for (_, record) in kept { highest = max(highest, record.id &+ 1, record.blob &+ 1) }
        var ids = Set<UInt64>()
        var stamp: UInt64 = 0
        for position in kept.indices {
            stamp = max(stamp &+ 1, kept[position].record.stamp)
            kept[position].record.stamp = stamp
            if kept[position].record.id == 0 || !ids.insert(kept[position].record.id).inserted {
                kept[position].record.id = highest
                highest += 1
            }
        }
        mutation.state.nextID = highest
        mutation.state.nextStamp = max(mutation.state.nextStamp, stamp &+ 1)
    }

    /// Numbers whose version is lost get a name, so that they do not come to mean another version.
    private func nameVersions(_ mutation: Mutation, _ used: Set<UInt16>) throws {
        let named = Set(try index.versions(mutation.reading).values)
        for number in used.subtracting(named) where number != 0 {
            try mutation.transaction.put(
                index.meta, Index.versionKey("(lost: \(number))"),
                withUnsafeBytes(of: number.littleEndian) { Array($0) })
        }
    }

    private func writeRows(_ mutation: Mutation, _ kept: [(key: [UInt8], record: EntryRecord)]) throws {
        for database in [index.recency, index.pinned, index.expiry, index.tags, index.sessions] {
            try mutation.transaction.removeAll(database)
        }
        for (key, var record) in kept {
            if record.embedded != nil, let raw = try mutation.reading.get(index.entries, key),
                let body = EntryView(raw)?.embedded
            {
                record.embedded?.bytes = Array(body)
            }
            record.reseal(for: key)
            try mutation.transaction.put(index.entries, key, record.bytes)
            try mutation.insertRows(of: record, key: key)
        }
    }

    private func writeBlobs(_ mutation: Mutation, _ blobs: Blobs) throws {
        try mutation.transaction.removeAll(index.digests)
        var state = mutation.state
        state.blobCount = 0
        state.storedBytes = 0
        state.compressionGain = 0
        state.fileAllocated = 0
        state.fileCount = 0
        for (id, head) in blobs.heads.sorted(by: { $0.key < $1.key }) {
            state.nextID = max(state.nextID, id &+ 1)
            guard let references = blobs.references[id] else {
                try mutation.transaction.delete(index.blobs, id)
                continue
            }
            try mutation.blobs.writeDigest(head.digest, DigestRecord(blob: id, references: references))
            state.blobCount &+= 1
            state.storedBytes &+= head.storedLength
            state.compressionGain &+= head.compressionGain
            guard head.location == .file else { continue }
            var corrected = head
            let isPublished = try FileSystem.status(Layout.blob(files.name(of: head.digest)), in: files.blobs) != nil
            // By its row sweeps and checkpoints find a file that is not in its place, or may not be on disk.
            if !head.isDamaged, !isPublished || head.epoch > state.syncedEpoch {
                try mutation.blobs.noteUnpublished(head, id)
            }
            if let status = try files.blobStatus(head), status.allocated != head.allocated.asBytes {
                corrected.allocated = UInt64(Allocation.settled(status, of: head, in: files))
            }
            if corrected != head {
                try mutation.transaction.replace(index.blobs, id, count: corrected.headLength) {
                    corrected.write(to: $0)
                }
            }
            state.fileAllocated &+= corrected.allocated
            state.fileCount &+= 1
        }
        mutation.state = state
        try dropUnpublished(mutation)
    }

    /// Rows of files that are not what they say: the file, if there is one, is an orphan.
    private func dropUnpublished(_ mutation: Mutation) throws {
        var stale: [[UInt8]] = []
        try index.walkUnpublished(mutation.reading) { row, blob in
            if blob == nil { stale.append(Array(row)) }
            return true
        }
        for key in stale { try mutation.transaction.delete(index.unpublished, key) }
    }
}
