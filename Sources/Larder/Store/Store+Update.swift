import LMDB

extension Store {
    /// Gives an entry new metadata, and a new lifetime if one is given, and leaves its body where it is: only if the entry
    /// is still the one that `get` returned, put with the same body and metadata. False if it is another by now, or gone.
    ///
    /// - Parameters:
    ///   - metadata: at most 1 MiB.
    ///   - lifetime: how long the entry is fresh from now on; nil (the default): as before.
    ///   - durability: whether the change has to survive power loss. Nil (the default): as `Configuration.durability` says.
    /// - Throws: `tooLarge`, `closed`, `readOnly`, `noSpace`, `io`.
    @discardableResult
    public func update(
        _ entry: Entry, metadata: [UInt8], lifetime: Lifetime? = nil, durability: Durability? = nil
    ) throws -> Bool {
        _ = try writing()
        try PutOptions(metadata: metadata).validate(key: entry.key)
        let configuration = configuration
        if entry.isInMemoryOnly {
            let now = engine.clock.now()
            return try engine.changeInMemory(entry.key) { put in
                guard sees(put.version), put.isUnchanged(entry) else { return nil }
                return put.copy(expires: lifetime.map { configuration.expiry($0, at: now) }, metadata: metadata)
            }
        }
        engine.commitPending()
        let old = entry.metadata
        let isDone = try change(entry) { mutation, key in
            var isSame = false
            try mutation.update(key) { record in
                guard record.metadata == old else { return }
                isSame = true
                record.metadata = metadata
                if let lifetime { record.expires = configuration.expiry(lifetime, at: mutation.now).microseconds }
            }
            return isSame
        }
        try settle(durability)
        return isDone
    }

    /// As the synchronous `update`, waiting for disks and commits without holding a thread of the cooperative pool.
    @discardableResult
    public func update(
        _ entry: Entry, metadata: [UInt8], lifetime: Lifetime? = nil, durability: Durability? = nil
    ) async throws -> Bool {
        _ = try writing()
        // What is pending now; then there is little left to wait for on the pool.
        await engine.commitPending()
        return try await IOPool.shared.run { [self] in
            try update(entry, metadata: metadata, lifetime: lifetime, durability: durability)
        }
    }

    /// Removes an entry if it is still the one that `get` returned. False if it is another by now, or gone.
    /// - Parameter durability: whether the removal has to survive power loss. Nil (the default): as
    ///   `Configuration.durability` says.
    /// - Throws: `closed`, `readOnly`, `io`.
    @discardableResult
    public func remove(_ entry: Entry, durability: Durability? = nil) throws -> Bool {
        _ = try writing()
        if entry.isInMemoryOnly {
            return engine.memory.remove(entry.key) { sees($0.version) && $0.isUnchanged(entry) } != nil
        }
        engine.commitPending()
        let old = entry.metadata
        let isDone = try change(entry) { mutation, key in
            guard try mutation.record(key)?.metadata == old else { return false }
            return try mutation.remove(key) != nil
        }
        try settle(durability)
        return isDone
    }

    /// As the synchronous `remove(_: Entry)`, waiting for disks and commits without holding a thread of the cooperative pool.
    @discardableResult
    public func remove(_ entry: Entry, durability: Durability? = nil) async throws -> Bool {
        _ = try writing()
        await engine.commitPending()
        return try await IOPool.shared.run { [self] in try remove(entry, durability: durability) }
    }

    private func change(_ entry: Entry, _ body: (Mutation, [UInt8]) throws -> Bool) throws -> Bool {
        let key = IndexKey.bytes(for: entry.key)
        let digest = entry.digest
        return try engine.mutate(.put) { mutation in
            guard let record = try mutation.record(key), sees(record.version),
                try mutation.digest(ofBlob: record.blob) == digest
            else { return false }
            return try body(mutation, key)
        }
    }
}

extension Entry {
    fileprivate var isInMemoryOnly: Bool {
        if case .pending(let put, _) = source { return put.options.storagePolicy == .memoryOnly }
        return false
    }
}

extension PendingPut {
    /// True if the entry has the body and the metadata it was found with.
    fileprivate func isUnchanged(_ entry: Entry) -> Bool {
        options.metadata == entry.metadata && digest == entry.digest
    }
}
