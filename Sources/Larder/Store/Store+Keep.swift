import LMDB

extension Store {
    // MARK: Lifetime

    /// Counts as an access of the entry under `key`, and gives it a new lifetime if one is passed, subject to
    /// `Configuration.maximumLifetime`.
    ///
    /// Waits for the commit that it joins.
    /// - Parameters:
    ///   - key: the key of the entry.
    ///   - lifetime: how long the entry is fresh from now on; nil (the default): as before.
    ///   - durability: the durability of the change. Nil (the default): as `Configuration.durability` says.
    /// - Returns: false if there is no entry, or only one of another application version.
    /// - Throws: `invalidArgument`, `tooLarge`, `closed`, `readOnly`, `noSpace`, `io`.
    @discardableResult
    public func touch(_ key: Key, lifetime: Lifetime? = nil, durability: Durability? = nil) throws -> Bool {
        try key.validate()
        return try write(alteration(key, EntryChange(lifetime: lifetime, isAccess: true)), durability).isSuccess
    }

    /// Counts as an access of the entry under `key`, and gives it a new lifetime if one is passed, subject to
    /// `Configuration.maximumLifetime`.
    ///
    /// Parameters, result and errors are those of the synchronous form. Waiting holds no thread of the cooperative
    /// pool.
    @discardableResult
    public func touch(_ key: Key, lifetime: Lifetime? = nil, durability: Durability? = nil) async throws -> Bool {
        try Task.checkCancellation()
        try key.validate()
        return try await write(alteration(key, EntryChange(lifetime: lifetime, isAccess: true)), durability).isSuccess
    }

    // MARK: Pins

    /// Keeps the entry under `key` out of displacement until `unpin`: in the store, or in memory for one of policy
    /// `memoryOnly`. It does not count as an access. Waits for the commit that it joins.
    /// - Parameters:
    ///   - key: the key of the entry.
    ///   - durability: the durability of the change. Nil (the default): as `Configuration.durability` says.
    /// - Returns: false if there is no entry, or only one of another application version.
    /// - Throws: `invalidArgument`, `tooLarge`, `closed`, `readOnly`, `noSpace`, `io`.
    @discardableResult
    public func pin(_ key: Key, durability: Durability? = nil) throws -> Bool {
        try key.validate()
        return try write(alteration(key, EntryChange(isPinned: true)), durability).isSuccess
    }

    /// Keeps the entry under `key` out of displacement until `unpin`.
    ///
    /// Parameters, result and errors are those of the synchronous form. Waiting holds no thread of the cooperative
    /// pool.
    @discardableResult
    public func pin(_ key: Key, durability: Durability? = nil) async throws -> Bool {
        try Task.checkCancellation()
        try key.validate()
        return try await write(alteration(key, EntryChange(isPinned: true)), durability).isSuccess
    }

    /// Unpins an entry: displacement may remove it again, unless one of its tags is pinned. Waits for the commit that
    /// it joins.
    /// - Parameters:
    ///   - key: the key of the entry.
    ///   - durability: the durability of the change. Nil (the default): as `Configuration.durability` says.
    /// - Returns: false if there is no entry, or only one of another application version.
    /// - Throws: `invalidArgument`, `tooLarge`, `closed`, `readOnly`, `noSpace`, `io`.
    @discardableResult
    public func unpin(_ key: Key, durability: Durability? = nil) throws -> Bool {
        try key.validate()
        return try write(alteration(key, EntryChange(isPinned: false)), durability).isSuccess
    }

    /// Unpins an entry: displacement may remove it again.
    ///
    /// Parameters, result and errors are those of the synchronous form. Waiting holds no thread of the cooperative
    /// pool. It runs to its end even if the task is cancelled.
    @discardableResult
    public func unpin(_ key: Key, durability: Durability? = nil) async throws -> Bool {
        try key.validate()
        return try await write(alteration(key, EntryChange(isPinned: false)), durability).isSuccess
    }

    /// True for entries of the store's own application version, and for all in a store that has none.
    func sees(_ version: UInt16) -> Bool { self.version.map { $0 == version } ?? true }

    /// Sees to it that what was committed survives power loss, where that is asked for.
    func settle(_ durability: Durability?) throws {
        if isDurable(durability) { try engine.writing?.transactions.syncIndexIfNeeded() }
    }

    /// Keeps every entry with `tag` out of displacement, those put later included, and those of every application
    /// version and in every process: a tag is pinned in the store, not in an entry.
    ///
    /// If it throws, some entries may be pinned although the tag is not: call it again, or `unpin(tag:)`.
    /// - Complexity: O(k log n) for k entries with the tag, in several transactions; it waits for each.
    /// - Parameters:
    ///   - tag: 1 to 200 bytes of UTF-8, no NUL.
    ///   - durability: the durability of the pin. Nil (the default): as `Configuration.durability` says.
    /// - Returns: the number of entries that have the tag now and that this store sees.
    /// - Throws: `invalidArgument`, `closed`, `readOnly`, `noSpace`, `io`.
    @available(*, noasync, message: "Use `perform`, which waits off the cooperative threads.")
    @discardableResult
    public func pin(tag: String, durability: Durability? = nil) throws -> Int {
        try PutOptions.validate(callersTag: tag)
        return try pin(reservedTag: tag, durability: durability)
    }

