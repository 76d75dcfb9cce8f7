import LMDB

extension Store {
    // MARK: Lifetime

    /// Counts as an access of the entry under `key`, and gives it a new lifetime if one is given, the ceiling applied.
    /// False if there is no entry.
    @discardableResult
    public func touch(_ key: Key, lifetime: Lifetime? = nil) throws -> Bool {
        _ = try writing()
        try key.validate()
        engine.commitPending()
        let configuration = configuration
        let indexKey = IndexKey.bytes(for: key)
        return try engine.mutate(.put) { mutation in
            guard let record = try mutation.record(indexKey) else { return false }
            if let lifetime {
                try mutation.update(indexKey) {
                    $0.expires = configuration.expiry(lifetime, at: mutation.now).microseconds
                }
            }
            return try mutation.touch(stamp: record.stamp, hits: 0, accessed: mutation.now)
        }
    }

    // MARK: Pins

    /// Keeps the entry under `key` out of displacement until `unpin`. False if there is no entry.
    @discardableResult
    public func pin(_ key: Key) throws -> Bool { try setPin(key, true) }

    /// Lets displacement have the entry again. False if there is no entry.
    @discardableResult
    public func unpin(_ key: Key) throws -> Bool { try setPin(key, false) }

    private func setPin(_ key: Key, _ isPinned: Bool) throws -> Bool {
        _ = try writing()
        try key.validate()
        engine.commitPending()
        // Unpinning is the way out of a store full of pinned entries, so it may use the headroom.
        return try engine.mutate(isPinned ? .put : .housekeeping) { mutation in
            try mutation.update(IndexKey.bytes(for: key)) { $0.isPinned = isPinned }
        }
    }

    /// Keeps every entry with `tag` out of displacement, those put later included. Returns how many have it now.
    ///
    /// If it throws, entries may be pinned already that the tag does not pin yet: call it again, or `unpin(tag:)`.
    @discardableResult
    public func pin(tag: String) throws -> Int {
        try prepare(tag)
        let start = try engine.state().nextStamp
        let count = try updateEntries(tag, .put) { _, record in record.isPinnedByTag = true }
        // The tag last: until every entry is pinned nothing may say that it is. The walk may have passed by what was put,
        // used or overwritten meanwhile, and that has a later stamp than `start`.
        try engine.mutate(.put) { mutation in
            for key in try mutation.keys(from: start) {
                try mutation.update(key) { if $0.tags.contains(tag) { $0.isPinnedByTag = true } }
            }
            try mutation.transaction.put(engine.index.pinnedTags, Array(tag.utf8), [])
            mutation.noteChange(trees: 1)
        }
        return count
    }

    /// Takes `pin(tag:)` back. Entries that are pinned themselves or by another tag stay so.
    @discardableResult
    public func unpin(tag: String) throws -> Int {
        try prepare(tag)
        try engine.mutate(.housekeeping) { mutation in
            try mutation.transaction.delete(engine.index.pinnedTags, Array(tag.utf8))
            mutation.noteChange(trees: 1)
        }
        return try updateEntries(tag, .housekeeping) { $1.isPinnedByTag = try $0.hasPinnedTag($1.tags) }
    }

    private func prepare(_ tag: String) throws {
        _ = try writing()
        try PutOptions.validate(tag: tag)
        engine.commitPending()
    }

    /// Changes the entries with a tag in transactions that fit the headroom; returns how many there are.
    private func updateEntries(
        _ tag: String, _ purpose: Engine.Purpose, _ change: (Mutation, inout EntryRecord) throws -> Void
    ) throws -> Int {
        var walk = EntryWalk(.tag(tag), version: nil, now: engine.clock.now())
        var count = 0
        while !walk.isOver {
            let limit = try engine.removalLimit()
            let batch = try engine.read { try walk.next(engine.index, $0, limit: limit) }
            try engine.mutate(purpose) { mutation in
                for (key, _) in batch.keys {
                    try mutation.update(key) { try change(mutation, &$0) }
                }
            }
            count += batch.keys.count
        }
        return count
    }

