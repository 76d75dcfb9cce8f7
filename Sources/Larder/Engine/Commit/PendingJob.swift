/// Operations that the committer applies in one transaction, in order, after the puts and removals of their batch.
///
/// Unlike those they look at what is there, so readers do not see them before the commit, and their caller waits
/// for it.
final class PendingJob: @unchecked Sendable {
    // SAFETY: immutable but for `results`, `inMemory`, `reserved`, `evicted`, `removedCount`, `contentLengths`,
    // `isCommitted` and `failure`. Only the thread of the committer touches those until `PendingSet.finish`, and only
    // the caller after `PendingSet.wait`; the pending set's lock orders the two.
    enum Operation: Sendable {
        /// Cannot be done, as was known before.
        case failed(LarderError)
        case put(PendingPut, unlessPresent: Bool)
        /// Without bytes: those that the store has with its digest.
        case putContent(PendingPut, unlessPresent: Bool, WriteBatch.Expected?)
        /// If the entry under its key is still the one that is expected.
        case replace(PendingPut, WriteBatch.Expected)
        case change(Key, EntryChange, WriteBatch.Expected?)
        case remove(Key, WriteBatch.Expected?)
        /// With the index keys of the entries that had the content when it was looked for.
        case removeContent(Digest, [[UInt8]])
        /// A lease that ends with its time.
        case timedLease(Index.LeaseKind, [UInt8], Duration)
        /// A lease that a caller holds, with a row of its own.
        case heldLease(Index.LeaseKind, [UInt8], Duration)
        /// The claim of a key whose value is computed, unless another process has it.
        case claim([UInt8], Duration)
        /// Deletes the row of a lease or claim.
        case endLease([UInt8])
        /// A step of a writer of a body in progress.
        case partial(PartialChange)
    }

    /// The result of an operation.
    enum Result {
        case over(WriteResult)
        case leased(row: [UInt8])
    }

    /// What the job does to an entry of policy `memoryOnly`: done after the commit, unless that entry is another by
    /// then.
    struct MemoryChange {
        let key: Key
        let seen: PendingPut
        /// Nil: it is removed.
        let new: PendingPut?
    }

    let operations: [Operation]
    /// Of the store whose call this is.
    let configuration: Configuration
    let version: UInt16?
    let isDurable: Bool
    /// The keys that it reads or changes; nil: they are not known beforehand.
    let keys: Set<Key>?
    /// Bytes the pending set holds in memory for it.
    let memory: Int
    private(set) var results: [Result] = []
    /// What it found in memory, and what it makes of it: a later operation of the job sees what an earlier one does.
    private var inMemory: [Key: (seen: PendingPut?, now: PendingPut?)] = [:]
    /// Changed entries whose memory is reserved until they are in their place.
    private var reserved: [Key: PendingPut] = [:]
    /// Entries in memory that made way for those.
    private(set) var evicted: [PendingPut] = []
    /// Entries that it has removed.
    private(set) var removedCount = 0
    /// Lengths of the content that it has put under keys, in bytes.
    private(set) var contentLengths: [Key: UInt64] = [:]
    /// True once its transaction is committed: then it is in the store, whatever `failure` says.
    private(set) var isCommitted = false
    /// Why it could not be committed, or is not sure to survive power loss.
    private(set) var failure: LarderError?

    /// Its changes and puts of content make things smaller.
    private let isHousekeeping: Bool

    init(
        _ operations: [Operation], configuration: Configuration, version: UInt16?, isDurable: Bool,
        isHousekeeping: Bool = false
    ) {
        self.isHousekeeping = isHousekeeping
        self.operations = operations
        self.configuration = configuration
        self.version = version
        self.isDurable = isDurable
        var keys: Set<Key>? = []
        var memory = 0
        for operation in operations {
            memory += 128
            switch operation {
            case .put(let put, _), .putContent(let put, _, _), .replace(let put, _):
                keys?.insert(put.key)
                memory += put.memory
            case .change(let key, let change, _):
                keys?.insert(key)
                memory += key.bytes.count + (change.metadata?.count ?? 0)
            case .remove(let key, _):
                keys?.insert(key)
                memory += key.bytes.count
            case .removeContent: keys = nil
            case .partial(let change):
                keys?.insert(change.work.key)
                memory += change.work.key.bytes.count
            case .failed, .timedLease, .heldLease, .claim, .endLease: break
            }
        }
        self.keys = keys
        self.memory = memory
    }

