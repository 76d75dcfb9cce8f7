extension Change {
    /// Makes the change in a transaction. May run several times, each time in a transaction without what the last one
    /// did.
    func apply(to mutation: Mutation, _ leases: LeaseBook) throws -> Outcome {
        switch self {
        case .put(let put, let condition): return try put.apply(condition, mutation)
        case .remove(let removal, let condition):
            if case .unchanged = condition,
                let refusal = try condition.refusal(IndexKey.bytes(for: removal.key), mutation, sees: removal.covers)
            {
                return .over(refusal)
            }
            return .removed(try mutation.remove(removal) ? 1 : 0)
        case .alter(let alteration): return .over(try alteration.apply(mutation, session: leases.instance))
        case .removeContent(let digest, let known, let fromMemory):
            return .removed(try mutation.remove(content: digest, known) + fromMemory)
        case .lease(let request):
            if request.kind == .computation,
                try leases.isClaimedElsewhere(request.subject, request.version, mutation.reading)
            {
                return .over(.present)
            }
            guard request.isHeld else {
                try mutation.prolongLease(request, leases)
                return .over(.done)
            }
            return .leased(row: try mutation.addLease(request, leases))
        case .endLease(let row):
            try mutation.dropLeases([row])
            return .over(.done)
        case .partial(let change): return try change.apply(mutation, leases)
        case .over(let result): return .over(result)
        }
    }
}

extension Change.Condition {
    /// Why a change is not made; nil if the entry that it is for is there.
    func refusal(_ key: [UInt8], _ mutation: Mutation, sees: (UInt16) -> Bool) throws -> WriteResult? {
        guard let record = try mutation.intactRecord(key), sees(record.version) else { return .absent }
        guard case .unchanged(let expected) = self else { return nil }
        let isSame = try record.metadata == expected.metadata && mutation.digest(of: record) == expected.digest
        return isSame ? nil : .changed
    }
}

extension PendingPut {
    fileprivate func apply(_ condition: Change.Condition, _ mutation: Mutation) throws -> Change.Outcome {
        switch condition {
        case .none: break
        case .vacant:
            if try mutation.useFreshEntry(indexKey, isDurable: isDurable, where: overwrites) {
                mutation.blobs.drop(body)
                return .over(.present)
            }
        case .unchanged:
            if let refusal = try condition.refusal(indexKey, mutation, sees: overwrites) {
                mutation.blobs.drop(body)
                return .over(refusal)
            }
        }
        guard case .content = body else {
            try mutation.put(self)
            return .stored(digest, length: length)
        }
        guard let content = try mutation.blobs.share(digest, isDurable: isDurable) else { return .over(.absent) }
        try mutation.put(self, content: content)
        return .stored(digest, length: content.length)
    }
}

extension Change.Alteration {
    fileprivate func apply(_ mutation: Mutation, session: UInt64) throws -> WriteResult {
        let indexKey = IndexKey.bytes(for: key)
        if let refusal = try condition.refusal(indexKey, mutation, sees: sees) { return refusal }
        var stamp: UInt64?
        try mutation.update(indexKey) { record in
            stamp = record.stamp
            if let metadata = fields.metadata { record.metadata = metadata }
            if let lifetime = fields.lifetime {
                record.expires = configuration.expiry(lifetime, at: mutation.now).microseconds
            }
            if let tags = fields.tags, !tags.elementsEqual(record.tags, by: { $0.utf8.elementsEqual($1.utf8) }) {
                record.tags = tags
                record.isPinnedByTag = try mutation.hasPinnedTag(tags)
                // `pin(tag:)` looks again at what is younger than its beginning.
                record.stamp = mutation.takeStamp()
                stamp = record.stamp
            }
            if let policy = fields.storagePolicy, policy != record.policy {
                record.policy = policy
                record.session = policy == .session ? session : 0
            }
            if let isPinned = fields.isPinned { record.isPinned = isPinned }
        }
        if fields.isAccess, let stamp { try mutation.touch(stamp: stamp, hits: 0, accessed: mutation.now) }
        return .done
    }
}
