import LMDB

/// What displacement could free, by a look at the access order: nothing is displaced for what could not stay anyway.
struct Displaceable {
    /// What the bodies take: more than displacing them frees where entries share one.
    private(set) var bytes: Int64 = 0
    /// Entries that may go, of those looked at.
    private(set) var entries: Int64 = 0
    /// True if all rows were looked at.
    private(set) var isComplete = false
    /// A look continues at this stamp.
    private var position: UInt64 = 0

    /// Looks at further rows, the least recently used first.
    /// - Parameter limit: how many rows, at most.
    mutating func look(at index: Index, _ reading: ReadTransaction, now: Timestamp, rows limit: Int) throws {
        let hasLeases = try reading.statistics(index.leases).entries > 0
        try reading.withCursor(index.recency) { cursor in
            var pair = try cursor.seek(position)
            for _ in 0..<limit {
                guard let (row, value) = pair else {
                    isComplete = true
                    return
                }
                position = row.field(0, as: UInt64.self) &+ 1
                try add(Array(value), index, reading, leasesAt: hasLeases ? now : nil)
                pair = try cursor.next()
            }
        }
    }

    private mutating func add(
        _ key: [UInt8], _ index: Index, _ reading: ReadTransaction, leasesAt now: Timestamp?
    ) throws {
        guard let record = try reading.get(index.entries, key).flatMap(EntryRecord.init),
            let body = try reading.get(index.blobs, record.blob).flatMap(BlobRecord.init)
        else { return }
        if let now {
            let isLeased = try index.isLeased(
                record.longKey.isEmpty ? key : record.longKey, record.tags + (record.ledTag.map { [$0] } ?? []),
                digest: { body.digest }, version: record.version, at: now, reading)
            if isLeased { return }
        }
        entries += 1
        // What goes with a leader is in no order; it may be anything.
        let taken = record.ledTag == nil ? (body.location == .file ? body.allocated : body.storedLength).asBytes : .max
        let (sum, isMore) = bytes.addingReportingOverflow(taken)
        bytes = isMore ? .max : sum
    }
}
