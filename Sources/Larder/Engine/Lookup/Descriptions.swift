import LMDB

/// What readers see of entries beside their bytes: attributes, and what an entry that is not committed yet takes
/// over from the one that it replaces. Without state of its own.
final class Descriptions: EnginePart {
    let context: EngineContext
    private let memory: MemoryTable
    private let damage: Damage
    /// Nil in a read-only engine.
    private let leases: LeaseBook?

    init(context: EngineContext, memory: MemoryTable, damage: Damage, leases: LeaseBook?) {
        self.context = context
        self.memory = memory
        self.damage = damage
        self.leases = leases
    }

    /// Attributes from the raw value of an entry and what its blob says; nil if one is damaged.
    /// - Parameters:
    ///   - withLeases: whether the leases on it are looked up, which costs a descent for each tag and more.
    ///   - includesPartial: false for nil where the body is in progress.
    func attributes(
        _ raw: UnsafeRawBufferPointer, _ indexKey: [UInt8], withLeases: Bool = false, _ transaction: ReadTransaction,
        includesPartial: Bool = false
    ) throws -> Attributes? {
        guard EntryView(raw)?.isIntact(under: indexKey) == true else {
            logger(.integrity).error("damaged entry", metadata: ["key": "\(Key(bytes: indexKey))"])
            return nil
        }
        guard let record = EntryRecord(raw), let head = try index.head(of: record, transaction), !head.isDamaged,
            includesPartial || record.progress == nil
        else {
            return nil
        }
        guard record.isOf(head) else {
            if record.embedded != nil { damage.reportEmbedded(under: record.key(indexKey), found: head.digest) }
            return nil
        }
        let shared = record.embedded == nil ? try index.shared(head.digest, transaction) : nil
        let key = record.key(indexKey)
        let leases =
            withLeases ? try activeLeases(key, record.tags, head.digest, record.version, transaction) : nil
        return Attributes(key: key, record: record, head: head, references: shared?.references ?? 1, leases: leases)
    }

    /// The leases in effect on an entry.
    private func activeLeases(
        _ key: Key, _ tags: [String], _ digest: Digest, _ version: UInt16, _ transaction: ReadTransaction
    ) throws -> [ActiveLease] {
        try index.activeLeases(
            key.bytes, tags, digest, version: version, at: clock.now(), except: Set(leases?.released ?? []),
            transaction
        ).map { lease in
            let isHeld = try lease.instance != 0 && InstanceLock.isAlive(lease.instance, staging: files.staging)
            let holder: ActiveLease.Holder = lease.instance == 0 ? .timeOnly : isHeld ? .process : .endedProcess
            return ActiveLease(subject: lease.subject, expires: lease.expires, holder: holder)
        }
    }

    // MARK: Entries that are not in the index

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
    func attributes(ofMemory put: PendingPut, withLeases: Bool = false) throws -> Attributes {
        let leases =
            withLeases ? try read { try activeLeases(put.key, put.options.tags, put.digest, put.version, $0) } : nil
        return Attributes(pending: put, try description(of: put), references: 1, leases: leases)
    }

    func inheritance(fromIndex put: PendingPut) throws -> PendingPut.Inheritance? {
        try read { transaction in
            guard let raw = try transaction.get(index.entries, put.indexKey), let record = EntryRecord(raw),
                put.overwrites(record.version)
            else { return nil }
            return PendingPut.Inheritance(
                created: Timestamp(microseconds: record.created), isPinned: record.isPinned)
        }
    }

    // MARK: Selections

    /// A selection as it is judged now.
    func filter(_ selection: Selection, version: UInt16?) throws -> EntryFilter {
        let versions = EntryFilter.namesVersions(selection) ? try read { try index.versions($0) } : [:]
        return EntryFilter(selection, version: version, versions: versions, now: clock.now())
    }

    /// The entries of policy `memoryOnly` that a selection selects.
    func inMemory(_ filter: EntryFilter) throws -> [PendingPut] {
        let hasPinnedTags = try read { try $0.statistics(index.pinnedTags).entries > 0 }
        return try memory.all.filter { put in
            var record = put.asRecord
            if hasPinnedTags, !record.tags.isEmpty {
                record.isPinnedByTag = try read { try index.hasPinnedTag(record.tags, $0) }
            }
            return filter.includes(put.key, record) { put.digest }
        }
    }
}
