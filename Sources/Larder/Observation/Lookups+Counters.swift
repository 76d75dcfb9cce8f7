/// Lookups as callers see them: counted, and some of them measured.
extension Lookups {
    /// The entry under a key; see `findEntry`.
    @inline(__always)
    func lookup(_ key: Key, _ visibility: Visibility, mayWait: Bool) throws -> Lookup {
        guard visibility.isCounted, counters.isLookupMeasured else {
            return try countedEntry(key, visibility, mayWait: mayWait)
        }
        let began = uptime.uptime()
        let found = try countedEntry(key, visibility, mayWait: mayWait)
        if case .due = found { return found }
        counters.note(.lookup, nanoseconds: uptime.uptime() &- began)
        return found
    }

    /// Counts misses: hits were counted where they were found. No entry is taken out of the result here, which would
    /// count its references a second time.
    @inline(__always)
    private func countedEntry(_ key: Key, _ visibility: Visibility, mayWait: Bool) throws -> Lookup {
        let found = try findEntry(key, visibility, mayWait: mayWait)
        if case .miss = found, visibility.isCounted { counters.addMisses() }
        return found
    }

    /// The entries under many keys; see `findEntries`.
    func get(_ keys: [Key], _ visibility: Visibility) throws -> [Entry?] {
        var quiet = visibility
        quiet.isCounted = false
        let found = try findEntries(keys, quiet)
        if visibility.isCounted { counters.addLookups(found.lazy.map(\.?.body)) }
        return found
    }
}

extension Bodies {
    /// The bytes with a digest; see `findBody`.
    func body(_ digest: Digest) throws -> Body? {
        let found = try findBody(digest)
        counters.addLookups(CollectionOfOne(found))
        return found
    }

    /// The bytes with many digests; see `findBodies`.
    func bodies(_ digests: [Digest]) throws -> [Body?] {
        let found = try findBodies(digests)
        counters.addLookups(found)
        return found
    }
}

extension Counters {
    /// Counts lookups for which nothing is locked, by what they found.
    fileprivate func addLookups(_ found: some Collection<Body?>) {
        var hits: UInt64 = 0
        var bytes: UInt64 = 0
        for case let body? in found {
            hits += 1
            bytes &+= body.length.unsigned
        }
        if hits > 0 { addHits(hits, bytes: bytes) }
        if hits < found.count { addMisses(UInt64(found.count) - hits) }
    }
}

extension Store {
    /// As the synchronous `get`, expired or not, and without being an access: for those who ask what is stored.
    package func peek(_ key: Key) throws -> Entry? {
        try requireOpen()
        var visibility = visibility(true)
        (visibility.isCounted, visibility.isAccess) = (false, false)
        return try engine.get(key, visibility)
    }

    /// As the asynchronous `get`, as a step of another lookup, which is the one that counts.
    func quietGet(_ key: Key) async throws -> Entry? {
        try Task.checkCancellation()
        try requireOpen()
        var visibility = visibility(false)
        visibility.isCounted = false
        switch try engine.lookup(key, visibility, mayWait: false) {
        case .hit(let entry): return entry
        case .miss: return nil
        case .due:
            let (engine, quiet) = (engine, visibility)
            return try await IOPool.shared.run { try engine.get(key, quiet) }
        }
    }
}

extension ByteCount {
    fileprivate var unsigned: UInt64 { UInt64(max(0, bytes)) }
}
