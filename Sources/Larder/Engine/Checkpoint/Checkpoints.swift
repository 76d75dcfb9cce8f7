import LMDB

/// Checkpoints: see "Epochs and suspects" in `docs/recovery.md`. Their state is in the index; any thread may make one.
final class Checkpoints: EnginePart {
    let context: EngineContext
    private let transactions: Transactions
    private let damage: Damage

    init(context: EngineContext, transactions: Transactions, damage: Damage) {
        self.context = context
        self.transactions = transactions
        self.damage = damage
    }

    /// Rows of files that may still lie in `staging/` at which a store that closes makes a checkpoint itself.
    private static let unpublishedLimit = 4096

    /// Keeps processes too short-lived for a checkpoint in the background from leaving ever more rows behind.
    func makeIfCrowded() throws {
        let rows = try read { try $0.statistics(index.unpublished).entries }
        if rows > Self.unpublishedLimit { try make() }
    }

    /// Has everything on disk before the last store closes: a checkpoint if any file may not be, else the index only.
    func makeForClose() throws {
        let rows = try read { try $0.statistics(index.unpublished).entries }
        if rows > 0 || transactions.hasUnsyncedFiles { try make() } else { try transactions.syncIndex() }
    }

    /// `make()`, if this process wrote body files since the last one.
    func makeIfNeeded(isStopped: () -> Bool) throws {
        guard transactions.takeUnsyncedFiles() else { return }
        do {
            if try make(isStopped: isStopped) { return }
            transactions.noteUnsyncedFiles()
        } catch {
            transactions.noteUnsyncedFiles()
            throw error
        }
    }

    /// Syncs all body files committed so far and notes it: after an unclean shutdown of the machine only files written
    /// later are suspect.
    ///
    /// The writer lock is held for two small kinds of transactions, at the beginning and at the end, and for no look at
    /// a file.
    /// - Parameter isStopped: asked between files; true ends the checkpoint without an effect.
    /// - Returns: false if it was stopped.
    @discardableResult
    func make(isStopped: () -> Bool = { false }) throws -> Bool {
        // A file that was nowhere when it was looked for lay in `trash/`, for a removal that was made, or not: then it
        // is back in its place by the next look.
        for _ in 0..<3 {
            switch try makeOnce(isStopped) {
            case .done: return true
            case .stopped: return false
            case .lacking(let lost): for (blob, head) in lost { try damage.reportVanished(blob, head) }
            }
        }
        throw LarderError(
            .io, "a body file of \(path) is moved away again and again: not everything was synced", path: path)
    }

    private enum Checkpoint {
        case done
        case stopped
        /// These committed files could not be synced: they were at none of their places.
        case lacking([(blob: UInt64, head: BlobRecord)])
    }

    private func makeOnce(_ isStopped: () -> Bool) throws -> Checkpoint {
        let epoch = try transactions.housekeep { mutation in
            defer { mutation.state.epoch &+= 1 }
            return mutation.state.epoch
        }
        reach("checkpoint.epoch-begun")
        // Each file that no checkpoint has synced has a row from its commit on, whichever process wrote it.
        let files = try unpublishedFiles(upTo: epoch)
        guard let places = try sync(files.map(\.head), isStopped) else { return .stopped }
        reach("checkpoint.synced")
        let missing = zip(files, places).filter { $0.1 == .nowhere }.map(\.0)
        let lost = try transactions.housekeep { mutation -> [(blob: UInt64, head: BlobRecord)] in
            let lost = try missing.compactMap { row, head -> (blob: UInt64, head: BlobRecord)? in
                guard let value = try mutation.reading.get(index.unpublished, row), value.count == 8 else { return nil }
                return (UInt64(bigEndian: value.loadUnaligned(as: UInt64.self)), head)
            }
            if lost.isEmpty { mutation.state.syncedEpoch = max(mutation.state.syncedEpoch, epoch) }
            return lost
        }
        if !lost.isEmpty { return .lacking(lost) }
        try forget(zip(files, places).filter { $0.1 == .blobs }.map(\.0), upTo: epoch)
        reach("checkpoint.noted")
        try transactions.syncIndex()
        noteCheckpoint(files: files.count)
        return .done
    }

    /// Deletes the rows of files whose names are on disk: no reader has to look for them in `staging/` again.
    private func forget(_ files: [(row: [UInt8], head: BlobRecord)], upTo epoch: UInt64) throws {
        var rows = files[...]
        while !rows.isEmpty {
            let slice = rows.prefix(try context.removalLimit())
            let drifted = try drifted(slice.map(\.head))
            try transactions.housekeep { mutation in
                try settle(drifted, mutation)
                for (row, _) in slice {
                    // The scrubber may have given it a later epoch meanwhile, of the next checkpoint.
                    let head = try mutation.reading.get(index.unpublished, row).flatMap { value in
                        try row.withUnsafeBytes { try index.unpublishedFile($0, value, mutation.reading) }
                    }
                    if let head, head.epoch > epoch { continue }
                    // A writer may have taken a body in progress over since, whose file has left `blobs/` again.
                    if head?.encoding == .partial, let head,
                        try FileSystem.status(head.token.name, in: self.files.staging) != nil
                    {
                        continue
                    }
                    try mutation.transaction.delete(index.unpublished, row)
                    mutation.noteChange(trees: 1)
                }
            }
            rows = rows.dropFirst(slice.count)
        }
    }

