import LMDB
import Locks

/// Write transactions on the index, with what happens to files before and after each commit.
///
/// A transaction is committed only if the budget holds afterwards. Making room for one that does not fit is the
/// `RoomMaker`'s. Safe from any thread: LMDB lets one write at a time, and the rest is atomic.
final class Transactions: EnginePart {
    let context: EngineContext
    private let room: Room
    private let ledger: Ledger
    private let reaper: Reaper
    private let pending: PendingSet
    private let moves = StampMoves()
    private let leases: LeaseBook
    private let snapshots: HeldSnapshots
    private let space: IndexSpace
    private let staged: StagedFiles
    private let log: DisplacementLog
    /// The latest commit that this process knows to survive power loss.
    private let synced = Atomic<UInt64>(0)
    /// Set when body files were committed, cleared by a checkpoint.
    private let unsyncedFiles = Atomic<Bool>(false)

    init(
        context: EngineContext, room: Room, ledger: Ledger, reaper: Reaper, pending: PendingSet, leases: LeaseBook,
        snapshots: HeldSnapshots, space: IndexSpace, staged: StagedFiles, log: DisplacementLog
    ) {
        self.context = context
        self.room = room
        self.ledger = ledger
        self.reaper = reaper
        self.pending = pending
        self.leases = leases
        self.snapshots = snapshots
        self.space = space
        self.staged = staged
        self.log = log
    }

    /// Which limit a write transaction has to keep.
    enum Purpose {
        /// Stores something: stays below the headroom, displaces to get there.
        case put
        /// Notes accesses, or displaces while a snapshot is held: may use half of the headroom for the pages it copies.
        case touch
        /// Removes or displaces: may use the headroom.
        case housekeeping

        /// The bytes on disk that the commit may reach.
        func cap(_ budget: Budget) -> Int64 {
            if budget.bytes == .unlimited { return .max }
            switch self {
            case .put: return budget.usableBytes
            case .touch: return budget.bytes.bytes - budget.headroom / 2
            case .housekeeping: return budget.bytes.bytes
            }
        }
    }

    /// The outcome of a transaction.
    enum Attempt<R> {
        case committed(R)
        /// It was dropped: the budget lacks this.
        case lacks(Room.Lack)
    }

    /// What a commit may do beyond its purpose's limit.
    enum Leeway {
        case none
        /// Files that are on disk already may grow the index into the headroom. The budget holds all the same, and what
        /// is committed can be displaced.
        case headroom
        /// A removal goes ahead in any case.
        case unlimited
    }

    /// What a commit falls back on where the file system is full.
    private enum Resort {
        case none
        /// The reserve of the index.
        case reserve
        /// The rest of the reserve, and the free pages of the index that were given back.
        case freePages
        /// The same, and the files of the bodies to be removed: they are removed before the commit that removes their
        /// entries. If that commit fails, readers find entries without a file, which are misses.
        case filesFirst
    }

    // MARK: Transactions

    /// Runs `body` in a write transaction and commits it if that fits the budget; nil if it does not.
    func commitIfFitting<R>(_ purpose: Purpose, _ body: (Mutation) throws -> R) throws -> R? {
        guard case .committed(let result) = try tryCommit(purpose, body) else { return nil }
        return result
    }

    /// As above; tells what it lacks.
    func tryCommit<R>(_ purpose: Purpose, _ body: (Mutation) throws -> R) throws -> Attempt<R> {
        do {
            return try attempt(purpose, body)
        } catch let error as LMDBError {
            throw context.translate(error)
        }
    }

    /// Runs `body`, which removes or corrects something, in a write transaction and commits it.
    ///
    /// Removing is the way to get room, so it must not wait for any: pages that earlier removals freed are given back
    /// first, and if there are none it goes ahead. `body` may run several times; see `RoomMaker.mutate`.
    @discardableResult
    func housekeep<R>(_ body: (Mutation) throws -> R) throws -> R {
        do {
            var outcome = try attempt(.housekeeping, body)
            var tries = 0
            while tries < 200, case .lacks(let lack) = outcome {
                tries += 1
                let given = tries < 4 ? try space.giveBack(max(lack.bytes, 128 << 10)) : 0
                outcome = try attempt(.housekeeping, body, leeway: given > 0 ? .none : .unlimited)
            }
            if case .committed(let result) = outcome { return result }
        } catch let error as LMDBError {
            throw context.translate(error)
        }
        throw context.noRoom()
    }