    /// The tags that are pinned, in order.
    public func pinnedTags() throws -> [String] {
        try requireOpen()
        return try engine.read { transaction in
            try transaction.withCursor(engine.index.pinnedTags) { cursor in
                var tags: [String] = []
                var pair = try cursor.first()
                while let (key, _) = pair {
                    tags.append(String(decoding: key, as: UTF8.self))
                    pair = try cursor.next()
                }
                return tags
            }
        }
    }

    // MARK: Leases

    /// Keeps the entry under `key` out of displacement by any process for `duration`, or until the lease is released or
    /// goes. The entry need not exist yet.
    public func lease(_ key: Key, for duration: Duration = .seconds(60)) throws -> Lease {
        try key.validate()
        return try makeLease(.key, key.bytes, duration)
    }

    /// Keeps every entry with `tag` out of displacement for `duration`, or until the lease is released or goes.
    public func lease(tag: String, for duration: Duration = .seconds(60)) throws -> Lease {
        try PutOptions.validate(tag: tag)
        return try makeLease(.tag, Array(tag.utf8), duration)
    }

    private func makeLease(_ kind: Index.LeaseKind, _ subject: [UInt8], _ duration: Duration) throws -> Lease {
        let writing = try writing()
        let engine = engine
        let prefix = Index.leasePrefix(kind, subject)
        let row = try engine.mutate(.put) { mutation in
            try mutation.dropStaleLeases()
            let row = prefix + bigEndian(mutation.state.nextID)
            mutation.state.nextID &+= 1
            let expires = (mutation.now + duration).microseconds
            let value =
                withUnsafeBytes(of: expires.littleEndian) { Array($0) }
                + withUnsafeBytes(of: writing.lock.instance.littleEndian) { Array($0) }
            try mutation.transaction.put(engine.index.leases, row, value)
            mutation.noteChange(trees: 1)
            return row
        }
        return Lease(store: self, row: row)
    }
}

/// Keeps an entry, or the entries of a tag, out of displacement while it lives. See `Store.lease(_:for:)`.
public final class Lease: @unchecked Sendable {
    // SAFETY: `row` is immutable; `store` is set to nil under `lock`.
    private let lock = Monitor()
    private var store: Store?
    private let row: [UInt8]

    init(store: Store, row: [UInt8]) {
        self.store = store
        self.row = row
    }

    deinit {
        // A lease that cannot be released now ends with its duration.
        try? release()
    }

    /// Ends the lease. Idempotent.
    public func release() throws {
        let held = lock.locked {
            defer { store = nil }
            return store
        }
        guard let held, !held.engine.isClosed.load(ordering: .acquiring) else { return }
        try held.engine.mutate(.housekeeping) { mutation in
            try mutation.transaction.delete(held.engine.index.leases, row)
            mutation.noteChange(trees: 1)
        }
    }
}

extension Mutation {
    /// The index keys of the entries whose stamp is `start` or later.
    fileprivate func keys(from start: UInt64) throws -> [[UInt8]] {
        var keys: [[UInt8]] = []
        for database in [index.recency, index.pinned] {
            try reading.withCursor(database) { cursor in
                var pair = try cursor.seek(start)
                while let (_, key) = pair {
                    keys.append(Array(key))
                    pair = try cursor.next()
                }
            }
        }
        return keys
    }

    /// Removes leases whose time is over.
    func dropStaleLeases() throws {
        var stale: [[UInt8]] = []
        try reading.withCursor(index.leases) { cursor in
            var pair = try cursor.first()
            while let (row, value) = pair {
                if value.count != 16 || value.field(0, as: Int64.self) <= now.microseconds { stale.append(Array(row)) }
                pair = try cursor.next()
            }
        }
        for row in stale { try transaction.delete(index.leases, row) }
        if !stale.isEmpty { noteChange(trees: 1) }
    }
}
