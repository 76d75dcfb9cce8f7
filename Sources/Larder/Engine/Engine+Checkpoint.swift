import LMDB

/// Checkpoints: see "Epochs and suspects" in `docs/recovery.md`.
extension Engine {
    /// Rows of files that may still lie in `staging/` at which a store that closes makes a checkpoint itself.
    private static let unpublishedLimit = 4096

    /// Keeps processes too short-lived for a checkpoint in the background from leaving ever more rows behind.
    func checkpointIfCrowded() throws {
        let rows = try read { try $0.statistics(index.unpublished).entries }
        if rows > Self.unpublishedLimit { try checkpoint() }
    }

    /// Has everything on disk before the last store closes: a checkpoint if any file may not be, else the index only.
    func checkpointForClose() throws {
        let rows = try read { try $0.statistics(index.unpublished).entries }
        if rows > 0 || hasUnsyncedFiles.load(ordering: .relaxed) { try checkpoint() } else { try syncIndex() }
    }

    /// `checkpoint()`, if this process wrote body files since the last one.
    func checkpointIfNeeded(isStopped: () -> Bool) throws {
        guard hasUnsyncedFiles.exchange(false, ordering: .acquiringAndReleasing) else { return }
        do {
            if try checkpoint(isStopped: isStopped) { return }
            hasUnsyncedFiles.store(true, ordering: .releasing)
        } catch {
            hasUnsyncedFiles.store(true, ordering: .releasing)
            throw error
        }
    }

    /// Syncs all body files committed so far and notes it: after an unclean shutdown of the machine only files written
    /// later are suspect.
    ///
    /// The writer lock is held for two small kinds of transactions, at the beginning and at the end, and for no look at a file.
    /// - Parameter isStopped: asked between files; true ends the checkpoint without an effect.
    /// - Returns: false if it was stopped.
    @discardableResult
    func checkpoint(isStopped: () -> Bool = { false }) throws -> Bool {
        let epoch = try mutate(.housekeeping) { mutation in
            defer { mutation.state.epoch &+= 1 }
            return mutation.state.epoch
        }
        reach("checkpoint.epoch-begun")
        // Each file that no checkpoint has synced has a row from its commit on, whichever process wrote it.
        let files = try unpublishedFiles(upTo: epoch)
        guard let published = try sync(files.map(\.head), isStopped) else { return false }
        reach("checkpoint.synced")
        try mutate(.housekeeping) { $0.state.syncedEpoch = max($0.state.syncedEpoch, epoch) }
        // Their names are on disk now, so no reader has to look for these files in `staging/` again.
        var rows = zip(files, published).filter(\.1).map(\.0)[...]
        while !rows.isEmpty {
            let slice = rows.prefix(try removalLimit())
            let drifted = try drifted(slice.map(\.head))
            try mutate(.housekeeping) { mutation in
                try settle(drifted, mutation)
                for (row, _) in slice {
                    try mutation.transaction.delete(index.unpublished, row)
                    mutation.noteChange(trees: 1)
                }
            }
            rows = rows.dropFirst(slice.count)
        }
        reach("checkpoint.noted")
        try syncIndex()
        return true
    }

    /// Rows of `unpublished` with the blobs they lead to, of files committed in `epoch` and earlier. On short snapshots: files
    /// committed meanwhile are of a later epoch.
    private func unpublishedFiles(upTo epoch: UInt64) throws -> [(row: [UInt8], head: BlobRecord)] {
        var found: [(row: [UInt8], head: BlobRecord)] = []
        var next: [UInt8]? = []
        while let start = next {
            next = try read { transaction in
                try transaction.withCursor(index.unpublished) { cursor in
                    var pair = try cursor.seek(start)
                    for _ in 0..<1024 {
                        guard let (key, value) = pair else { return nil }
                        if let head = try unpublishedFile(key, value, transaction), head.epoch <= epoch {
                            found.append((Array(key), head))
                        }
                        pair = try cursor.next()
                    }
                    return pair.map { Array($0.key) }
                }
            }
        }
        return found
    }

    /// Syncs files and the names they are published under: one by one, or, where they are many, with everything on their file
    /// system. Nil if it was stopped.
    /// - Returns: for each whether it lies in `blobs/`, or nowhere, and not in `staging/`.
    private func sync(_ heads: [BlobRecord], _ isStopped: () -> Bool) throws -> [Bool]? {
        if heads.count > configuration.syncedSingly {
            // Where they lie is looked up before: a file published later may miss the sync.
            let published = try heads.map { try FileSystem.status($0.token.name, in: files.staging) == nil }
            try Sync.fileSystem(files.root)
            return published
        }
        // All at once to the disk first: then the syncs share what the file system has to write for them.
        for head in heads {
            if isStopped() { return nil }
            if let file = try files.openBlob(head) { Sync.begin(file) }
        }
        var published: [Bool] = []
        var shards: Set<String> = []
        for head in heads {
            if isStopped() { return nil }
            let name = Layout.blob(head.digest)
            if let file = try FileSystem.openIfPresent(name, in: files.blobs, flags: O_RDONLY) {
                try Sync.data(file, path: files.blobs.path(of: name))
                shards.insert(String(name.prefix(2)))
                published.append(true)
            } else if let file = try FileSystem.openIfPresent(head.token.name, in: files.staging, flags: O_RDONLY) {
                // To be published yet: its row stays for the next checkpoint.
                try Sync.data(file, path: files.staging.path(of: head.token.name))
                published.append(false)
            } else if let file = try files.openBlob(head) {
                try Sync.data(file, path: nil)
                published.append(false)
            } else {
                // Displaced meanwhile, and its row with it; or lost.
                published.append(true)
            }
        }
        for shard in shards {
            if isStopped() { return nil }
            // A shard that another program removes has lost its files, which their readers find.
            if try FileSystem.status(shard, in: files.blobs) == nil { continue }
            try Sync.names(files.blobs.directory(shard))
        }
        return published
    }
}