    /// Runs `body` in a write transaction; whether it is committed depends on the budget and on `leeway`.
    ///
    /// On a disk without a page left for the index, what only removes or corrects may use the reserve. Where that is
    /// not enough, the files of removed bodies go first.
    /// - Parameter mayUseReserve: true for a put whose files are on disk and that could be given no room.
    func attempt<R>(
        _ purpose: Purpose, _ body: (Mutation) throws -> R, leeway: Leeway = .none, mayUseReserve: Bool = false
    ) throws -> Attempt<R> {
        if purpose != .housekeeping {
            return try attempt(purpose, body, leeway, mayUseReserve ? .reserve : .none)
        }
        var hasDeadFiles = false
        let counting: (Mutation) throws -> R = { mutation in
            // What replaces a body must not lose it as well.
            defer { hasDeadFiles = !mutation.blobs.deadFiles.isEmpty && mutation.lastPut == 0 }
            return try body(mutation)
        }
        var resort = Resort.none
        while true {
            do {
                return try attempt(purpose, counting, leeway, resort)
            } catch  where isOfFullDisk(error) {
                switch resort {
                case .none:
                    // What the commit does not need of it is taken again.
                    try? room.reserve.look(context.budget(), isFull: true)
                    resort = .reserve
                // Its blocks are in pages that the last transactions have freed.
                case .reserve where try space.giveBack(Self.pagesOfRemoval) > 0: resort = .freePages
                case .reserve, .freePages:
                    if !hasDeadFiles { throw error }
                    resort = .filesFirst
                case .filesFirst: throw error
                }
            }
        }
    }

    /// Bytes of free pages that are given back to the file system for those that a removal writes.
    private static let pagesOfRemoval: Int64 = 256 << 10

    /// A rename into `trash/` may need a block, too, on some file systems.
    private func isOfFullDisk(_ error: any Error) -> Bool {
        ((error as? LMDBError).map(context.translate) ?? error as? LarderError)?.isOfFullDisk == true
    }

    /// `docs/recovery.md` gives the order of renames and commit, and says what a crash in each gap leaves.
    private func attempt<R>(
        _ purpose: Purpose, _ body: (Mutation) throws -> R, _ leeway: Leeway, _ resort: Resort
    ) throws -> Attempt<R> {
        let transaction = try index.environment.beginWrite()
        defer { transaction.abort() }
        transaction.watch(index.entries, index.blobs)
        let mutation = try Mutation(index: index, files: files, transaction: transaction, now: clock.advance())
        mutation.earlierMoves = moves
        clock.observe(mutation.state)
        clock.record(in: &mutation.state)
        let released = leases.released
        try mutation.dropLeases(released)
        snapshots.note(mutation)
        let result = try body(mutation)
        var (victims, order) = ([Victim](), VictimOrder.byUse())
        while mutation.state.entryCount > UInt64(clamping: mutation.state.budget.entries) {
            guard let victim = try mutation.displaceNext(&order),
                victim.reason == .expired || victim.record.stamp != mutation.lastPut
            else {
                // Removing must not fail for what is left, nor setting the limit itself.
                if purpose == .housekeeping { break }
                throw LarderError(
                    .noSpace,
                    "the budget of \(mutation.state.budget.entries) entries is full of pinned and leased ones: unpin some",
                    path: path)
            }
            victims.append(victim)
        }
        let limits = mutation.state.budget.batchLimits(configuration.pendingLimit)
        pending.setLimits(memory: limits.memory, count: limits.count)
        try mutation.finish()
        if purpose == .put, resort == .none || mutation.blobs.stagedBytes == 0 {
            try room.reserve.keep(beside: mutation)
        }
        if let lack = try lack(mutation, purpose, leeway) { return .lacks(lack) }
        try commit(mutation, resort)
        leases.forget(released)
        log.report(victims)
        if mutation.removedRows > 0 { reportRows(mutation.removedRows) }
        return .committed(result)
    }

