import LMDB

/// What displacement passes by: leases and pinned tags.
extension Mutation {
    /// Makes the lease of a subject that ends with its time last for `duration` at least: one row for each subject.
    func prolongLease(_ request: Change.LeaseRequest, _ leases: LeaseBook) throws {
        guard let duration = request.duration, duration > .zero else { return }
        let row = Index.leasePrefix(request.kind, request.subject, version: request.version) + bigEndian(UInt64(0))
        let expires = (now + duration).microseconds
        if let old = try reading.get(index.leases, row), old.count == 16 {
            if old.field(0, as: Int64.self) >= expires { return }
        } else {
            try tidyLeases(leases)
        }
        try transaction.put(index.leases, row, Index.lease(until: expires, instance: 0))
        noteChange(trees: 1)
    }

    /// Adds a lease or claim that a caller holds, which ends with its release, its time, or this instance; returns its
    /// row.
    func addLease(_ request: Change.LeaseRequest, _ leases: LeaseBook) throws -> [UInt8] {
        try tidyLeases(leases)
        let row = Index.leasePrefix(request.kind, request.subject, version: request.version) + bigEndian(takeID())
        let expires = request.duration.map { (now + $0).microseconds } ?? .max
        try transaction.put(index.leases, row, Index.lease(until: expires, instance: leases.instance))
        noteChange(trees: 1)
        return row
    }

    /// Deletes every lease that ends with its time only: it has no holder who could end it.
    func dropTimedLeases() throws {
        var rows: [[UInt8]] = []
        try reading.withCursor(index.leases) { cursor in
            var pair = try cursor.first()
            while let (row, _) = pair {
                if row.suffix(8).allSatisfy({ $0 == 0 }) { rows.append(Array(row)) }
                pair = try cursor.next()
            }
        }
        try dropLeases(rows)
    }

    /// Deletes some leases that are over, from where the last one that did so has come to. Every new row pays for it,
    /// so the table holds few that are over.
    private func tidyLeases(_ leases: LeaseBook) throws {
        leases.position = try dropStaleLeases(from: leases.position, limit: 16)
    }

    /// Deletes the rows of leases that are over.
    func dropLeases(_ rows: [[UInt8]]) throws {
        for row in rows where try transaction.delete(index.leases, row) { noteChange(trees: 1) }
    }

    /// Deletes leases whose time is over, of at most `limit` rows from `start` on; returns where to continue. A new
    /// lease adds a row and looks at some: so the table holds few that are over, and a lease costs the same however
    /// many there are.
    func dropStaleLeases(from start: [UInt8], limit: Int) throws -> [UInt8] {
        var stale: [[UInt8]] = []
        var next: [UInt8] = []
        try reading.withCursor(index.leases) { cursor in
            var pair = try cursor.seek(start)
            var examined = 0
            while let (row, value) = pair {
                if examined == limit {
                    next = Array(row)
                    return
                }
                examined += 1
                if isOver(row, value) { stale.append(Array(row)) }
                pair = try cursor.next()
            }
        }
        try dropLeases(stale)
        return next
    }

    /// True if the time of a lease is over, or the instance that had the claim of a writer does not live.
    private func isOver(_ row: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool {
        guard value.count == 16 else { return true }
        let expires: Int64 = value.field(0)
        if expires <= now.microseconds { return true }
        guard expires == .max, row.first == Index.LeaseKind.computation.rawValue else { return false }
        // Rows are deleted on the way of other work, which must not fail if the mark of an instance cannot be read.
        return !((try? files.isAlive(value.field(8))) ?? true)
    }

    // MARK: Pins

    /// True if one of the tags is pinned.
    func hasPinnedTag(_ tags: [String]) throws -> Bool { try index.hasPinnedTag(tags, reading) }
}
