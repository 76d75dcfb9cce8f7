import LMDB

extension Engine {
    /// The number that stands for an application version, taken now if it is new; nil for no version.
    func version(_ name: String?) throws -> UInt16? {
        guard let name else { return nil }
        // A `clear()` under way forgets what no open store asks for, and may have looked before this one was there.
        if writing != nil, audience.isShared { try waitForWriter() }
        if let known = try read({ try index.versionNumber(name, $0) }) { return known }
        // A read-only store has no entries of a version it does not know: returns a number that no record has.
        guard writing != nil else { return .max }
        return try mutate(.put) { mutation in
            if let known = try index.versionNumber(name, mutation.reading) { return known }
            guard let number = Self.freeVersion(Set(try versions(mutation.reading).values)) else {
                throw LarderError(
                    .invalidArgument,
                    "\(path) has seen \(Self.lastVersion) application versions, the most there can be: "
                        + "`Store.clear()` forgets them, when no other process has the store open",
                    path: path)
            }
            try mutation.transaction.put(
                index.meta, Index.versionKey(name), withUnsafeBytes(of: number.littleEndian) { Array($0) })
            mutation.noteChange(trees: 1)
            return number
        }
    }

    /// Waits until the write transaction that is under way, if any, has ended.
    private func waitForWriter() throws {
        do {
            try index.environment.beginWrite().abort()
        } catch {
            throw translate(error)
        }
    }

    private static let lastVersion: UInt16 = .max - 1

    /// The number for a version that is new: the next one, for numbers must not mean one version to a store that is
    /// open and another to the next; and when those are used up, one that was forgotten long ago.
    static func freeVersion(_ used: Set<UInt16>) -> UInt16? {
        let highest = used.filter { $0 <= lastVersion }.max() ?? 0
        if highest < lastVersion { return highest + 1 }
        return (1...lastVersion).first { !used.contains($0) }
    }

    /// Forgets the versions that no entry is left of, in a store that was cleared: all but those of open stores, and
    /// the latest, from which numbering continues.
    func forgetVersions(_ mutation: Mutation) throws {
        guard let writing, writing.ledger.others.isEmpty else { return }
        let seen = try versions(mutation.reading)
        let inUse = audience.versions
        let latest = seen.values.max()
        for (name, number) in seen where number != latest && !inUse.contains(name) {
            try mutation.transaction.delete(index.meta, Index.versionKey(name))
            mutation.noteChange(trees: 1)
        }
    }

    /// Every version the store has seen since it was cleared, with its number.
    func versions(_ transaction: ReadTransaction) throws -> [String: UInt16] { try index.versions(transaction) }

    /// Removes, in the background, what other application versions left, and do not use any more: entries neither put
    /// nor hit since now. Another version may be running beside this one.
    func reclaimOtherVersions(_ version: UInt16) {
        guard writing != nil, let stamp = try? state().nextStamp, let seen = try? read({ try versions($0) }),
            seen.count > 1
        else { return }
        Task.detached(priority: .background) { [weak self] in
            _ = try? await IOPool.long.run { [weak self] in
                try self?.removeEntries(ofOtherVersionsThan: version, before: stamp)
            }
        }
    }

    /// Removes the entries that another version put and whose last use is older than `stamp` (default: all); returns
    /// how many.
    @discardableResult
    func removeEntries(ofOtherVersionsThan version: UInt16, before stamp: UInt64 = .max) throws -> Int {
        reach("reclaim.before")
        var walk = EntryWalk(.otherVersions, version: version, now: clock.now())
        var removed = 0
        while !walk.isOver, !isClosed.load(ordering: .acquiring) {
            let limit = try removalLimit()
            let batch = try read { try walk.next(index, $0, limit: limit) }
            guard !batch.keys.isEmpty else { continue }
            removed += try mutate(.housekeeping) { mutation in
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
