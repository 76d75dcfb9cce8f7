import Failpoints
import LMDB
import Logging
import Synchronization
import SystemPackage

/// One open store of this process: what every `Store` of the same path shares.
///
/// Owns the environment, the instance lock, the ledger slot and the threads. See `docs/concurrency.md` for who may do
/// what on which thread.
final class Engine: @unchecked Sendable {
    // SAFETY: immutable except for atomics, and for `committer` and `maintenance`, which `start()` sets before any
    // other thread sees the engine.
    let path: FilePath
    let files: StoreFiles
    let index: Index
    let clock: EntryClock
    let uptime = SystemClock()
    /// What the stores that share the engine have in common; `observer` tells those of all of them.
    let configuration: Configuration
    let audience = Audience()
    let storeID: String
    /// Nil in a read-only engine, which has none of the writing parts.
    let writing: Writing?
    // SAFETY: `writing` is never let go before the engine. A hit must not count references to what all threads share:
    // two threads that do so pass the counter's cache line back and forth, and together are not faster than one.
    private let writingReference: Unmanaged<Writing>?

    /// What only an engine that may write has. A class: passing it on costs one reference, not six.
    final class Writing: Sendable {
        let lock: InstanceLock
        let ledger: Ledger
        let room: Room
        let reaper: Reaper
        let pending: PendingSet
        let touches = TouchBuffer()
        let leases = LeaseBook()

        init(lock: InstanceLock, ledger: Ledger, room: Room, reaper: Reaper, pending: PendingSet) {
            self.lock = lock
            self.ledger = ledger
            self.room = room
            self.reaper = reaper
            self.pending = pending
        }
    }

    let presence: Presence
    let memory: MemoryEntries
    let computations = Computations()
    /// One for each pooled reader slot of the environment.
    let lookups = (0..<Environment.slotCount).map { _ in LookupCache() }
    /// Held by the thread that makes room.
    let roomLock = Monitor()
    let isClosed = Atomic<Bool>(false)
    private let sequence = Atomic<UInt64>(1)
    /// Set while the store is above the high watermark, until it is below the low one.
    let isDisplacing = Atomic<Bool>(false)
    let displacedCount = Atomic<UInt64>(0)
    let health = Health()
    /// The latest commit that this process knows to survive power loss.
    private let synced = Atomic<UInt64>(0)
    let snapshots = Snapshots()
    let readers = Patience()
    /// Set when body files were committed, cleared by a checkpoint.
    let hasUnsyncedFiles = Atomic<Bool>(false)
    /// Set when LMDB, or a walk over its pages, met damage.
    let hasSeenDamage = Atomic<Bool>(false)
    /// Epochs whose body files may have lost bytes to a power loss; see `Verification`.
    let suspects: Range<UInt64>
    let verified = Mutex<Set<UInt64>>([])
    private let knownBudget = Mutex<(transaction: UInt64, budget: Budget?)>((0, nil))
    private var committer: WorkerThread?
    private var scrubber: Scrubber?
    /// What was found wrong with the index while it was in use already: nothing is read from it or written to it any
    /// more.
    let indexFailure = Mutex<LarderError?>(nil)
    /// Wakes no thread unless there is work for it.
    private(set) lazy var maintenance = Maintenance(engine: self)

    init(
        path: FilePath, files: StoreFiles, index: Index, clock: EntryClock, configuration: Configuration,
        storeID: String,
        writing: Writing?, state: StoreState, presence: Presence
    ) {
        self.path = path
        self.files = files
        self.index = index
        self.clock = clock
        // Reports to every open store of the path, not only to the one that was opened first.
        var shared = configuration
        let audience = audience
        _ = audience.join(configuration)
        shared.observer = { audience.tell($0) }
        self.configuration = shared
        self.storeID = storeID
        self.presence = presence
        self.writing = writing
        writingReference = writing.map(Unmanaged.passUnretained)
        memory = MemoryEntries(limit: configuration.memoryLimit)
        index.environment.whenMapMoves { [lookups] in for cache in lookups { cache.clear() } }
        suspects = state.suspects
    }

    var logger: StoreLog { audience.log }

    /// - Parameter walksBehind: true if the pages of the index have yet to be looked at.
    func start(walksBehind: Bool) throws(LarderError) {
        if let writing {
            // Made before a second thread may ask for it.
            _ = maintenance
            committer = try WorkerThread { [unowned self] in Committer(engine: self, writing: writing).run() }
        }
        guard configuration.isScrubbing else { return }
        if walksBehind || writing != nil && !suspects.isEmpty {
            scrubber = try Scrubber(engine: self, walksPages: walksBehind)
        }
    }