    /// Which limit its transaction has to keep: removing and unpinning are the way out of a full store.
    /// - Parameter limit: changes whose pages fit the headroom for certain; a job with more of them makes room like a
    ///   put.
    func purpose(limit: Int) -> Transactions.Purpose {
        var count = 0
        var claims = false
        for operation in operations {
            switch operation {
            case .failed: break
            case .remove, .endLease: count += 1
            case .removeContent(_, let keys): count += keys.count
            // A row for as long as a computation lasts: not worth displacing anything for.
            case .claim: claims = true
            case .change(_, let change, _):
                if isHousekeeping {
                    count += 2
                    break
                }
                if change != EntryChange(isPinned: false) { return .put }
                count += 1
            case .putContent where isHousekeeping: count += 2
            case .put, .putContent, .replace, .timedLease, .heldLease: return .put
            case .partial(let change):
                switch change.kind {
                case .begin, .complete: return .put
                // What it counts is reserved already.
                case .advance: claims = true
                // What a writer leaves can be displaced.
                case .suspend, .abandon: count += 1
                }
            }
        }
        return count > limit ? .put : claims ? .touch : .housekeeping
    }

    /// True if it removes content, under whatever keys that is.
    var removesContent: Bool { keys == nil }

    /// Files that the job has staged.
    var stagedFiles: [StagedFile] {
        operations.compactMap { operation in
            switch operation {
            case .put(let put, _), .replace(let put, _):
                if case .staged(let file) = put.body { return file }
                return nil
            case .partial(let change): return change.stagedFile
            default: return nil
            }
        }
    }

    /// True if files become bodies with it whose names have to be on disk before, where it is durable.
    var namesFiles: Bool {
        !stagedFiles.isEmpty
            || operations.contains { if case .partial(let change) = $0 { change.completes } else { false } }
    }

    private var partialChanges: [PartialChange] {
        operations.compactMap { if case .partial(let change) = $0 { change } else { nil } }
    }

    /// It could not be committed.
    func fail(_ error: LarderError) {
        failure = failure ?? error
        if !isCommitted { for change in partialChanges { change.noteFailed() } }
    }

    /// True for entries of the application version whose store this is.
    func sees(_ version: UInt16) -> Bool { self.version.map { $0 == version } ?? true }

    /// The transaction with its operations is committed.
    func noteCommitted() {
        isCommitted = true
        for change in partialChanges { change.noteCommitted() }
    }

    /// What to do to entries in memory, once that is committed.
    var memoryChanges: [MemoryChange] {
        inMemory.compactMap { key, entry in
            guard let seen = entry.seen, entry.now !== seen else { return nil }
            return MemoryChange(key: key, seen: seen, new: entry.now)
        }
    }

    /// Applies the operations. May run several times, each time on a transaction without the changes of the last.
    func apply(to mutation: Mutation, _ memory: MemoryEntries, _ leases: LeaseBook) throws {
        results.removeAll(keepingCapacity: true)
        inMemory = [:]
        giveBack(to: memory)
        removedCount = 0
        contentLengths = [:]
        if isDurable { mutation.noteDurable() }
        for operation in operations { results.append(try apply(operation, mutation, memory, leases)) }
    }

