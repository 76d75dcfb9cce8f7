/// Operations that the committer applies in one transaction, in order, after the puts and removals of their batch.
///
/// Unlike those they look at what is there, so readers see nothing of them before the commit, and their caller waits
/// for it.
final class PendingJob: @unchecked Sendable {
    // SAFETY: immutable but for `results` and `failure`, which the committer alone changes until it declares the batch
    // over, and which the caller reads after that.
    enum Operation: Sendable {
        /// Cannot be done, as was known before.
        case failed(LarderError)
        case put(PendingPut, unlessPresent: Bool)
        case change(Key, EntryChange, WriteBatch.Expected?)
        case remove(Key, WriteBatch.Expected?)
        /// With the index keys of the entries that had the content when it was looked for.
        case removeContent(Digest, [[UInt8]])
        /// A lease that ends with its time.
        case timedLease(Index.LeaseKind, [UInt8], Duration)
        /// A lease that somebody holds, with a row of its own.
        case heldLease(Index.LeaseKind, [UInt8], Duration)
    }

    /// What became of an operation.
    enum Result {
        case over(WriteResult)
        case leased(row: [UInt8])
        /// The entry is in memory only: the caller changes it there.
        case inMemory
    }

    let operations: [Operation]
    /// Of the store whose call this is.
    let configuration: Configuration
    let version: UInt16?
    let isDurable: Bool
    /// The keys that it reads or changes; nil: they cannot be told beforehand.
    let keys: Set<Key>?
    /// Bytes the pending set holds in memory for it.
    let memory: Int
    private(set) var results: [Result] = []
    /// Why it could not be committed.
    private(set) var failure: LarderError?

    init(_ operations: [Operation], configuration: Configuration, version: UInt16?, isDurable: Bool) {
        self.operations = operations
        self.configuration = configuration
        self.version = version
        self.isDurable = isDurable
        var keys: Set<Key>? = []
        var memory = 0
        for operation in operations {
            memory += 128
            switch operation {
            case .put(let put, _):
                keys?.insert(put.key)
                memory += put.memory
            case .change(let key, let change, _):
                keys?.insert(key)
                memory += key.bytes.count + (change.metadata?.count ?? 0)
            case .remove(let key, _):
                keys?.insert(key)
                memory += key.bytes.count
            case .removeContent: keys = nil
            case .failed, .timedLease, .heldLease: break
            }
        }
        self.keys = keys
        self.memory = memory
    }

    /// Which limit its transaction has to keep: removing and unpinning are the way out of a full store.
    var purpose: Engine.Purpose {
        let onlyFrees = operations.allSatisfy { operation in
            switch operation {
            case .failed, .remove, .removeContent: true
            case .change(_, let change, _): change == EntryChange(isPinned: false)
            case .put, .timedLease, .heldLease: false
            }
        }
        return onlyFrees ? .housekeeping : .put
    }

    /// Files that the job has staged.
    var stagedFiles: [StagedFile] {
        operations.compactMap { operation in
            if case .put(let put, _) = operation, case .staged(let file) = put.body { return file }
            return nil
        }
    }

    /// It could not be committed.
    func fail(_ error: LarderError) { failure = failure ?? error }

    /// True for entries of the application version whose store this is.
    func sees(_ version: UInt16) -> Bool { self.version.map { $0 == version } ?? true }

    /// Applies the operations. May run several times, each time on a transaction without the changes of the last.
    func apply(to mutation: Mutation, _ engine: Engine) throws {
        results.removeAll(keepingCapacity: true)
        for operation in operations { results.append(try apply(operation, mutation, engine)) }
    }

    private func apply(_ operation: Operation, _ mutation: Mutation, _ engine: Engine) throws -> Result {
        switch operation {
        case .failed(let error): return .over(.failed(error))
        case .put(let put, let unlessPresent):
            return .over(try store(put, unlessPresent, mutation, engine))
        case .change(let key, let change, let expected):
            if engine.memory.lookup(key, use: nil) != nil { return .inMemory }
            return .over(try self.change(key, change, expected, mutation, engine))
        case .remove(let key, let expected):
            if engine.memory.lookup(key, use: nil) != nil { return .inMemory }
            let indexKey = IndexKey.bytes(for: key)
            if let missing = try missing(indexKey, expected, mutation) { return .over(missing) }
            return .over(try mutation.remove(indexKey) == nil ? .absent : .done)
        case .removeContent(let digest, let known):
            return .over(try mutation.remove(content: digest, known) == 0 ? .absent : .done)
        case .timedLease(let kind, let subject, let duration):
            try mutation.lease(kind, subject, version: kind == .digest ? nil : version, for: duration)
            return .over(.done)
        case .heldLease(let kind, let subject, let duration):
            let row = try mutation.addLease(kind, subject, version: version, for: duration, engine)
            return .leased(row: row)
        }
    }

    private func store(
        _ put: PendingPut, _ unlessPresent: Bool, _ mutation: Mutation, _ engine: Engine
    ) throws -> WriteResult {
        let inMemory = engine.memory.lookup(put.key, use: nil)
        if unlessPresent {
            let isInMemory = inMemory.map { sees($0.version) && $0.expires > mutation.now } ?? false
            if try isInMemory || mutation.hasFreshEntry(put.indexKey, where: sees) {
                mutation.drop(put.body)
                return .present
            }
        }
        if let inMemory { put.inherit(from: inMemory) }
        try mutation.put(put, pinnedByTag: mutation.hasPinnedTag(put.options.tags))
        return .stored(put.digest)
    }

    private func change(
        _ key: Key, _ change: EntryChange, _ expected: WriteBatch.Expected?, _ mutation: Mutation, _ engine: Engine
    ) throws -> WriteResult {
        let indexKey = IndexKey.bytes(for: key)
        if let missing = try missing(indexKey, expected, mutation) { return missing }
        let session = engine.writing?.lock.instance ?? 0
        var stamp: UInt64?
        try mutation.update(indexKey) { record in
            stamp = record.stamp
            if let metadata = change.metadata { record.metadata = metadata }
            if let lifetime = change.lifetime {
                record.expires = configuration.expiry(lifetime, at: mutation.now).microseconds
            }
            if let tags = change.tags {
                record.tags = tags
                record.isPinnedByTag = try mutation.hasPinnedTag(tags)
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
