import LMDB

extension Store {
    /// Gives an entry new metadata, and a new lifetime if one is given, and leaves its body where it is: only if the entry
    /// is still the one that `get` returned, put with the same body and metadata. False if it is another by now, or gone.
    ///
    /// Errors: `tooLarge`, `closed`, `readOnly`, `noSpace`, `io`.
    @discardableResult
    public func update(_ entry: Entry, metadata: [UInt8], lifetime: Lifetime? = nil) throws -> Bool {
        _ = try writing()
        try PutOptions(metadata: metadata).validate(key: entry.key)
        if let put = entry.inMemoryOnly {
            guard engine.memory.lookup(entry.key, use: nil) === put else { return false }
            var options = put.options
            options.metadata = metadata
            if let lifetime { options.lifetime = lifetime }
            try self.put(entry.body.bytes(), for: entry.key, options)
            return true
        }
        engine.commitPending()
        let configuration = configuration
        let old = entry.metadata
        return try change(entry) { mutation, key in
            var isSame = false
            try mutation.update(key) { record in
                guard record.metadata == old else { return }
                isSame = true
                record.metadata = metadata
                if let lifetime { record.expires = configuration.expiry(lifetime, at: mutation.now).microseconds }
            }
            return isSame
        }
    }

    /// Removes an entry if it is still the one that `get` returned. False if it is another by now, or gone.
    /// Errors: `closed`, `readOnly`, `io`.
    @discardableResult
    public func remove(_ entry: Entry) throws -> Bool {
        _ = try writing()
        if let put = entry.inMemoryOnly {
            return engine.memory.lookup(entry.key, use: nil) === put && engine.memory.remove(entry.key)
        }
        engine.commitPending()
        let old = entry.metadata
        return try change(entry) { mutation, key in
            guard try mutation.record(key)?.metadata == old else { return false }
            return try mutation.remove(key) != nil
        }
    }

    private func change(_ entry: Entry, _ body: (Mutation, [UInt8]) throws -> Bool) throws -> Bool {
        let key = IndexKey.bytes(for: entry.key)
        let digest = entry.digest
        return try engine.mutate(.put) { mutation in
            guard let record = try mutation.record(key), try mutation.digest(ofBlob: record.blob) == digest else {
                return false
            }
            return try body(mutation, key)
        }
    }
}

extension Entry {
    /// The put behind an entry of policy `memoryOnly`; nil for others.
    fileprivate var inMemoryOnly: PendingPut? {
        if case .pending(let put) = source, put.options.storagePolicy == .memoryOnly { return put }
        return nil
    }
}