    private func apply(
        _ operation: Operation, _ mutation: Mutation, _ memory: MemoryEntries, _ leases: LeaseBook
    ) throws -> Result {
        switch operation {
        case .failed(let error): return .over(.failed(error))
        case .put(let put, let unlessPresent):
            return .over(try store(put, unlessPresent, mutation, memory))
        case .putContent(let put, let unlessPresent, let expected):
            if let expected, let refusal = try refusal(of: put, expected, mutation, memory) { return .over(refusal) }
            return .over(try store(put, unlessPresent, mutation, memory, isContentStored: true))
        case .replace(let put, let expected):
            if let refusal = try refusal(of: put, expected, mutation, memory) {
                mutation.blobs.drop(put.body)
                return .over(refusal)
            }
            return .over(try store(put, false, mutation, memory))
        case .change(let key, let change, let expected):
            if let put = lookUpInMemory(key, mutation, memory) {
                return .over(try changeInMemory(put, change, expected, mutation, memory, leases))
            }
            return .over(try self.change(key, change, expected, mutation, leases.instance))
        case .remove(let key, let expected):
            if let put = lookUpInMemory(key, mutation, memory) {
                guard sees(put.version) else { return .over(.absent) }
                guard put.isUnchanged(expected) else { return .over(.changed) }
                setInMemory(key, nil, mutation)
                removedCount += 1
                return .over(.done)
            }
            let indexKey = IndexKey.bytes(for: key)
            if let missing = try missing(indexKey, expected, mutation) { return .over(missing) }
            if try mutation.remove(indexKey) == nil { return .over(.absent) }
            removedCount += 1
            return .over(.done)
        case .removeContent(let digest, let known):
            var count = try mutation.remove(content: digest, known)
            for put in memory.all where put.digest == digest {
                guard lookUpInMemory(put.key, mutation, memory)?.digest == digest else { continue }
                setInMemory(put.key, nil, mutation)
                count += 1
            }
            removedCount += count
            return .over(count == 0 ? .absent : .done)
        case .timedLease(let kind, let subject, let duration):
            let version = kind == .digest ? nil : version
            try mutation.lease(kind, subject, version: version, for: duration, leases)
            return .over(.done)
        case .heldLease(let kind, let subject, let duration):
            let row = try mutation.addLease(kind, subject, version: version, for: duration, leases)
            return .leased(row: row)
        case .claim(let subject, let duration):
            if try leases.isClaimedElsewhere(subject, version, mutation.reading) { return .over(.present) }
            let row = try mutation.addLease(.computation, subject, version: version, for: duration, leases)
            return .leased(row: row)
        case .endLease(let row):
            try mutation.dropLeases([row])
            return .over(.done)
        case .partial(let change):
            return try change.apply(mutation, leases, sees: sees) { _ = try store($0, false, mutation, memory) }
        }
    }

    /// The entry in memory under a key, as the operations before have left it, and the jobs before in the transaction.
    /// Nothing else changes it until the job is published: see `PendingSet.unlessClaimed`.
    private func lookUpInMemory(_ key: Key, _ mutation: Mutation, _ memory: MemoryEntries) -> PendingPut? {
        if let known = inMemory[key] { return known.now }
        let put = if let earlier = mutation.inMemory[key] { earlier } else { memory.lookup(key, use: nil) }
        inMemory[key] = (put, put)
        return put
    }

    private func setInMemory(_ key: Key, _ put: PendingPut?, _ mutation: Mutation) {
        inMemory[key]?.now = put
        mutation.inMemory.updateValue(put, forKey: key)
    }

    /// Gives back the memory that was reserved for what the job makes of entries there.
    func giveBack(to memory: MemoryEntries) {
        for put in reserved.values { memory.cancel(put) }
        reserved = [:]
    }

    private func changeInMemory(
        _ put: PendingPut, _ change: EntryChange, _ expected: WriteBatch.Expected?, _ mutation: Mutation,
        _ memory: MemoryEntries, _ leases: LeaseBook
    ) throws -> WriteResult {
        guard sees(put.version) else { return .absent }
        if let refusal = change.refusalInMemory(put.key) { return .failed(refusal) }
        guard put.isUnchanged(expected) else { return .changed }
        let new = put.copy(change, configuration, at: mutation.now, uptime: leases.uptime.uptime())
        if new.memory > put.memory {
            do {
                evicted += try memory.reserve(for: new, at: leases.clock.now(), kept: leases.kept)
            } catch let error as LarderError where error.code == .tooLarge || error.code == .noSpace {
                return .failed(error)
            }
            if let earlier = reserved.updateValue(new, forKey: put.key) { memory.cancel(earlier) }
        }
        setInMemory(put.key, new, mutation)
        return .done
    }

