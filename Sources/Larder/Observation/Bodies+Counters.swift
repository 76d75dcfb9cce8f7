extension Bodies {
    /// The bytes with a digest; see `findBody`.
    func body(_ digest: Digest, walks: Bool = true) throws -> Body? {
        let found = try findBody(digest, walks: walks)
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
    func addLookups(_ found: some Collection<Body?>) {
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

extension ByteCount {
    fileprivate var unsigned: UInt64 { UInt64(max(0, bytes)) }
}