    /// As `pin(tag:)`, for a reserved tag.
    ///
    /// - Parameter owner: the pin lasts only while there is an entry under this key: then displacement takes the
    ///   entries with the tag first. Nil: until `unpin(reservedTag:)`. See `PinOwners`.
    @discardableResult
    package func pin(reservedTag tag: String, while owner: Key? = nil, durability: Durability? = nil) throws -> Int {
        try prepare(tag)
        let start = try engine.state().nextStamp
        let count = try updateEntries(tag, .put) { _, record in record.isPinnedByTag = true }
        // The tag last: until every entry is pinned nothing may say that it is. The walk may have passed by what was
        // put, used or overwritten meanwhile, and that has a later stamp than `start`.
        try engine.mutate(.put) { mutation in
            for key in try mutation.keys(from: start) {
                try mutation.update(key) { if $0.tags.has(tag) { $0.isPinnedByTag = true } }
            }
            try mutation.transaction.put(engine.index.pinnedTags, Array(tag.utf8), [])
            if let owner {
                try mutation.transaction.put(engine.index.pinnedTags, PinOwners.row(tag), IndexKey.bytes(for: owner))
            }
            mutation.noteChange(trees: 1)
        }
        try settle(durability)
        return count + inMemory(tag)
    }

    /// Undoes `pin(tag:)`. Entries that are pinned themselves or by another tag stay pinned.
    ///
    /// - Complexity: O(k log n) for k entries with the tag, in several transactions; it waits for each.
    /// - Parameters:
    ///   - tag: the pinned tag. It is not an error if the tag is not pinned.
    ///   - durability: the durability of the change. Nil (the default): as `Configuration.durability` says.
    /// - Returns: the number of entries that have the tag and that this store sees.
    /// - Throws: `invalidArgument`, `closed`, `readOnly`, `noSpace`, `io`.
    @available(*, noasync, message: "Use `perform`, which waits off the cooperative threads.")
    @discardableResult
    public func unpin(tag: String, durability: Durability? = nil) throws -> Int {
        try PutOptions.validate(callersTag: tag)
        return try unpin(reservedTag: tag, durability: durability)
    }

    /// As `unpin(tag:)`, for a reserved tag.
    @discardableResult
    package func unpin(reservedTag tag: String, durability: Durability? = nil) throws -> Int {
        try prepare(tag)
        try engine.mutate(.housekeeping) { mutation in
            for row in [Array(tag.utf8), PinOwners.row(tag)] {
                try mutation.transaction.delete(engine.index.pinnedTags, row)
            }
            mutation.noteChange(trees: 1)
        }
        let count = try updateEntries(tag, .housekeeping) { $1.isPinnedByTag = try $0.hasPinnedTag($1.tags) }
        try writing().watermarks.steer()
        try settle(durability)
        return count + inMemory(tag)
    }

    private func inMemory(_ tag: String) -> Int {
        engine.memory.all.count { sees($0.version) && $0.options.tags.has(tag) }
    }

    private func prepare(_ tag: String) throws {
        _ = try writing()
        try PutOptions.validate(tag: tag)
        engine.commitPending()
    }

    /// Changes the entries with a tag in transactions that fit the headroom; returns how many of them the store sees.
    private func updateEntries(
        _ tag: String, _ purpose: Transactions.Purpose, _ change: (Mutation, inout EntryRecord) throws -> Void
    ) throws -> Int {
        var walk = EntryWalk(.tag(tag), version: nil, now: engine.clock.now())
        var count = 0
        while !walk.isOver {
            let limit = try engine.context.removalLimit()
            let batch = try engine.read { try walk.next(engine.index, $0, limit: limit) }
            count += try batch.keys[...].inParts { keys in
                try engine.mutate(purpose) { mutation in
                    var seen = 0
                    for (key, _) in keys {
                        try mutation.update(key) {
                            try change(mutation, &$0)
                            seen += sees($0.version) ? 1 : 0
                        }
                    }
                    return seen
                }
            }
        }
        return count
    }

    /// The pinned tags, in the order of their bytes.
    /// - Throws: `closed`, `io`, `readersFull`.
    public func pinnedTags() throws -> [String] {
        try requireOpen()
        return try engine.read { transaction in
            try transaction.withCursor(engine.index.pinnedTags) { cursor in
                var tags: [String] = []
                var pair = try cursor.first()
                while let (key, _) = pair {
                    if key.first != 0 { tags.append(String(decoding: key, as: UTF8.self)) }
                    pair = try cursor.next()
                }
                // Hidden keys are in no order.
                return engine.index.isOrdered ? tags : tags.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            }
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
}