    /// Lets nothing more be read from an index that turned out to be damaged, nor written to it.
    func fail(_ error: LarderError) {
        hasSeenDamage.store(true, ordering: .relaxed)
        indexFailure.withLock { $0 = error }
        index.environment.refuse()
        logger.critical("the index is damaged", metadata: ["error": "\(error)"])
        configuration.observer?(.indexDamaged(error))
    }

    /// Writes what is pending, ends the threads and unmaps the index. Idempotent.
    func close() throws {
        guard isClosed.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged
        else { return }
        defer {
            index.environment.close()
            presence.release()
        }
        let hasWalked = scrubber?.stop() ?? configuration.isScrubbing
        scrubber = nil
        guard let writing else { return }
        writing.pending.close()
        committer?.join()
        committer = nil
        maintenance.close()
        writing.pending.stop()
        reach("close.batch-written")
        var failure: (any Error)? = writing.pending.takeFailure(of: nil)
        do {
            dropReleasedLeases()
            try endSession()
            reach("close.session-ended")
            if !writing.ledger.others.isEmpty { try checkpointIfCrowded() }
            if clock.mustBeRecorded { try mutate(.housekeeping) { $0.noteChange(trees: 1) } }
            writing.reaper.drain()
        } catch {
            failure = failure ?? error
        }
        writing.reaper.close()
        reach("close.reaped")
        if failure == nil, hasWalked { noteClosed(writing) }
        if !hasWalked, !hasSeenDamage.load(ordering: .relaxed) { writing.ledger.pendingWalk = 0 }
        writing.ledger.release()
        reach("close.slot-freed")
        do {
            try writing.lock.remove()
        } catch {
            failure = failure ?? error
        }
        reach("close.lock-removed")
        if let failure { throw failure }
    }

    /// The last store to close has everything on disk, and says so: the next open need not look at the pages of the
    /// index, and a new start of the machine makes no file suspect. Without the note it does both, so failures are told
    /// to the log only.
    private func noteClosed(_ writing: Writing) {
        guard !hasSeenDamage.load(ordering: .relaxed), writing.ledger.others.isEmpty else { return }
        do {
            try checkpointForClose()
            reach("close.synced")
            // All is on disk up to this transaction, unless another store has committed files since, and closed.
            let last = try read { try $0.statistics(index.unpublished).entries == 0 ? $0.id : nil }
            guard let last, writing.ledger.others.isEmpty else { return }
            let trust = IndexTrust(files: files, configuration: configuration)
            writing.ledger.setClosedNote(try trust.mark(index.environment, last: last))
            // Another store may have been opened since, and has cleared the note already.
            if !writing.ledger.others.isEmpty { writing.ledger.setClosedNote(0) }
        } catch {
            logger.warning("not everything could be synced when the store closed", metadata: ["error": "\(error)"])
        }
    }

    /// A step that a process can be made to end at, in debug builds. `docs/recovery.md` lists the steps.
    @inline(__always)
    func reach(_ step: StaticString) { failpoint(step, at: path.string) }

    // MARK: Guards

    func requireOpen() throws(LarderError) {
        if isClosed.load(ordering: .acquiring) {
            throw LarderError(.closed, "the store at \(path) was closed", path: path)
        }
    }

    /// The writing parts. Throws `closed` or `readOnly`.
    func requireWriting() throws(LarderError) -> Writing {
        try requireOpen()
        guard let writing else { throw readOnly() }
        return writing
    }

    func readOnly() -> LarderError {
        LarderError(.readOnly, "the store at \(path) was opened read-only", path: path)
    }

    /// Runs `body` with the writing parts, without counting a reference to them; nil in a read-only engine.
    @inline(__always)
    func withWriting<R>(_ body: (Writing) -> R) -> R? {
        writingReference?._withUnsafeGuaranteedRef(body)
    }

    /// A name for a file to stage.
    func nextToken(_ writing: Writing) -> StagingToken {
        StagingToken(
            instance: writing.lock.instance, sequence: sequence.wrappingAdd(1, ordering: .relaxed).newValue)
    }

    // MARK: Reading

    /// Runs `body` on a snapshot of the index.
    @inline(__always)
    func read<R>(_ body: (ReadTransaction) throws -> R) throws -> R {
        do {
            return try index.environment.read(body)
        } catch let error as LMDBError {
            throw translate(error)
        }
    }

    /// As `read`, on a snapshot of its own, for reads that last.
    func readLong<R>(_ body: (ReadTransaction) throws -> R) throws -> R {
        do {
            return try index.environment.readUnpooled(body)
        } catch let error as LMDBError {
            throw translate(error)
        }
    }

    /// Walks over the pages of the index. Throws `corruption` with the first damage.
    func checkPages(_ bigValues: PageWalk<FilePages>.BigValues = .placed) throws {
        do {
            _ = try Yielding.run(files) { poll in
                try withoutActuallyEscaping(poll) { try index.environment.checkPages(bigValues, pause: $0) }
            }
        } catch {
            throw translate(error)
        }
    }

