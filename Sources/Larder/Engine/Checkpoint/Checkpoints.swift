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
            case .lacking(let lost): for blob in lost { try damage.reportVanished(blob.id, blob.head) }
            }
        }
        throw LarderError(
            .io, "a body file of \(path) is moved away again and again: not everything was synced", path: path)
    }

    private enum Checkpoint {
        case done
        case stopped
        /// These committed files could not be synced: they were at none of their places.
        case lacking([NumberedBlob])
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
        let lost = try transactions.housekeep { mutation -> [NumberedBlob] in
            let lost = try missing.filter { try index.unpublished($0.head.token, mutation.reading) != nil }
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
    private func forget(_ files: [NumberedBlob], upTo epoch: UInt64) throws {
        var rest = files[...]
        while !rest.isEmpty {
            let slice = rest.prefix(try context.removalLimit())
            let drifted = try drifted(slice.map(\.head))
            try transactions.housekeep { mutation in
                try charge(drifted, mutation)
                for file in slice {
                    // The scrubber may have given it a later epoch meanwhile, of the next checkpoint.
                    let head = try index.unpublished(file.head.token, mutation.reading)?.head
                    if let head, head.epoch > epoch { continue }
                    // A writer may have taken a body in progress over since, whose file has left `blobs/` again.
                    if head?.encoding == .partial, let head,
                        try FileSystem.status(head.token.name, in: self.files.staging) != nil
                    {
                        continue
                    }
                    try mutation.transaction.delete(index.unpublished, file.head.token.indexKey)
                    mutation.noteChange(trees: 1)
                }
            }
            rest = rest.dropFirst(slice.count)
        }
    }

    /// Blobs that rows of `unpublished` lead to, of files committed in `epoch` and earlier. On short snapshots: files
    /// committed meanwhile are of a later epoch.
    private func unpublishedFiles(upTo epoch: UInt64) throws -> [NumberedBlob] {
        var found: [NumberedBlob] = []
        var next: [UInt8]? = []
        while let start = next {
            next = nil
            var rows = 0
            try read { transaction in
                try index.walkUnpublished(from: start, transaction) { row, blob in
                    rows += 1
                    guard rows <= 1024 else {
                        next = Array(row)
                        return false
                    }
                    if let blob, blob.head.epoch <= epoch { found.append(blob) }
                    return true
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
                return try FileSystem.status(Layout.blob(files.name(of: head.digest)), in: files.blobs) == nil
                    ? .nowhere : .blobs
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
            let name = Layout.blob(files.name(of: head.digest))
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

    /// The committed files that take other bytes than they are charged with. Call it
    /// after a sync of these files, without the writer lock.
    private func drifted(_ heads: [BlobRecord]) throws -> [StagingToken: Int64] {
        var found: [StagingToken: Int64] = [:]
        for head in heads {
            guard let status = try files.blobStatus(head) else { continue }
            let settled = Allocation.settled(status, of: head, in: files)
            if max(0, settled) != head.allocated.asBytes { found[head.token] = settled }
        }
        return found
    }

    /// Charges files with what `drifted` found. Call it while their rows of `unpublished` are there.
    private func charge(_ drifted: [StagingToken: Int64], _ mutation: Mutation) throws {
        for (token, allocated) in drifted {
            guard let blob = try index.unpublished(token, mutation.reading), blob.head.location == .file,
                !blob.head.isDamaged
            else { continue }
            try mutation.blobs.charge(blob, allocated)
        }
    }
}