    /// What the commit would lack to keep the budget; nil if it may go ahead.
    private func lack(
        _ mutation: Mutation, _ purpose: Purpose, _ leeway: Leeway
    ) throws -> Room.Lack? {
        let effective = leeway == .headroom && mutation.blobs.stagedBytes > 0 ? Purpose.housekeeping : purpose
        let cap =
            try effective == .put ? snapshots.usableBytes(mutation.state.budget) : effective.cap(mutation.state.budget)
        // Beside a held snapshot few free pages can be used, and next to no hole is filled.
        let reusable = try snapshots.mayBeHeld ? index.environment.reusablePageCount() : nil
        guard let lack = try room.lack(of: mutation, cap: cap, reusable: reusable), leeway != .unlimited else {
            return nil
        }
        // Over the budget already, because that was lowered: removing is the way back, even if it writes some pages
        // first.
        if purpose == .housekeeping, try room.claimed(state()) > cap { return nil }
        return lack
    }

    /// A body file that a transaction has renamed into `trash/`.
    private struct Discarded {
        let head: BlobRecord
        let name: String
        let place: StoreFiles.Place

        /// What the reaper has to know.
        var item: (name: String, bytes: Int64) { (name, head.allocated.asBytes) }
    }

    private func commit(_ mutation: Mutation, _ resort: Resort) throws {
        var discarded: [Discarded] = []
        if !mutation.blobs.deadFiles.isEmpty { reaper.expect() }
        do {
            // A durable put that found its body there relies on a file that a relaxed put wrote.
            for head in mutation.blobs.sharedDurably where head.epoch > mutation.state.syncedEpoch {
                if let file = try files.openBlob(head) { try Sync.data(file, path: nil) }
            }
            reach("commit.before-trash")
            // A file may be put and displaced in one transaction.
            let new = mutation.blobs.deadFiles.isEmpty ? [] : Set(mutation.blobs.newFiles.map(\.token))
            for head in mutation.blobs.deadFiles where resort != .filesFirst {
                let name = Layout.trash(staged.nextToken(), files.name(of: head.digest))
                guard let place = try files.discard(head, as: name, isNew: new.contains(head.token)) else { continue }
                ledger.add(head.allocated.asBytes)
                discarded.append(Discarded(head: head, name: name, place: place))
                reach("commit.trashed")
            }
            for head in mutation.blobs.deadFiles where resort == .filesFirst {
                try files.unlink(head)
                reach("commit.files-dropped")
            }
            // No record leads to these names yet: a file there is an orphan, left by a power loss perhaps, and must not
            // be taken for the body that is published after the commit.
            for head in mutation.blobs.newFiles {
                try FileSystem.unlink(Layout.blob(files.name(of: head.digest)), in: files.blobs)
            }
            if resort != .none { room.reserve.release() }
            // Whatever the commit did not need, before others take it.
            defer { if resort != .none { try? room.reserve.require() } }
            room.reserve.allocateGrowth(of: mutation)
            reach("commit.before")
            if mutation.completesPending { pending.noteCommit(as: mutation.reading.id) }
            let (number, hasChanges) = (mutation.reading.id, mutation.transaction.hasChanges)
            context.ownCommits.willCommit(mutation.transaction)
            try mutation.transaction.commit()
            moves.note(mutation.moves)
            // Without changes there was no commit, and another process may commit under this number.
            if hasChanges { context.ownCommits.didCommit(number) }
            reach("commit.after")
        } catch {
            mutation.transaction.abort()
            if mutation.completesPending { pending.noteCommit(as: 0) }
            let unneeded = restore(discarded)
            if !mutation.blobs.deadFiles.isEmpty { reaper.add(unneeded.map(\.item)) }
            throw error
        }
        ledger.add(-mutation.blobs.stagedBytes)
        if !mutation.blobs.deadFiles.isEmpty {
            // A power loss may still undo the commit. A durable put must not lose what it replaces as well: until the
            // index is synced the old file stays in `trash/`, from where a sweep puts it back. The batch's own sync
            // reports a failure.
            do {
                if mutation.isDurable { try syncIndex() }
                reaper.add(discarded.map(\.item))
            } catch {
                reaper.hold(discarded.map(\.item))
            }
        }
        for file in mutation.blobs.surplusFiles { staged.discard(file) }
        reach("commit.surplus-dropped")
        if mutation.blobs.hasGrownFiles { noteUnsyncedFiles() }
        if !mutation.blobs.newFiles.isEmpty || !mutation.blobs.leftFiles.isEmpty {
            noteUnsyncedFiles()
            publish(mutation.blobs.newFiles + mutation.blobs.leftFiles)
        }
    }

