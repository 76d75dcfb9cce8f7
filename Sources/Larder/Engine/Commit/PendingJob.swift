/// Operations that the committer applies in one transaction, in order, after the puts and removals of their batch.
///
/// Unlike those they look at what is there, so readers do not see them before the commit, and their caller waits
/// for it.
final class PendingJob: @unchecked Sendable {
    // SAFETY: only the caller changes it until `PendingSet.add`, only the thread of the committer until
    // `PendingSet.finish`, and only the caller after `PendingSet.wait`; the pending set's lock orders them.
    enum Operation: Sendable {
        /// Its result is known: it cannot be done, or is done already.
        case over(WriteResult)
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

    private(set) var operations: [Operation]
    /// Of the store whose call this is.
    let configuration: Configuration
    let version: UInt16?
    let isDurable: Bool
    /// The keys that it reads or changes; nil: they are not known beforehand.
    let keys: Set<Key>?
    /// Bytes the pending set holds in memory for it.
    let memory: Int
    private(set) var results: [Result] = []
    /// Entries in memory that it was to replace, taken out before.
    var displaced: [PendingPut] = []
    /// True if it has removed content from memory.
    var hasRemovedContent = false
    /// The keys under which it has stored something.
    private(set) var storedKeys: Set<Key> = []
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
            case .over, .timedLease, .heldLease, .claim, .endLease: break
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
            case .over: break
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

    // MARK: Before the commit

    /// Ends an operation before the commit.
    func end(_ place: Int, _ result: WriteResult) { operations[place] = .over(result) }

    func replace(_ place: Int, by operation: Operation) { operations[place] = operation }

    /// Ends the job without a commit if all its operations are over; false if they are not.
    func endIfOver() -> Bool {
        var results: [Result] = []
        for operation in operations {
            guard case .over(let result) = operation else { return false }
            results.append(.over(result))
        }
        self.results = results
        return true
    }

    // MARK: The transaction

    /// Applies the operations. May run several times, each time on a transaction without the changes of the last.
    func apply(to mutation: Mutation, _ leases: LeaseBook) throws {
        results.removeAll(keepingCapacity: true)
        storedKeys = []
        removedCount = 0
        contentLengths = [:]
        if isDurable { mutation.noteDurable() }
        for operation in operations { results.append(try apply(operation, mutation, leases)) }
    }

    private func apply(_ operation: Operation, _ mutation: Mutation, _ leases: LeaseBook) throws -> Result {
        switch operation {
        case .over(let result): return .over(result)
        case .put(let put, let unlessPresent):
            return .over(try store(put, unlessPresent, mutation))
        case .putContent(let put, let unlessPresent, let expected):
            if let expected, let refusal = try missing(put.indexKey, expected, mutation) { return .over(refusal) }
            return .over(try store(put, unlessPresent, mutation, isContentStored: true))
        case .replace(let put, let expected):
            if let refusal = try missing(put.indexKey, expected, mutation) {
                mutation.blobs.drop(put.body)
                return .over(refusal)
            }
            return .over(try store(put, false, mutation))
        case .change(let key, let change, let expected):
            return .over(try self.change(key, change, expected, mutation, leases.instance))
        case .remove(let key, let expected):
            let indexKey = IndexKey.bytes(for: key)
            if let missing = try missing(indexKey, expected, mutation) { return .over(missing) }
            if try mutation.remove(indexKey) == nil { return .over(.absent) }
            removedCount += 1
            return .over(.done)
        case .removeContent(let digest, let known):
            let count = try mutation.remove(content: digest, known)
            removedCount += count
            return .over(count == 0 && !hasRemovedContent ? .absent : .done)
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
            return try change.apply(mutation, leases, sees: sees) { _ = try store($0, false, mutation) }
        }
    }

    private func store(
        _ put: PendingPut, _ unlessPresent: Bool, _ mutation: Mutation, isContentStored: Bool = false
    ) throws -> WriteResult {
        if unlessPresent, try mutation.useFreshEntry(put.indexKey, isDurable: isDurable, where: sees) {
            mutation.blobs.drop(put.body)
            return .present
        }
        var content: BlobChanges.SharedBlob?
        if isContentStored {
            content = try mutation.blobs.share(put.digest, isDurable: isDurable)
            guard let content else { return .absent }
            contentLengths[put.key] = content.length
        }
        try mutation.put(put, pinnedByTag: mutation.hasPinnedTag(put.options.tags), content: content)
        storedKeys.insert(put.key)
        return .stored(put.digest)
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

extension PendingJob.Operation {
    /// The key of the entry that it is about.
    var key: Key? {
        switch self {
        case .put(let put, _), .putContent(let put, _, _), .replace(let put, _): put.key
        case .change(let key, _, _), .remove(let key, _): key
        case .partial(let change): change.work.key
        case .over, .removeContent, .timedLease, .heldLease, .claim, .endLease: nil
        }
    }

    /// What it puts.
    var put: PendingPut? {
        switch self {
        case .put(let put, _), .putContent(let put, _, _), .replace(let put, _): put
        default: nil
        }
    }

    /// The same whatever is under its key.
    var withoutExpectation: Self {
        switch self {
        case .replace(let put, _): .put(put, unlessPresent: false)
        case .putContent(let put, let unlessPresent, _): .putContent(put, unlessPresent: unlessPresent, nil)
        default: self
        }
    }
}
