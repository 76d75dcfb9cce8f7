extension Store {
    /// Gives an entry new metadata, and a new lifetime if one is passed, and leaves its body as it is: only if the
    /// entry is still the one that `get` returned, put with the same body and metadata. False if it was replaced or
    /// removed.
    ///
    /// Waits for the commit that it joins.
    /// - Parameters:
    ///   - entry: the result of `get`.
    ///   - metadata: at most 1 MiB.
    ///   - lifetime: how long the entry is fresh from now on; nil (the default): as before.
    ///   - durability: the durability of the change. Nil (the default): as `Configuration.durability` says.
    /// - Returns: true if it was changed.
    /// - Throws: `tooLarge`, `closed`, `readOnly`, `noSpace`, `io`.
    @discardableResult
    public func update(
        _ entry: Entry, metadata: [UInt8], lifetime: Lifetime? = nil, durability: Durability? = nil
    ) throws -> Bool {
        let change = EntryChange(metadata: metadata, lifetime: lifetime)
        try change.validate(entry.key)
        return try write(alteration(entry.key, change, .unchanged(.init(entry))), durability).isSuccess
    }

    /// Gives an entry new metadata, and a new lifetime if one is passed, if it is still the one that `get` returned.
    ///
    /// Parameters, result and errors are those of the synchronous form. Waiting holds no thread of the cooperative
    /// pool.
    @discardableResult
    public func update(
        _ entry: Entry, metadata: [UInt8], lifetime: Lifetime? = nil, durability: Durability? = nil
    ) async throws -> Bool {
        try Task.checkCancellation()
        let change = EntryChange(metadata: metadata, lifetime: lifetime)
        try change.validate(entry.key)
        return try await write(alteration(entry.key, change, .unchanged(.init(entry))), durability).isSuccess
    }

    /// Removes an entry if it is still the one that `get` returned. False if it was replaced or removed. Waits for the
    /// commit that it joins.
    /// - Parameters:
    ///   - entry: the result of `get`.
    ///   - durability: the durability of the removal. Nil (the default): as `Configuration.durability` says.
    /// - Returns: true if it was removed.
    /// - Throws: `closed`, `readOnly`, `io`.
    @discardableResult
    public func remove(_ entry: Entry, durability: Durability? = nil) throws -> Bool {
        try write(removal(of: entry, durability), durability).isSuccess
    }

    /// Removes an entry if it is still the one that `get` returned.
    ///
    /// Parameters, result and errors are those of the synchronous form. Waiting holds no thread of the cooperative
    /// pool. It runs to its end even if the task is cancelled.
    @discardableResult
    public func remove(_ entry: Entry, durability: Durability? = nil) async throws -> Bool {
        try await write(removal(of: entry, durability), durability).isSuccess
    }

    private func removal(of entry: Entry, _ durability: Durability?) -> Change {
        .remove(removal(of: entry.key, isDurable: isDurable(durability)), .unchanged(.init(entry)))
    }
}