    /// The commit failed: puts back the files that are still needed, and returns the others. The failed transaction has
    /// released the writer lock, so another process may have changed the index meanwhile.
    ///
    /// What cannot be looked up or put back now stays in `trash/`, as after a crash: a reader that misses the file, or
    /// the sweep of the next open, finds it there.
    private func restore(_ discarded: [Discarded]) -> [Discarded] {
        reach("restore.before")
        guard !discarded.isEmpty else { return [] }
        do {
            let transaction = try index.environment.beginWrite()
            defer { transaction.abort() }
            return discarded.filter { item in
                do {
                    guard try isNeeded(item, transaction.reading) else { return true }
                    // Counted as a body or as staged, wherever it is.
                    ledger.add(-item.head.allocated.asBytes)
                    try files.restore(item.head, from: item.name, to: item.place)
                } catch {
                    logger(.commits).warning("a removed file stays in trash", metadata: ["error": "\(error)"])
                }
                return false
            }
        } catch {
            logger(.commits).warning("removed files stay in trash", metadata: ["error": "\(error)"])
            return []
        }
    }

    /// True for the file of a body that the index has and that is nowhere else, and for one that a put of the failed
    /// transaction staged, which is tried again.
    private func isNeeded(_ item: Discarded, _ transaction: ReadTransaction) throws -> Bool {
        let head = try index.blob(item.head.digest, transaction)?.head
        if item.place == .staging, head?.token != item.head.token { return true }
        // What it is charged with, or its epoch, may have been noted since.
        guard head?.isSameFile(as: item.head) == true else { return false }
        return try files.blobStatus(item.head) == nil
    }

    /// Renames committed body files into `blobs/`, under the writer lock and only while the index has them: without the
    /// lock another process could displace a blob in between, and its file would be left without a record.
    private func publish(_ heads: [BlobRecord]) {
        do {
            reach("publish.before")
            let transaction = try index.environment.beginWrite()
            defer { transaction.abort() }
            for head in heads where try transaction.reading.get(index.unpublished, head.token.indexKey) != nil {
                try files.publish(head)
                reach("publish.renamed")
            }
            succeeded(.publication)
        } catch {
            // Readers find the files in `staging/`; the sweep of the next open publishes them.
            failed(.publication, error)
        }
    }

    /// Reports damaged index rows that were removed.
    private func reportRows(_ count: Int) {
        context.noteDamage()
        logger(.integrity).error(
            "rows of the order of displacement led to no entry and were removed: run 'cachectl verify'",
            metadata: ["rows": "\(count)", "path": "\(path)"])
        configuration.observer?(.rowsRemoved(count: count))
    }

    /// Deletes the rows of leases that were released, unless another transaction does so first. For the committer's
    /// loop.
    func dropReleasedLeases() {
        guard leases.isDirty else { return }
        do {
            try housekeep { _ in }
            succeeded(.leases)
        } catch {
            // They end with their time, and the next transaction tries again.
            failed(.leases, error)
        }
    }

    // MARK: Unsynced files

    /// True if body files were committed since the last checkpoint of this process.
    var hasUnsyncedFiles: Bool { unsyncedFiles.load(ordering: .relaxed) }

    /// Body files were committed that a checkpoint has to sync.
    func noteUnsyncedFiles() { unsyncedFiles.store(true, ordering: .releasing) }

    /// A checkpoint begins: true if there are such files.
    func takeUnsyncedFiles() -> Bool { unsyncedFiles.exchange(false, ordering: .acquiringAndReleasing) }

    // MARK: Syncing the index

    /// Syncs the index, its meta page included. Files that were kept because a sync was due may be removed then.
    func syncIndex() throws(LarderError) {
        do throws(LMDBError) {
            let committed = try index.environment.latestTransaction()
            try index.environment.sync()
            synced.max(committed, ordering: .releasing)
        } catch {
            throw translate(error)
        }
        reaper.releaseHeld()
    }

    /// As `syncIndex()`, if anything was committed since this process did so last.
    func syncIndexIfNeeded() throws(LarderError) {
        let committed: UInt64
        do throws(LMDBError) {
            committed = try index.environment.latestTransaction()
        } catch {
            throw translate(error)
        }
        if committed > synced.load(ordering: .acquiring) { try syncIndex() }
    }
}
