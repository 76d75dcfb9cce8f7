import LMDB

/// An entry that displacement removed.
struct Victim {
    let key: [UInt8]
    let record: EntryRecord
    let reason: DisplacementReason

    /// The whole key.
    var entryKey: Key { record.key(key) }
}

/// The reason that displacement removed an entry.
public enum DisplacementReason: Sendable, Hashable {
    /// Its lifetime was over.
    case expired
    /// It was the least recently used one.
    case leastRecentlyUsed
}

/// The order in which entries go. Pinned entries are in none; leased ones are passed by.
enum VictimOrder {
    /// Expired entries, the first to expire first; then the least recently used. Fresh entries with the stamp `before`,
    /// or a later one, stay.
    case byUse(before: UInt64 = .max)
    /// Only entries that have expired by a moment.
    case expired(by: Timestamp)
    /// Entries whose removal gives room while a snapshot is held.
    case beside(OrderBesideSnapshot)
}

extension Mutation {
    /// Displaces at most `limit` entries, until `bytes` are free.
    func displace(
        _ order: inout VictimOrder, limit: Int, bytes: Int64 = .max
    ) throws -> (victims: [Victim], freed: Int64) {
        var victims: [Victim] = []
        let before = bytes == .max ? 0 : try liveBytes()
        var freed: Int64 = 0
        while victims.count < limit, freed < bytes, let victim = try displaceNext(&order) {
            victims.append(victim)
            if bytes < .max { freed = before - (try liveBytes()) }
        }
        return (victims, freed)
    }

    /// Removes the next entry in an order; nil if nothing may go. O(log n).
    func displaceNext(_ order: inout VictimOrder) throws -> Victim? {
        switch order {
        case .byUse(let mark):
            if let victim = try removeReleased() ?? removeExpired(by: now) { return victim }
            return try removeFirst(in: index.recency, .leastRecentlyUsed) { $0.field(0, as: UInt64.self) < mark }
        case .expired(let moment): return try removeExpired(by: moment)
        case .beside(var place):
            defer { order = .beside(place) }
            return try removeNext(&place)
        }
    }

    /// Removes the entry that expired first; nil if none has.
    private func removeExpired(by moment: Timestamp) throws -> Victim? {
        if try reading.statistics(index.expiry).entries == 0 { return nil }
        let end = Index.expiryEnd(moment)
        return try removeFirst(in: index.expiry, .expired) { $0.precedes(end) }
    }

    /// - Parameter mayGo: of a row: false if no entry from there on may go.
    private func removeFirst(
        in order: Database, _ reason: DisplacementReason, while mayGo: (UnsafeRawBufferPointer) -> Bool
    ) throws -> Victim? {
        while let (row, key) = try firstUnleased(in: order, while: mayGo) {
            if let victim = try removeFollower(of: key) { return victim }
            if let record = try remove(key, where: { self.stands($0, in: order, at: row) }) {
                pinOwners?.noteRemoval(of: key)
                return Victim(key: key, record: record, reason: reason)
            }
            // Damage: the row leads to no entry, or to one that has another place. It must not keep displacement from
            // going on, and with it every put of a full store.
            try transaction.delete(order, row)
            noteChange(trees: 1)
            removedRows += 1
        }
        return nil
    }

    /// Removes an entry that goes with the one under a key, as that stands for it; nil if there is none left.
    ///
    /// Entries that are displaced together are pinned by a tag, and their *leader* is in the access order for them: an
    /// entry with the tag `larder:leads TAG`. When its turn comes it first moves to another key, as the readers of the
    /// others look for it. Then those with the tag go, in as many transactions as it takes, and the leader goes last. A
    /// lease of the tag protects all of them; leases and pins of single ones do not.
    private func removeFollower(of key: [UInt8]) throws -> Victim? {
        guard try reading.statistics(index.pinnedTags).entries > 0, let leader = try record(key),
            let tag = leader.ledTag, let follower = try firstFollower(tag)
        else { return nil }
        let remains = EntryRecord.remains(of: tag)
        if key != remains {
            // What is left of an earlier one leads them already.
            guard try record(remains) == nil else {
                return try remove(key).map { Victim(key: key, record: $0, reason: .leastRecentlyUsed) }
            }
            try move(leader, from: key, to: remains)
        }
        return try remove(follower).map { Victim(key: follower, record: $0, reason: .leastRecentlyUsed) }
    }

