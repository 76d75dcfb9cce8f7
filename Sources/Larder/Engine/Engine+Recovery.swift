import LMDB

extension Engine {
    /// Finishes or undoes what stores that died were doing with files. Run at open, by gc, and when room is short.
    /// Cost: the files in `staging/` and `trash/`, not those of the store.
    func sweepDead(_ writing: Writing) throws {
        var dead = Set(writing.ledger.others)
        for name in try files.staging.names() {
            if let instance = Layout.instance(ofStaged: name) { dead.insert(instance) }
        }
        for name in try files.trash.names() {
            if let parts = Layout.parseTrash(name) { dead.insert(parts.token.instance) }
        }
        for instance in try sessionsInIndex() { dead.insert(instance) }
        dead.remove(writing.lock.instance)
        for instance in dead {
            guard let seized = try InstanceLock.seize(instance, staging: files.staging) else { continue }
            try withExtendedLifetime(seized) { try sweep(instance, writing) }
        }
    }

    private func sweep(_ instance: UInt64, _ writing: Writing) throws {
        let published = try publishLeftovers(of: instance)
        var removed = 0
        for name in try files.staging.names() where StagingToken(name: name)?.instance == instance {
            if try FileSystem.unlink(name, in: files.staging) { removed += 1 }
        }
        let restored = try emptyTrash(of: instance, removed: &removed)
        try endSession(instance)
        writing.ledger.clear(instance)
        try FileSystem.unlink(Layout.instanceLock(instance), in: files.staging)
        if published + restored + removed > 0 {
            logger.info(
                "swept files of a store that died",
                metadata: ["published": "\(published)", "restored": "\(restored)", "removed": "\(removed)"])
            configuration.observer?(.swept(published: published, restored: restored, removed: removed))
        }
    }

    /// Committed files that were not renamed yet.
    private func publishLeftovers(of instance: UInt64) throws -> Int {
        let prefix = bigEndian(instance)
        return try mutate(.housekeeping) { mutation in
            var rows: [(StagingToken, UInt64)] = []
            try mutation.reading.withCursor(index.unpublished) { cursor in
                var pair = try cursor.seek(prefix)
                while let (key, value) = pair, key.hasPrefix(prefix) {
                    if let token = StagingToken(indexKey: key), value.count == 8 {
                        rows.append((token, UInt64(bigEndian: value.loadUnaligned(as: UInt64.self))))
                    }
                    pair = try cursor.next()
                }
            }
            var count = 0
            for (token, id) in rows {
                if let head = try mutation.reading.get(index.blobs, id).flatMap(BlobRecord.init), head.token == token {
                    if try files.publish(head) { count += 1 }
                }
                try mutation.transaction.delete(index.unpublished, token.indexKey)
                mutation.noteChange(trees: 1)
            }
            return count
        }
    }

    /// Files renamed to `trash/`: the removal was committed, then they go, or it was not, then they go back.
    private func emptyTrash(of instance: UInt64, removed: inout Int) throws -> Int {
        var restored = 0
        for name in try files.trash.names() {
            guard let parts = Layout.parseTrash(name), parts.token.instance == instance else { continue }
            let isRestored = try mutate(.housekeeping) { mutation -> Bool in
                guard
                    let record = try parts.digest.withBytes({ try mutation.reading.get(index.digests, $0) })
                        .flatMap(DigestRecord.init),
                    let head = try mutation.reading.get(index.blobs, record.blob).flatMap(BlobRecord.init),
                    head.location == .file, !head.isDamaged, try files.blobStatus(head) == nil
                else { return false }
                try files.restore(head, from: name)
                return true
            }
            if isRestored {
                restored += 1
            } else if try FileSystem.unlink(name, in: files.trash) {
                removed += 1
            }
        }
        return restored
    }

    // MARK: Sessions

    /// Removes the entries that this store put with policy `session`.
    func endSession() throws {
        guard let writing else { return }
        let tokens = published.withLock { tokens in
            let taken = tokens
            tokens.removeAll()
            return taken
        }
        if !tokens.isEmpty { try mutate(.housekeeping) { try clearPublished($0, tokens) } }
        try endSession(writing.lock.instance)
    }

    private func endSession(_ instance: UInt64) throws {
        let prefix = bigEndian(instance)
        while true {
            let limit = try removalLimit()
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
            try mutate(.housekeeping) { mutation in
                for (row, key) in keys where try mutation.remove(key) == nil {
                    try mutation.transaction.delete(index.sessions, row)
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

    // MARK: Checkpoints

    /// `checkpoint()`, if this process wrote body files since the last one.
    func checkpointIfNeeded() throws {
        if hasUnsyncedFiles.exchange(false, ordering: .acquiringAndReleasing) { try checkpoint() }
    }

    /// Syncs all body files written so far and notes it: after an unclean shutdown of the machine only files written
    /// later are suspect.
    func checkpoint() throws {
        let epoch = try mutate(.housekeeping) { mutation -> UInt64 in
            defer { mutation.state.epoch += 1 }
            return mutation.state.epoch
        }
        try Sync.fileSystem(files.root)
        try mutate(.housekeeping) { mutation in
            mutation.state.syncedEpoch = max(mutation.state.syncedEpoch, epoch)
        }
        try index.environment.sync()
    }
}