    private func store(
        _ put: PendingPut, _ unlessPresent: Bool, _ mutation: Mutation, _ memory: MemoryEntries,
        isContentStored: Bool = false
    ) throws -> WriteResult {
        let old = lookUpInMemory(put.key, mutation, memory)
        if unlessPresent {
            let isInMemory = old.map { sees($0.version) && $0.expires > mutation.now } ?? false
            if try isInMemory || mutation.useFreshEntry(put.indexKey, isDurable: isDurable, where: sees) {
                mutation.blobs.drop(put.body)
                return .present
            }
        }
        var content: BlobChanges.SharedBlob?
        if isContentStored {
            content = try mutation.blobs.share(put.digest, isDurable: isDurable)
            guard let content else { return .absent }
            contentLengths[put.key] = content.length
        }
        let inherited = old.flatMap { put.overwrites($0.version) ? $0.legacy : nil }
        if old != nil { setInMemory(put.key, nil, mutation) }
        try mutation.put(
            put, pinnedByTag: mutation.hasPinnedTag(put.options.tags), inheriting: inherited, content: content)
        return .stored(put.digest)
    }

    /// Nil if the entry that a put is to replace is there.
    private func refusal(
        of put: PendingPut, _ expected: WriteBatch.Expected, _ mutation: Mutation, _ memory: MemoryEntries
    ) throws -> WriteResult? {
        guard let old = lookUpInMemory(put.key, mutation, memory) else {
            return try missing(put.indexKey, expected, mutation)
        }
        guard sees(old.version) else { return .absent }
        return old.isUnchanged(expected) ? nil : .changed
    }

    private func change(
        _ key: Key, _ change: EntryChange, _ expected: WriteBatch.Expected?, _ mutation: Mutation,
        _ session: UInt64
    ) throws -> WriteResult {
        let indexKey = IndexKey.bytes(for: key)
        if let missing = try missing(indexKey, expected, mutation) { return missing }
        var stamp: UInt64?
        try mutation.update(indexKey) { record in
            stamp = record.stamp
            if let metadata = change.metadata { record.metadata = metadata }
            if let lifetime = change.lifetime {
                record.expires = configuration.expiry(lifetime, at: mutation.now).microseconds
            }
            if let tags = change.tags, !tags.elementsEqual(record.tags, by: { $0.utf8.elementsEqual($1.utf8) }) {
                record.tags = tags
                record.isPinnedByTag = try mutation.hasPinnedTag(tags)
                // `pin(tag:)` looks again at what is younger than its beginning.
                record.stamp = mutation.takeStamp()
                stamp = record.stamp
            }
            if let policy = change.storagePolicy, policy != record.policy {
                record.policy = policy
                record.session = policy == .session ? session : 0
            }
            if let isPinned = change.isPinned { record.isPinned = isPinned }
        }
        if change.isAccess, let stamp { try mutation.touch(stamp: stamp, hits: 0, accessed: mutation.now) }
        return .done
    }

    /// Nil if the entry that the operation is for is there.
    private func missing(
        _ key: [UInt8], _ expected: WriteBatch.Expected?, _ mutation: Mutation
    ) throws -> WriteResult? {
        guard let record = try mutation.record(key), sees(record.version) else { return .absent }
        guard let expected else { return nil }
        let isSame = try record.metadata == expected.metadata && mutation.digest(ofBlob: record.blob) == expected.digest
        return isSame ? nil : .changed
    }
}

extension EntryChange {
    /// What a change of an entry in memory cannot do; nil if it can be made.
    func refusalInMemory(_ key: Key) -> LarderError? {
        if tags == nil, storagePolicy == nil { return nil }
        return LarderError(
            .unsupported, "\(key) is in memory only: put it again with other tags or another policy", key: key)
    }
}

extension PendingPut {
    /// True if the entry has the body and the metadata that are expected.
    func isUnchanged(_ expected: WriteBatch.Expected?) -> Bool {
        guard let expected else { return true }
        return options.metadata == expected.metadata && digest == expected.digest
    }

    /// The entry with a change that can be made in memory.
    func copy(_ change: EntryChange, _ configuration: Configuration, at now: Timestamp, uptime: UInt64) -> PendingPut {
        copy(
            expires: change.lifetime.map { configuration.expiry($0, at: now) }, isPinned: change.isPinned,
            metadata: change.metadata, use: change.isAccess ? (uptime: uptime, moment: now) : nil)
    }
}