    /// Rows of `unpublished` with the blobs they lead to, of files committed in `epoch` and earlier. On short
    /// snapshots: files committed meanwhile are of a later epoch.
    private func unpublishedFiles(upTo epoch: UInt64) throws -> [(row: [UInt8], head: BlobRecord)] {
        var found: [(row: [UInt8], head: BlobRecord)] = []
        var next: [UInt8]? = []
        while let start = next {
            next = try read { transaction in
                try transaction.withCursor(index.unpublished) { cursor in
                    var pair = try cursor.seek(start)
                    for _ in 0..<1024 {
                        guard let (key, value) = pair else { return nil }
                        if let head = try index.unpublishedFile(key, value, transaction), head.epoch <= epoch {
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

    private enum Place {
        case blobs
        case staging
        case nowhere
    }

    /// Syncs files and the names they are published under: one by one, or, where they are many, with everything on
    /// their file system. Nil if it was stopped.
    /// - Returns: for each where it was found.
    private func sync(_ heads: [BlobRecord], _ isStopped: () -> Bool) throws -> [Place]? {
        if heads.count > configuration.syncedSingly {
            // Where they lie is looked up before: a file published later may miss the sync.
            let places = try heads.map { head throws(LarderError) -> Place in
                if try FileSystem.status(head.token.name, in: files.staging) != nil { return .staging }
                return try FileSystem.status(Layout.blob(head.digest), in: files.blobs) == nil ? .nowhere : .blobs
            }
            try Sync.fileSystem(files.root)
            return places
        }
        // All at once to the disk first: then the syncs share what the file system has to write for them.
        for head in heads {
            if isStopped() { return nil }
            if let file = try files.openBlob(head) { Sync.begin(file) }
        }
        var places: [Place] = []
        var shards: Set<String> = []
        for head in heads {
            if isStopped() { return nil }
            let name = Layout.blob(head.digest)
            if let file = try FileSystem.openIfPresent(name, in: files.blobs, flags: O_RDONLY) {
                try Sync.data(file, path: files.blobs.path(of: name))
                shards.insert(String(name.prefix(2)))
                places.append(.blobs)
            } else if let file = try FileSystem.openIfPresent(head.token.name, in: files.staging, flags: O_RDONLY) {
                // To be published yet: its row stays for the next checkpoint.
                try Sync.data(file, path: files.staging.path(of: head.token.name))
                places.append(.staging)
            } else if let file = try files.openBlob(head) {
                try Sync.data(file, path: nil)
                places.append(.staging)
            } else {
                // Displaced meanwhile, and its row with it; or about to be; or lost.
                places.append(.nowhere)
            }
        }
        for shard in shards {
            if isStopped() { return nil }
            // A shard that another program removes or replaces has lost its files, which their readers find.
            if try FileSystem.status(shard, in: files.blobs)?.isDirectory != true { continue }
            try Sync.names(files.blobs.directory(shard))
        }
        return places
    }

    // MARK: What files take

    /// The committed files among `rows` of `unpublished` that take other bytes than they are charged with. Call it
    /// after a sync of these files, without the writer lock.
    private func drifted(_ heads: [BlobRecord]) throws -> [StagingToken: UInt64] {
        var found: [StagingToken: UInt64] = [:]
        for head in heads {
            guard let status = try files.blobStatus(head) else { continue }
            let settled = UInt64(max(0, Allocation.settled(status, of: head, in: files)))
            if settled != head.allocated { found[head.token] = settled }
        }
        return found
    }

    /// Charges files with what `drifted` found. Call it while their rows of `unpublished` are there.
    private func settle(_ drifted: [StagingToken: UInt64], _ mutation: Mutation) throws {
        for (token, allocated) in drifted {
            guard let row = try mutation.reading.get(index.unpublished, token.indexKey), row.count == 8 else {
                continue
            }
            let id = UInt64(bigEndian: row.loadUnaligned(as: UInt64.self))
            guard let head = try mutation.reading.get(index.blobs, id).flatMap(BlobRecord.init), head.token == token,
                head.location == .file, !head.isDamaged
            else { continue }
            var settled = head
            settled.allocated = allocated
            try mutation.blobs.rewrite(id, head, settled)
        }
    }
}
