import LMDB

/// A walk over selected entries, a batch at a time, each on a snapshot of its own: a long one does not keep pages of
/// the index from being reused.
struct EntryWalk: Sendable {
    /// What one step found.
    struct Batch {
        var keys: [(key: [UInt8], id: UInt64)] = []
        var examined = 0
    }

    let filter: EntryFilter
    /// Nil before the first step.
    private var sources: ArraySlice<(source: EntrySource, part: Selection.Condition)>?
    /// The ids of the entries visited so far, where a walk may come to an entry twice: through two parts of `||`, or
    /// in `pinned`, where a hit moves an entry to the end.
    private var visited: Set<UInt64>?
    /// Where the first source continues: a key or a row key. Empty: at its beginning.
    private var position: [UInt8] = []
    /// Entries from this id on have come since the walk began. They need not be visited, so that a walk beside a writer
    /// comes to its end.
    private var endID: UInt64?

    var isOver: Bool { sources?.isEmpty ?? false }

    init(_ filter: EntryFilter) { self.filter = filter }

    /// A walk over entries of every version.
    init(_ selection: Selection, version: UInt16?, now: Timestamp) {
        self.init(EntryFilter(selection, version: version, now: now))
    }

    /// Calls `visit` with each selected entry's key and raw record; about `limit` are examined at most.
    mutating func visit(
        _ index: Index, _ transaction: ReadTransaction, limit: Int,
        _ visit: ([UInt8], EntryRecord, UnsafeRawBufferPointer) throws -> Void
    ) throws -> Int {
        var examined = 0
        if sources == nil {
            let found = EntrySource.sources(of: filter.condition, isOrdered: index.isOrdered)
            if found.count > 1 || found.contains(where: { $0.source.mayRepeat }) { visited = [] }
            sources = found[...]
        }
        while let next = sources?.first, examined < limit {
            if endID == nil { endID = try index.state(transaction).nextID }
            var step = Step(
                filter: filter, index: index, transaction: transaction, limit: limit - examined, part: next.part,
                endID: endID ?? .max)
            // Moved, not copied.
            swap(&step.visited, &visited)
            defer { swap(&step.visited, &visited) }
            let end = try step.run(next.source, from: position, visit)
            examined += step.examined
            if let end {
                position = end
            } else {
                sources = sources?.dropFirst()
                position = []
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

    /// One step through one source. Each way of walking returns where to continue; nil at the end.
    private struct Step {
        let filter: EntryFilter
        let index: Index
        let transaction: ReadTransaction
        let limit: Int
        let part: Selection.Condition
        let endID: UInt64
        var visited: Set<UInt64>?
        var examined = 0

        typealias Visit = ([UInt8], EntryRecord, UnsafeRawBufferPointer) throws -> Void

        mutating func run(_ source: EntrySource, from position: [UInt8], _ visit: Visit) throws -> [UInt8]? {
            switch source {
            case .all: try walk([], from: position, visit)
            case .range(let prefix): try walk(prefix, from: position, visit)
            case .host(let host): try walk(host: host, from: position, visit)
            case .keys(let keys): try walk(keys: keys, from: position, visit)
            case .tag(let prefix): try walk(index.tags, prefix, from: position, end: prefix + bigEndian(endID), visit)
            case .expired: try walk(index.expiry, [], from: position, end: Index.expiryEnd(filter.now), visit)
            case .pinned: try walkPinned(from: position, visit)
            }
        }

        /// Looks at one entry.
        private mutating func examine(_ key: [UInt8], _ raw: UnsafeRawBufferPointer, _ visit: Visit) throws {
            examined += 1
            guard let record = EntryRecord(raw) else { return }
            let whole = record.key(key)
            // What is selected by another part only is found, or was, where that part leads.
            guard try filter.includes(whole, record, digest: { try digest(of: record) }, part: part) else { return }
            if visited?.insert(record.id).inserted == false { return }
            try visit(key, record, raw)
        }

        private func digest(of record: EntryRecord) throws -> Digest? {
            try index.head(of: record, transaction)?.digest
        }

        private mutating func walk(_ prefix: [UInt8], from position: [UInt8], _ visit: Visit) throws -> [UInt8]? {
            try transaction.withCursor(index.entries) { cursor in
                var pair = try cursor.seek(position.isEmpty ? prefix : position)
                while let (row, value) = pair, row.hasPrefix(prefix) {
                    if examined == limit { return Array(row) }
                    try examine(Array(row), value, visit)
                    pair = try cursor.next()
                }
                return nil
            }
        }

        /// Goes from one beginning of URLs to the next, and in each to the host. Each step leads to a later row,
        /// whatever bytes the keys have.
        private mutating func walk(host: [UInt8], from position: [UInt8], _ visit: Visit) throws -> [UInt8]? {
            try transaction.withCursor(index.entries) { cursor in
                var pair = try cursor.seek(position)
                while let (row, value) = pair {
                    if examined >= limit { return Array(row) }
                    guard let beginning = HostGroup.beginning(of: row) else {
                        examined += 1
                        pair = try cursor.next()
                        continue
                    }
                    // Of a longer key the index has the beginning, and the record the rest.
                    let start = Array((beginning + host).prefix(IndexKey.prefixLength))
                    if row.hasPrefix(start) {
                        try examine(Array(row), value, visit)
                        pair = try cursor.next()
                    } else {
                        examined += 1
                        // Before the host: to it. Behind it: past all keys with this beginning, which ends in `/`.
                        let past = beginning.dropLast() + [UInt8(ascii: "/") + 1]
                        pair = try cursor.seek(row.precedes(start) ? start : Array(past))
                    }
                }
                return nil
            }
        }

        private mutating func walk(keys: [[UInt8]], from position: [UInt8], _ visit: Visit) throws -> [UInt8]? {
            // They are in order.
            var (low, high) = (0, position.isEmpty ? 0 : keys.count)
            while low < high {
                let middle = (low + high) / 2
                if keys[middle].lexicographicallyPrecedes(position) { low = middle + 1 } else { high = middle }
            }
            for key in keys[low...] {
                if examined == limit { return key }
                // A long key stands for itself only if the record has it.
                if let raw = try transaction.get(index.entries, key) {
                    try examine(key, raw, visit)
                } else {
                    examined += 1
                }
            }
            return nil
        }

        /// Rows whose values are keys.
        private mutating func walk(
            _ database: Database, _ prefix: [UInt8], from position: [UInt8], end: [UInt8]?, _ visit: Visit
        ) throws -> [UInt8]? {
            try transaction.withCursor(database) { cursor in
                var pair = try cursor.seek(position.isEmpty ? prefix : position)
                while let (row, value) = pair, row.hasPrefix(prefix), end.map({ row.precedes($0) }) ?? true {
                    if examined == limit { return Array(row) }
                    try follow(value, visit)
                    pair = try cursor.next()
                }
                return nil
            }
        }

        /// To the end of the order: a hit moves an entry there from where the walk has not been yet.
        private mutating func walkPinned(from position: [UInt8], _ visit: Visit) throws -> [UInt8]? {
            let start = position.withUnsafeBytes { $0.isEmpty ? 0 : $0.loadUnaligned(as: UInt64.self) }
            return try transaction.withCursor(index.pinned) { cursor in
                var pair = try cursor.seek(start)
                while let (row, value) = pair {
                    if examined == limit { return Array(row) }
                    try follow(value, visit)
                    pair = try cursor.next()
                }
                return nil
            }
        }

        private mutating func follow(_ value: UnsafeRawBufferPointer, _ visit: Visit) throws {
            let key = Array(value)
            if let raw = try transaction.get(index.entries, key) { try examine(key, raw, visit) } else { examined += 1 }
        }
    }
}

extension PendingPut {
    /// As the index would have it, for judging a selection.
    var asRecord: EntryRecord {
        var record = EntryRecord()
        record.version = version
        record.policy = options.storagePolicy
        record.length = length
        record.stored = stored.microseconds
        record.accessed = accessed.microseconds
        record.expires = expires.microseconds
        record.tags = options.tags
        record.isPinned = isPinned
        return record
    }
}
