import LMDB
import Locks

/// Finishes what other instances left when they died, and ends sessions. Has no state of its own: what has to be done
/// is found in the directory and the index. Each dead instance is locked while it is swept.
final class Recovery: EnginePart {
    let context: EngineContext
    /// This instance.
    private let instance: UInt64
    private let ledger: Ledger
    private let transactions: Transactions
    /// What sweeps have removed since it was last asked for.
    private let swept = EngineMutex(Swept())

    /// Files of dead stores that are gone.
    struct Swept: Sendable {
        var files = 0
        /// `st_blocks` x 512 of them.
        var bytes: Int64 = 0
    }

    init(context: EngineContext, instance: UInt64, ledger: Ledger, transactions: Transactions) {
        self.context = context
        self.instance = instance
        self.ledger = ledger
        self.transactions = transactions
    }

    /// What was removed since the open, or since the last call: `gc` reports also what the open did in its place.
    func takeSwept() -> Swept {
        swept.withLock { swept in
            defer { swept = Swept() }
            return swept
        }
    }

    /// Removes a file of a dead store; false if it is gone.
    private func remove(_ name: String, in directory: Directory) throws(LarderError) -> Bool {
        let bytes = try FileSystem.status(name, in: directory)?.allocated ?? 0
        guard try FileSystem.unlinkFile(name, in: directory) else { return false }
        swept.withLock { swept in
            swept.files += 1
            swept.bytes += bytes
        }
        return true
    }

    /// Finishes or undoes what stores that died were doing with files. Run at open, by gc, and when room is short.
    /// Cost: the files in `staging/` and `trash/`, not those of the store.
    /// - Parameter missingIsDead: true if no other process has the store open; see `InstanceLock.seize`.
    func sweepDead(missingIsDead: Bool = false) throws {
        var dead = Set(ledger.others)
        for name in try files.staging.ownFiles(.staging) {
            if let instance = Layout.instance(ofStaged: name) { dead.insert(instance) }
        }
        for name in try files.trash.names() {
            if let parts = Layout.parseTrash(name) { dead.insert(parts.token.instance) }
        }
        for instance in try sessionsInIndex() { dead.insert(instance) }
        dead.remove(instance)
        for dead in dead {
            guard
                let seized = try InstanceLock.seize(
                    dead, staging: files.staging, missingIsDead: missingIsDead)
            else { continue }
            try withExtendedLifetime(seized) { try sweep(dead) }
        }
    }

    private func sweep(_ instance: UInt64) throws {
        reach("sweep.before")
        let published = try publishLeftovers(of: instance)
        reach("sweep.published")
        var removed = 0
        for name in try files.staging.names() where StagingToken(name: name)?.instance == instance {
            if try remove(name, in: files.staging) { removed += 1 }
        }
        reach("sweep.staging-emptied")
        let restored = try emptyTrash(of: instance, removed: &removed)
        reach("sweep.trash-emptied")
        try endSession(instance)
        reach("sweep.session-ended")
        ledger.clear(instance)
        reach("sweep.slot-freed")
        try FileSystem.unlinkFile(Layout.instanceLock(instance), in: files.staging)
        reach("sweep.lock-removed")
        if published + restored + removed > 0 {
            logger(.recovery).info(
                "swept files of a store that died",
                metadata: ["published": "\(published)", "restored": "\(restored)", "removed": "\(removed)"])
            configuration.observer?(.swept(published: published, restored: restored, removed: removed))
        }
    }

    /// Renames committed files that were not renamed yet. Their rows stay until a checkpoint has synced the names.
    private func publishLeftovers(of instance: UInt64) throws -> Int {
        let prefix = bigEndian(instance)
        return try transactions.housekeep { mutation in
            var count = 0
            // Charging them changes rows that a cursor may be on.
            var left: [NumberedBlob] = []
            try index.walkUnpublished(from: prefix, mutation.reading) { row, blob in
                if let blob { left.append(blob) }
                return row.hasPrefix(prefix)
            }
            for blob in left where blob.head.token.instance == instance {
                guard try files.publish(blob.head) else { continue }
                count += 1
                if blob.head.encoding == .partial { try charge(blob, mutation) }
            }
            return count
        }
    }

    /// A writer that died had bytes on disk of which the index does not know: it is charged with them from now on.
    private func charge(_ blob: NumberedBlob, _ mutation: Mutation) throws {
        guard let status = try files.blobStatus(blob.head) else { return }
        try mutation.blobs.charge(blob, Allocation.settled(status, of: blob.head, in: files))
    }

    /// Files renamed to `trash/`: the removal was committed, then they go, or it was not, then they go back.
    private func emptyTrash(of instance: UInt64, removed: inout Int) throws -> Int {
        var restored = 0
        for name in try files.trash.names() {
            guard let parts = Layout.parseTrash(name), parts.token.instance == instance,
                let digest = files.digest(ofFile: parts.name.hexadecimal)
            else { continue }
            let isRestored = try transactions.housekeep { mutation -> Bool in
                guard let blob = try index.blob(digest, mutation.reading), case let head = blob.head,
                    head.digest == digest, head.location == .file, !head.isDamaged,
                    try files.blobStatus(head) == nil, try files.discardedName(head) == name
                else { return false }
                try files.restore(head, from: name)
                if head.encoding == .partial { try charge(blob, mutation) }
                reach("sweep.restored")
                return true
            }
            if isRestored {
                restored += 1
            } else if try remove(name, in: files.trash) {
                removed += 1
            }
        }
        return restored
    }

    // MARK: Sessions

    /// Removes the entries that this store put with policy `session`.
    func endSession() throws {
        try endSession(instance)
    }

    private func endSession(_ instance: UInt64) throws {
        let prefix = bigEndian(instance)
        while true {
            let limit = try context.removalLimit()
            let keys = try read { transaction in
                try transaction.withCursor(index.sessions) { cursor in
                    var keys: [(row: [UInt8], key: [UInt8])] = []
                    var pair = try cursor.seek(prefix)
                    while let (key, value) = pair, key.hasPrefix(prefix), keys.count < limit {
                        keys.append((Array(key), Array(value)))
                        pair = try cursor.next()
                    }
                    return keys
                }
            }
            if keys.isEmpty { return }
            try transactions.housekeep { mutation in
                for (row, key) in keys {
                    // A row without its entry is removed by itself.
                    if try mutation.record(key)?.session == instance {
                        try mutation.remove(key)
                    } else {
                        try mutation.transaction.delete(index.sessions, row)
                    }
                }
            }
        }
    }

    private func sessionsInIndex() throws -> [UInt64] {
        try read { transaction in
            try transaction.withCursor(index.sessions) { cursor in
                var found: [UInt64] = []
                var pair = try cursor.first()
                while let (key, _) = pair, key.count == 16 {
                    let session = UInt64(bigEndian: key.loadUnaligned(as: UInt64.self))
                    found.append(session)
                    guard session < .max else { break }
                    pair = try cursor.seek(bigEndian(session + 1))
                }
                return found
            }
        }
    }
}
