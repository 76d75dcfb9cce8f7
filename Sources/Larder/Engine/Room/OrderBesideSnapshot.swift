import LMDB

/// A place in the access order for displacement beside a held snapshot.
struct OrderBesideSnapshot {
    let mark: Snapshots.Mark
    /// Entries with a lower stamp have no body that would give room.
    var position: UInt64
    /// Rows that one transaction looks at.
    var looks = 4096
    var isOver = false

    init(mark: Snapshots.Mark, position: UInt64) {
        self.mark = mark
        self.position = position
    }
}

extension Mutation {
    /// Removes the next entry in the access order whose body is a file or younger than the snapshot; nil if there is
    /// none among the rows that may be looked at.
    func removeNext(_ order: inout OrderBesideSnapshot) throws -> Victim? {
        let hasLeases = try reading.statistics(index.leases).entries > 0
        // One that goes makes room only later, when what its pin has kept goes, too.
        let owners = try pinOwners ?? PinOwners(index, reading)
        pinOwners = owners
        let found = try reading.withCursor(index.recency) { cursor -> (key: [UInt8], record: EntryRecord)? in
            var pair = try cursor.seek(order.position)
            while let (row, value) = pair {
                if order.looks == 0 { return nil }
                order.looks -= 1
                order.position = row.field(0, as: UInt64.self) &+ 1
                let key = Array(value)
                if let record = try record(key), try givesRoom(record, beside: order.mark), !owners.owns(key),
                    try !hasLeases || !isLeased(key: key, record)
                {
                    return (key, record)
                }
                pair = try cursor.next()
            }
            order.isOver = true
            // Later entries come behind those that were looked at; entries that were not given room by then are used
            // again.
            return nil
        }
        guard let (key, record) = found, try remove(key, where: { $0 == record }) != nil else { return nil }
        return Victim(key: key, record: record, reason: .leastRecentlyUsed)
    }

    private func givesRoom(_ record: EntryRecord, beside mark: Snapshots.Mark) throws -> Bool {
        // An embedded body gives back a part of a page, if any.
        if record.embedded != nil { return false }
        if record.blob >= mark.nextID { return true }
        guard let head = try index.blob(record.blob, reading) else { return false }
        return head.location == .file && !head.isDamaged
    }
}
