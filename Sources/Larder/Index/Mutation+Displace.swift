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
        return try index.isLeased(
            record.wholeKey(key), record.tags, digest: { try digest(of: record) },
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

extension UnsafeRawBufferPointer {
    /// True if the bytes sort before `other`.
    func precedes(_ other: [UInt8]) -> Bool { lexicographicallyPrecedes(other) }
}