    /// The counters as of the last commit.
    func state() throws -> StoreState { try read { try index.state($0) } }

    /// The limits as of the last commit of any process; decoded again only after one.
    func budget() throws -> Budget {
        let latest: UInt64
        do {
            latest = try index.environment.latestTransaction()
        } catch {
            throw translate(error)
        }
        if let budget = knownBudget.withLock({ $0.transaction == latest ? $0.budget : nil }) { return budget }
        return try read { transaction in
            let budget = try index.state(transaction).budget
            knownBudget.withLock { $0 = (transaction.id, budget) }
            return budget
        }
    }

    /// Commits what this process has pending, so that what follows sees it.
    /// - Parameter touches: whether accesses that were noted count as pending; where they are not looked at, a lookup
    ///   after each hit must not cost a commit.
    func commitPending(touches: Bool = true) {
        guard let writing else { return }
        reach("wait.commit")
        writing.pending.wait(for: writing.pending.requestFlush(force: touches && writing.touches.isDirty))
    }

    /// As the synchronous form, without holding a thread.
    func commitPending(touches: Bool = true) async {
        guard let writing else { return }
        await writing.pending.wait(for: writing.pending.requestFlush(force: touches && writing.touches.isDirty))
    }

    /// Throws what the relaxed puts and removals of `owner` could not, once. For its own flush and close only: a
    /// listing in between must not take the failure away from them.
    func throwFailure(of owner: UInt32) throws {
        if let failure = writing?.pending.takeFailure(of: owner) { throw failure }
    }

    // MARK: The index file

    /// Syncs the index, its meta page included. Files that were kept because a sync was due may be removed then.
    func syncIndex() throws(LarderError) {
        do throws(LMDBError) {
            let committed = try index.environment.latestTransaction()
            try index.environment.sync()
            synced.max(committed, ordering: .releasing)
        } catch {
            throw translate(error)
        }
        writing?.reaper.releaseHeld()
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

    /// Frees the rows of the reader table that belong to processes that died.
    func clearDeadReaders() throws(LarderError) {
        do throws(LMDBError) {
            try index.environment.clearDeadReaders()
        } catch {
            throw translate(error)
        }
    }

    // MARK: Errors

    /// Puts an LMDB failure into the engine's terms.
    func translate(_ error: LMDBError) -> LarderError {
        let data = files.index.path(of: Layout.data)
        if error.isClosed, let failure = indexFailure.withLock({ $0 }) { return failure }
        if error.isClosed { return LarderError(.closed, "the store at \(path) was closed", path: path) }
        if error.isMapFull {
            return LarderError(
                .mapFull,
                "the index \(data) has filled the \(mapSize) of address space it may use in this process: set a lower byte "
                    + "budget, raise 'Configuration.indexMapSize', or close other stores of the process",
                path: data, cause: error)
        }
        if error.isMapResized {
            return LarderError(
                .mapFull,
                "another process has made the index \(data) longer than the \(mapSize) of address space it has in this one, "
                    + "and it cannot grow now: end long reads under way, close other stores of the process, or raise its limit "
                    + "(ulimit -v)",
                path: data, cause: error)
        }
        if error.isReadersFull {
            return LarderError(
                .readersFull, "all reader slots of \(data) are taken: end some of the reads under way",
                path: data, cause: error)
        }
        let isFull = error.isShortWrite && (try? FileSystem.freeBytes(files.root)).map { $0 < 4 << 20 } ?? false
        if error.isNoSpace || isFull {
            return LarderError(
                .noSpace, "no space left to write \(data): free some disk space or lower the budget",
                path: data, cause: error)
        }
        if error.isHalted {
            return LarderError(
                .mustReopen,
                "the index \(data) could not be written and takes no more changes: close all stores at \(path) in this "
                    + "process and open them again",
                path: data, cause: error)
        }
        if error.isDamage {
            hasSeenDamage.store(true, ordering: .relaxed)
            return LarderError(
                .corruption,
                "the index \(data) is damaged", remedy: .rebuildIndex,
                path: data, cause: error)
        }
        return LarderError(.io, "cannot read or write the index \(data)", path: data, cause: error)
    }

    /// The size of the map, for messages.
    private var mapSize: String {
        do throws(LMDBError) {
            return "\(ByteCount(Int64(try index.environment.mapSize())).bytes) bytes"
        } catch {
            return "bytes"
        }
    }

    /// Any error of a transaction, in the engine's terms.
    func translate(_ error: any Error) -> LarderError {
        if let error = error as? LarderError { return error }
        if let error = error as? LMDBError { return translate(error) }
        if let damage = error as? PageDamage {
            hasSeenDamage.store(true, ordering: .relaxed)
            return IndexTrust.error(damage, files)
        }
        return LarderError(.io, "the store at \(path) failed", path: path, cause: error)
    }
}
