import LMDB

/// Removal of many entries at once: everything, what a selection selects, what other application versions left. Without
/// state of its own.
final class Removals: EnginePart {
    let context: EngineContext
    private let transactions: Transactions
    private let versions: Versions

    init(
        context: EngineContext, transactions: Transactions, versions: Versions
    ) {
        self.context = context
        self.transactions = transactions
        self.versions = versions
    }

    /// Empties the index in one transaction; returns how many entries there were.
    func clear() throws -> Int {
        try transactions.housekeep { mutation in
            let count = try mutation.removeAll()
            try versions.forget(in: mutation)
            return count
        }
    }

    /// Removes those entries of a walk that are still selected, in one transaction; returns how many.
    func remove(_ keys: ArraySlice<(key: [UInt8], id: UInt64)>, _ filter: EntryFilter) throws -> Int {
        let isTold = audience.hasReaders
        let removed = try transactions.housekeep { try $0.remove(keys, filter, isNaming: isTold) }
        counters.add(.removed, UInt64(removed.count))
        for key in removed.keys { tell(.removed(key: key)) }
        return removed.count
    }

    // MARK: Other application versions

    /// Removes, in the background, what other application versions left, and do not use any more: entries neither put
    /// nor hit since now. Another version may be running beside this one.
    func reclaimOtherVersions(_ version: UInt16) {
        guard let stamp = try? state().nextStamp, let seen = try? read({ try index.versions($0) }),
            seen.count > 1
        else { return }
        // Not a task: libdispatch, which runs those on Linux, does not work in children of fork(2).
        IOPool.long.submit { [weak self] in
            _ = try? self?.removeEntries(ofOtherVersionsThan: version, before: stamp)
        }
    }

    /// Removes the entries that another version put and whose last use is older than `stamp` (default: all); returns
    /// how many.
    @discardableResult
    func removeEntries(ofOtherVersionsThan version: UInt16, before stamp: UInt64 = .max) throws -> Int {
        reach("reclaim.before")
        var walk = EntryWalk(.otherVersions, version: version, now: clock.now())
        var removed = 0
        while !walk.isOver, !context.isClosed {
            let limit = try context.removalLimit()
            let batch = try read { try walk.next(index, $0, limit: limit) }
            guard !batch.keys.isEmpty else { continue }
            removed += try transactions.housekeep { mutation in
                var count = 0
                for (key, _) in batch.keys
                where try mutation.record(key).map({ $0.version != version && $0.stamp < stamp }) ?? false {
                    if try mutation.remove(key) != nil { count += 1 }
                }
                return count
            }
        }
        return removed
    }
}
