import LMDB

/// A walk over selected entries in key order, a batch at a time, each on a snapshot of its own: a long one does not
/// keep pages of the index from being reused.
struct EntryWalk {
    /// What one step found.
    struct Batch {
        var keys: [(key: [UInt8], id: UInt64)] = []
        var examined = 0
    }

    private enum Source {
        /// Ranges of `entries` by prefix.
        case ranges([[UInt8]])
        /// Rows of `tags` or `expiry` whose values are keys.
        case rows(prefix: [UInt8], isExpiry: Bool)
    }

    private let selection: Selection
    private let version: UInt16?
    private let now: Timestamp
    private var source: Source
    private var position: [UInt8]
    private(set) var isOver = false

    init(_ selection: Selection, version: UInt16?, now: Timestamp) {
        self.selection = selection
        self.version = version
        self.now = now
        switch selection {
        case .tag(let tag): source = .rows(prefix: Index.tagPrefix(tag), isExpiry: false)
        case .expired: source = .rows(prefix: [], isExpiry: true)
        default: source = .ranges((selection.prefixes ?? [[]]).map { Array($0.prefix(IndexKey.prefixLength)) })
        }
        switch source {
        case .ranges(let ranges): position = ranges[0]
        case .rows(let prefix, _): position = prefix
        }
    }

    /// Calls `visit` with each selected entry's key and raw record; at most `limit` are examined.
    mutating func visit(
        _ index: Index, _ transaction: ReadTransaction, limit: Int,
        _ visit: ([UInt8], EntryRecord, UnsafeRawBufferPointer) throws -> Void
    ) throws -> Int {
        var examined = 0
        while !isOver, examined < limit {
            switch source {
            case .ranges(let ranges):
                examined += try visitRange(ranges, index, transaction, limit - examined, visit)
            case .rows(let prefix, let isExpiry):
                examined += try visitRows(prefix, isExpiry, index, transaction, limit - examined, visit)
            }
        }
        return examined
    }

    /// The next selected keys.
    mutating func next(_ index: Index, _ transaction: ReadTransaction, limit: Int) throws -> Batch {
        var batch = Batch()
        batch.examined = try visit(index, transaction, limit: limit) { key, record, _ in
            batch.keys.append((key, record.id))
        }
        return batch
    }

    private mutating func visitRange(
        _ ranges: [[UInt8]], _ index: Index, _ transaction: ReadTransaction, _ limit: Int,
        _ visit: ([UInt8], EntryRecord, UnsafeRawBufferPointer) throws -> Void
    ) throws -> Int {
        var examined = 0
        var next: [UInt8]?
        let start = position
        try transaction.withCursor(index.entries) { cursor in
            var pair = try cursor.seek(start)
            while let (row, value) = pair, row.hasPrefix(ranges[0]) {
                if examined == limit {
                    next = Array(row)
                    return
                }
                examined += 1
                if let record = EntryRecord(value) {
                    let key = Array(row)
                    let whole = Key(bytes: record.longKey.isEmpty ? key : record.longKey)
                    if selection.includes(whole, record, version: version, now: now) { try visit(key, record, value) }
                }
                pair = try cursor.next()
            }
        }
        if let next {
            position = next
        } else if ranges.count > 1 {
            source = .ranges(Array(ranges.dropFirst()))
            position = ranges[1]
        } else {
            isOver = true
        }
        return examined
    }

    private mutating func visitRows(
        _ prefix: [UInt8], _ isExpiry: Bool, _ index: Index, _ transaction: ReadTransaction, _ limit: Int,
        _ visit: ([UInt8], EntryRecord, UnsafeRawBufferPointer) throws -> Void
    ) throws -> Int {
        var examined = 0
        var next: [UInt8]?
        let start = position
        let end = isExpiry ? bigEndian(UInt64(max(0, now.microseconds)) + 1) : nil
        try transaction.withCursor(isExpiry ? index.expiry : index.tags) { cursor in
            var pair = try cursor.seek(start)
            while let (row, value) = pair, row.hasPrefix(prefix), end.map({ row.precedes($0) }) ?? true {
                if examined == limit {
                    next = Array(row)
                    return
                }
                examined += 1
                let key = Array(value)
                if let raw = try transaction.get(index.entries, key), let record = EntryRecord(raw),
                    selection.includes(Key(bytes: key), record, version: version, now: now)
                {
                    try visit(key, record, raw)
                }
                pair = try cursor.next()
            }
        }
        if let next { position = next } else { isOver = true }
        return examined
    }
}

extension Mutation {
    /// The counters of a store whose databases were emptied; numbers go on.
    func forgetAll() {
        let pages = (state.storedBytes / UInt64(index.environment.pageSize)).addingReportingOverflow(state.entryCount)
        // No more than there are, whatever the counters say.
        freedPages += min(Int(clamping: pages.partialValue), index.environment.lastPage + 1)
        state.entryCount = 0
        state.blobCount = 0
        state.logicalBytes = 0
        state.storedBytes = 0
        state.fileAllocated = 0
        state.fileCount = 0
        noteChange(trees: 12)
    }
}