    /// Puts an entry under another key, which is free; it keeps its place in all orders.
    private func move(_ record: EntryRecord, from key: [UInt8], to other: [UInt8]) throws {
        guard let digest = try digest(ofBlob: record.blob) else { return }
        var moved = record
        moved.seal(for: other, digest)
        try deleteRows(of: record)
        try transaction.delete(index.entries, key)
        try insertRows(of: moved, key: other)
        try transaction.put(index.entries, other, moved.bytes)
        noteChange(trees: 5)
    }

    /// The first entry with a tag that is not pinned by itself.
    private func firstFollower(_ tag: String) throws -> [UInt8]? {
        let prefix = Index.tagPrefix(tag)
        return try reading.withCursor(index.tags) { cursor in
            var pair = try cursor.seek(prefix)
            while let (row, value) = pair, row.hasPrefix(prefix) {
                let key = Array(value)
                if let record = try record(key), !record.isPinned { return key }
                pair = try cursor.next()
            }
            return nil
        }
    }

    /// True if the row of an order is the entry's own.
    private func stands(_ record: EntryRecord, in order: Database, at row: [UInt8]) -> Bool {
        if record.isKept { return false }
        if order == index.expiry {
            return record.expires != .max && row == Index.expiryKey(record.expires, id: record.id)
        }
        return row.withUnsafeBytes { $0.count == 8 && $0.loadUnaligned(as: UInt64.self) == record.stamp }
    }

    /// The first row of an order whose entry no lease protects, if it may go.
    private func firstUnleased(
        in order: Database, while mayGo: (UnsafeRawBufferPointer) -> Bool
    ) throws -> (row: [UInt8], key: [UInt8])? {
        let hasLeases = try reading.statistics(index.leases).entries > 0
        return try reading.withCursor(order) { cursor in
            var pair = try cursor.seek(passed[order] ?? [])
            while let (row, value) = pair {
                guard mayGo(row) else { return nil }
                let key = Array(value)
                guard hasLeases, let record = try record(key), try isLeased(key: key, record) else {
                    return (Array(row), key)
                }
                passed[order] = Array(row)
                pair = try cursor.next()
            }
            return nil
        }
    }

    func isLeased(key: [UInt8], _ record: EntryRecord) throws -> Bool {
        if record.progress != nil, try isBeingWritten(key: key, record) { return true }
        let tags = record.tags + (record.ledTag.map { [$0] } ?? [])
        return try index.isLeased(
            record.wholeKey(key), tags, digest: { try digest(ofBlob: record.blob) },
            version: record.version, at: now, reading)
    }

    /// Bytes of live pages in the index file: what it would shrink to if every free page were given back.
    func liveIndexBytes() throws -> Int64 {
        let environment = index.environment
        let used = try environment.usedPages(in: reading, databases: index.databases)
        return Int64(used) * Int64(environment.pageSize)
    }

    private func liveBytes() throws -> Int64 { try liveIndexBytes() + state.fileAllocated.asBytes }
}

extension EntryRecord {
    /// What the tag of a leader begins with; see `Store.leaderTag(of:)`.
    static let leaderPrefix = "larder:leads "

    /// The key of a leader while the others are displaced.
    static func remains(of tag: String) -> [UInt8] { Array("larder:displaced ".utf8) + Array(tag.utf8.prefix(400)) }

    /// The tag whose entries are displaced with this one; nil for an entry that is displaced alone.
    var ledTag: String? {
        tags.first { $0.hasPrefix(Self.leaderPrefix) }.map { String($0.dropFirst(Self.leaderPrefix.count)) }
    }
}

extension UnsafeRawBufferPointer {
    /// True if the bytes sort before `other`.
    func precedes(_ other: [UInt8]) -> Bool { lexicographicallyPrecedes(other) }
}
