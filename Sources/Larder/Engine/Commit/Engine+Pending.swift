import LMDB

/// Removals on their way to the index, and entries that stay in memory.
extension Engine {
    /// Queues a removal; readers of this process see it at once. Returns the generation of its batch; nil if it would
    /// have had to wait and may not.
    @discardableResult
    func submit(
        _ removal: PendingRemoval, _ writing: Writing, mayWait: Bool = true, alongside: () -> Void = {}
    ) throws -> UInt64? {
        if mayWait { reach("wait.batch") }
        let memory = 256 + removal.key.bytes.count
        guard
            let added = try writing.pending.add(
                .remove(removal), memory: memory, mayWait: mayWait, alongside: alongside)
        else { return nil }
        if case .staged(let file)? = added.replaced?.body { discard(file, writing) }
        return added.generation
    }

    /// Waits for the commit of a durable removal.
    func awaitCommit(_ generation: UInt64, _ removal: PendingRemoval, _ writing: Writing) throws {
        guard removal.isDurable else { return }
        reach("wait.commit")
        writing.pending.wait(for: generation)
        try requireCommitted(generation, removal, writing)
    }

    // MARK: Entries in memory

    /// Stores an entry of policy `memoryOnly`, and queues the removal of what the index has under its key. Returns 0,
    /// as there is nothing to wait for; nil if the removal would have had to wait and may not.
    func submitToMemory(_ put: PendingPut, _ writing: Writing, _ mayWait: Bool) throws -> UInt64? {
        let evicted = try memory.reserve(for: put, at: clock.now(), kept: kept)
        reportEvicted(evicted)
        do {
            if let old = try inheritance(of: put, writing) { put.inherit(old) }
            let removal = PendingRemoval(
                key: put.key, owner: put.owner, version: nil, isDurable: false, uptime: uptime.uptime())
            // Together with the removal, so that another thread's put of the key to disk comes before or after both.
            let memory = memory
            let generation = try submit(removal, writing, mayWait: mayWait, alongside: { memory.insert(put) })
            if generation == nil { memory.cancel(put) }
            return generation.map { _ in 0 }
        } catch {
            memory.cancel(put)
            throw error
        }
    }

    /// Changes an entry in memory, which may take more room than before; false if there is none, or `body` returns nil.
    func changeInMemory(_ key: Key, _ body: (PendingPut) -> PendingPut?) throws -> Bool {
        guard let old = memory.lookup(key, use: nil), let new = body(old) else { return false }
        reportEvicted(try memory.reserve(for: new, at: clock.now(), kept: kept))
        defer { memory.cancel(new) }
        return memory.change(key, body)
    }

    /// What `put` takes over from an entry on disk, or on its way there, that it replaces.
    private func inheritance(of put: PendingPut, _ writing: Writing) throws -> PendingPut.Inheritance? {
        switch writing.pending.lookup(put.key, use: nil) {
        case .removed: return nil
        case .put(let earlier):
            guard put.overwrites(earlier.version) else { return nil }
            return try inheritance(of: earlier)
        case nil: return try inheritance(fromIndex: put)
        }
    }

    /// What a put that is not committed yet takes over from the index.
    func inheritance(of put: PendingPut) throws -> PendingPut.Inheritance {
        try put.inheritance { put.options.storagePolicy == .memoryOnly ? nil : try inheritance(fromIndex: put) }
    }

    /// As above, with the pins of its tags: what a reader sees.
    func description(of put: PendingPut) throws -> PendingPut.Inheritance {
        var known = try inheritance(of: put)
        let tags = put.options.tags
        if !known.isPinned, !tags.isEmpty { known.isPinned = try read { try index.hasPinnedTag(tags, $0) } }
        return known
    }

    /// The attributes of an entry in memory, whose body no other entry shares.
    func attributes(ofMemory put: PendingPut) throws -> Attributes {
        Attributes(pending: put, try description(of: put), references: 1)
    }

    private func inheritance(fromIndex put: PendingPut) throws -> PendingPut.Inheritance? {
        try read { transaction in
            guard let raw = try transaction.get(index.entries, put.indexKey), let record = EntryRecord(raw),
                put.overwrites(record.version)
            else { return nil }
            return PendingPut.Inheritance(
                created: Timestamp(microseconds: record.created), isPinned: record.isPinned)
        }
    }

    /// What a collection removes from memory, or would.
    func collectMemory(_ selection: Selection, _ version: UInt16?, isDryRun: Bool) throws -> Int {
        let filter = try filter(selection, version: version)
        return isDryRun ? try inMemory(filter).count : try removeInMemory(filter)
    }

    /// The keys of those entries in memory that displacement passes by.
    private func kept(_ puts: [PendingPut]) throws -> Set<Key> {
        let released = Set(writing?.leases.released ?? [])
        return try read { transaction in
            let hasPins = try transaction.statistics(index.pinnedTags).entries > 0
            let hasLeases = try transaction.statistics(index.leases).entries > 0
            let now = clock.now()
            var kept = Set<Key>()
            for put in puts {
                let tags = put.options.tags
                if try put.isPinned || hasPins && index.hasPinnedTag(tags, transaction)
                    || hasLeases
                        && index.isLeased(
                            put.key.bytes, tags, digest: { put.digest }, version: put.version, at: now,
                            except: released, transaction)
                {
                    kept.insert(put.key)
                }
            }
            return kept
        }
    }

    private func reportEvicted(_ puts: [PendingPut]) {
        if puts.isEmpty { return }
        displacedCount.wrappingAdd(UInt64(puts.count), ordering: .relaxed)
        let now = clock.now()
        for put in puts {
            configuration.observer?(
                .displaced(
                    key: put.key, length: ByteCount(Int64(clamping: put.length)),
                    reason: put.expires <= now ? .expired : .leastRecentlyUsed))
        }
    }
}
