import LMDB

/// What displacement could free, by a look at the access order: nothing is displaced for what could not stay anyway.
struct Displaceable {
    /// Bytes of the index that the rows of an entry take, without its record, about.
    static let usualRowBytes: Int64 = 400

    /// What records, rows and bodies take. A body that entries share counts once all of them were looked at.
    private(set) var bytes: Int64 = 0
    /// How many entries take them.
    private(set) var count = 0
    /// True if all rows were looked at.
    private(set) var isComplete = false
    /// A look continues at this stamp.
    private var position: UInt64 = 0
    private let rowBytes: Int64
    private let skipsExpired: Bool
    /// Of bodies that entries share, how many of those are to come.
    private var sharers: [UInt64: UInt64] = [:]

    /// - Parameters:
    ///   - rowBytes: what the rows of an entry take in the index, without its record.
    ///   - skipsExpired: true leaves out entries whose lifetime is over.
    init(rowBytes: Int64, skipsExpired: Bool = false) {
        self.rowBytes = rowBytes
        self.skipsExpired = skipsExpired
    }

    /// Looks at further rows, the least recently used first.
    /// - Parameters:
    ///   - limit: how many rows, at most.
    ///   - enough: ends the look when as many bytes are found.
    mutating func look(
        at index: Index, _ reading: ReadTransaction, now: Timestamp, rows limit: Int, enough: Int64 = .max
    ) throws {
        let hasLeases = try reading.statistics(index.leases).entries > 0
        // What a pin has kept is in no order; it may be anything.
        let owners = try PinOwners(index, reading)
        if try index.hasReleased(owners, at: now, reading) {
            bytes = .max
            return
        }
        try reading.withCursor(index.recency) { cursor in
            var pair = try cursor.seek(position)
            for _ in 0..<limit where bytes < enough {
                guard let (row, value) = pair, position < .max else {
                    isComplete = true
                    return
                }
                position = row.field(0, as: UInt64.self)
                if position < .max { position += 1 }
                try add(Array(value), index, reading, owners, at: now, hasLeases: hasLeases)
                pair = try cursor.next()
            }
        }
    }

    private mutating func add(
        _ key: [UInt8], _ index: Index, _ reading: ReadTransaction, _ owners: PinOwners, at now: Timestamp,
        hasLeases: Bool
    ) throws {
        guard let record = try index.entry(key, reading),
            let body = try index.head(of: record, reading)
        else { return }
        if skipsExpired, record.isExpired(at: now) { return }
        if hasLeases {
            let isLeased = try index.isLeased(
                record.wholeKey(key), record.tags, digest: { body.digest }, version: record.version, at: now, reading)
            if isLeased { return }
        }
        count += 1
        if owners.owns(key) { return bytes = .max }
        let isLast = try record.embedded == nil && isLast(record.blob, body, index, reading)
        let taken = isLast ? (body.location == .file ? body.allocated : body.storedLength).asBytes : 0
        let (sum, isMore) = bytes.addingReportingOverflow(taken + Int64(record.byteCount) + rowBytes)
        bytes = isMore ? .max : sum
    }

    /// True if no entry that was not looked at has the body.
    private mutating func isLast(
        _ blob: UInt64, _ body: BlobRecord, _ index: Index, _ reading: ReadTransaction
    ) throws -> Bool {
        if let rest = sharers[blob] {
            sharers[blob] = rest - 1
            return rest == 1
        }
        guard body.isComplete, let count = try index.shared(body.digest, reading)?.references, count > 1 else {
            return true
        }
        sharers[blob] = count - 1
        return false
    }
}

extension EnginePart {
    /// What displacement could free now, until `enough` bytes are found. One snapshot is held for 4,096 rows at most.
    func displaceable(_ enough: Int64, rowBytes: Int64 = 0, skippingExpired: Bool = false) throws -> Displaceable {
        var found = Displaceable(rowBytes: rowBytes, skipsExpired: skippingExpired)
        while found.bytes < enough, !found.isComplete {
            try read { try found.look(at: index, $0, now: clock.now(), rows: 4096, enough: enough) }
        }
        return found
    }
}
