import LMDB
import Locks

/// The leases and claims of this instance: those that are over and still have their rows, how far the search for
/// others' has come, and whose a claim is. Safe from any thread: its state is under a lock.
final class LeaseBook: EnginePart {
    let context: EngineContext
    /// This instance, which holds the leases of its callers.
    let instance: UInt64

    private struct State {
        var released: [[UInt8]] = []
        var position: [UInt8] = []
    }

    private let book = EngineMutex(State())
    private let count = Atomic<Int>(0)

    init(context: EngineContext, instance: UInt64) {
        self.context = context
        self.instance = instance
    }

    /// True if there are rows to delete.
    var isDirty: Bool { count.load(ordering: .acquiring) > 0 }

    /// A lease is over: the next transaction deletes its row.
    func release(_ row: [UInt8]) {
        book.withLock { state in
            state.released.append(row)
            count.store(state.released.count, ordering: .releasing)
        }
    }

    /// The rows to delete.
    var released: [[UInt8]] { isDirty ? book.withLock { $0.released } : [] }

    /// These rows were deleted, and that is committed.
    func forget(_ rows: [[UInt8]]) {
        if rows.isEmpty { return }
        book.withLock { state in
            let gone = Set(rows)
            state.released.removeAll { gone.contains($0) }
            count.store(state.released.count, ordering: .releasing)
        }
    }

    /// Where the search for leases whose time is over continues.
    var position: [UInt8] {
        get { book.withLock { $0.position } }
        set { book.withLock { $0.position = newValue } }
    }

    /// The keys of those entries in memory that displacement passes by.
    func kept(_ puts: [PendingPut]) throws -> Set<Key> {
        let released = Set(released)
        return try read { transaction in
            let hasPins = try transaction.statistics(index.pinnedTags).entries > 0
            let hasLeases = try transaction.statistics(index.leases).entries > 0
            let now = clock.now()
            var kept = Set<Key>()
            for put in puts {
                let tags = put.options.tags
                if try put.isPinned || hasPins && index.hasPinnedTag(tags, transaction)
                    || hasLeases
                        && index.isLeased(
                            put.key.bytes, tags, digest: { put.digest }, version: put.version, at: now,
                            except: released, transaction)
                {
                    kept.insert(put.key)
                }
            }
            return kept
        }
    }

    // MARK: Claims

    /// True if a living instance of another process computes the value of a key.
    func isClaimedElsewhere(_ key: Key, _ version: UInt16?) throws -> Bool {
        try read { try isClaimedElsewhere(key.bytes, version, $0) }
    }

    /// As above, as a transaction has it.
    func isClaimedElsewhere(_ subject: [UInt8], _ version: UInt16?, _ transaction: ReadTransaction) throws -> Bool {
        try index.isClaimed(
            subject, version: version, at: clock.now(), except: instance, files, transaction)
    }
}
