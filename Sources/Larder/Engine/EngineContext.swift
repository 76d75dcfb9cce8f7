import LMDB
import Locks
import SystemPackage

/// What all parts of an engine share: the directory, the index, the clocks, the settings, the log, the counters. It
/// knows no part.
///
/// Safe to use from any thread: immutable but for its locks and atomics.
final class EngineContext: Sendable {
    let path: FilePath
    let files: StoreFiles
    let index: Index
    let clock: EntryClock
    let uptime = SystemClock()
    /// What the stores that share the engine have in common; `observer` tells those of all of them.
    let configuration: Configuration
    let audience = Audience()
    let health = Health()
    let counterFile: CounterFile
    /// Those of the file: a value, so that a hit counts no reference.
    let counters: Counters
    /// What commits of this process have changed.
    let ownCommits = OwnCommits()
    /// Set when LMDB, or a walk over its pages, met damage.
    private let seenDamage = Atomic<Bool>(false)
    /// What was found wrong with the index while it was in use already: nothing is read from it or written to it any
    /// more.
    private let indexFailure = EngineMutex<LarderError?>(nil)
    /// The limits, and the commit that they were read from.
    private let knownBudget = EngineMutex<(transaction: UInt64, budget: Budget?)>((0, nil))
    private let closed = Atomic<Bool>(false)

    init(
        path: FilePath, files: StoreFiles, index: Index, clock: EntryClock, configuration: Configuration,
        counterFile: CounterFile
    ) {
        self.path = path
        self.files = files
        self.index = index
        self.clock = clock
        self.counterFile = counterFile
        counters = counterFile.counters
        // Reports to every open store of the path, not only to the one that was opened first.
        var shared = configuration
        let audience = audience
        _ = audience.join(configuration)
        shared.observer = { audience.tell($0) }
        self.configuration = shared
    }

    // MARK: Closing

    /// True once the engine is being closed.
    var isClosed: Bool { closed.load(ordering: .acquiring) }

    /// The engine is about to be closed. False if it was before.
    func markClosed() -> Bool {
        closed.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged
    }

    /// Throws `closed` if the engine is being closed.
    func requireOpen() throws(LarderError) {
        if isClosed { throw LarderError(.closed, "the store at \(path) was closed", path: path) }
    }

    /// Throws if the store is no longer where it was opened; see `Store.checkPlace()`.
    func checkPlace() throws {
        func lost(_ what: String) -> LarderError {
            LarderError(.io, "\(what) while the store was open: close it and open it again", path: path)
        }
        guard let found = try FileSystem.status(path: path) else { throw lost("\(path) was removed or renamed") }
        let own = try FileSystem.status(files.root.descriptor, path: path)
        guard found.device == own.device, found.inode == own.inode else { throw lost("\(path) was replaced") }
        guard try FileSystem.status(Layout.data, in: files.index) != nil,
            try Layout.directories.allSatisfy({ try FileSystem.status($0, in: files.root) != nil })
        else { throw lost("files of \(path) were removed") }
    }

    // MARK: Damage of the index

    /// True if LMDB, or a walk over its pages, met damage.
    var hasSeenDamage: Bool { seenDamage.load(ordering: .relaxed) }

    /// The index is damaged: the next open has to look at its pages.
    func noteDamage() { seenDamage.store(true, ordering: .relaxed) }

    /// Lets nothing more be read from an index that turned out to be damaged, nor written to it.
    func fail(_ error: LarderError) {
        noteDamage()
        indexFailure.withLock { $0 = error }
        index.environment.refuse()
        logger(.integrity).critical("the index is damaged", metadata: ["error": "\(error)"])
        configuration.observer?(.indexDamaged(error))
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

    /// Frees the rows of the reader table that belong to processes that died.
    func clearDeadReaders() throws(LarderError) {
        do throws(LMDBError) {
            try index.environment.clearDeadReaders()
        } catch {
            throw translate(error)
        }
    }

    // MARK: Limits

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

    /// How many removals one transaction may hold, so that the pages it copies fit the headroom: 20 pages each at
    /// worst.
    func removalLimit() throws -> Int {
        let budget = try state().budget
        return budget.bytes == .unlimited ? 256 : Int(min(budget.changesInHeadroom, 256))
    }

    // MARK: Errors

    /// Puts an LMDB failure into the engine's terms.
    func translate(_ error: LMDBError) -> LarderError {
        if error.isDamage { noteDamage() }
        if error.isClosed, let failure = indexFailure.withLock({ $0 }) { return failure }
        return LarderError(index: error, in: self)
    }

    /// Any error of a transaction, in the engine's terms.
    func translate(_ error: any Error) -> LarderError {
        if let error = error as? LarderError { return error }
        if let error = error as? LMDBError { return translate(error) }
        if let damage = error as? PageDamage {
            noteDamage()
            return IndexTrust.error(damage, files)
        }
        return LarderError(.io, "the store at \(path) failed", path: path, cause: error)
    }

    /// Nothing more may be displaced.
    func noRoom() -> LarderError {
        LarderError(
            .noSpace,
            "no room in \(path): what is left is pinned, leased or being written", remedy: .makeRoom,
            path: path)
    }

    /// The store was opened read-only.
    func readOnly() -> LarderError {
        LarderError(.readOnly, "the store at \(path) was opened read-only", path: path)
    }
}

extension EngineContext: EnginePart {
    var context: EngineContext { self }

    /// The size of the map, for messages.
    fileprivate var mapSize: String {
        do throws(LMDBError) {
            return "\(ByteCount(Int64(try index.environment.mapSize())).bytes) bytes"
        } catch {
            return "bytes"
        }
    }
}

extension LarderError {
    /// A failure of LMDB in the engine's terms.
    fileprivate init(index error: LMDBError, in context: EngineContext) {
        let (path, files) = (context.path, context.files)
        let data = files.index.path(of: Layout.data)
        if error.isClosed {
            self.init(.closed, "the store at \(path) was closed", path: path)
            return
        }
        if error.isMapFull {
            self.init(
                .mapFull,
                "the index \(data) has filled the \(context.mapSize) of address space it may use in this process: set a lower byte "
                    + "budget, raise 'Configuration.indexMapSize', or close other stores of the process",
                path: data, cause: error)
            return
        }
        if error.isMapResized {
            self.init(
                .mapFull,
                "another process has made the index \(data) longer than the \(context.mapSize) of address space it has in this one, "
                    + "and it cannot grow now: end long reads under way, close other stores of the process, or raise its limit "
                    + "(ulimit -v)",
                path: data, cause: error)
            return
        }
        if error.isReadersFull {
            self.init(
                .readersFull, "all reader slots of \(data) are taken: end some of the reads under way",
                path: data, cause: error)
            return
        }
        let isFull = error.isShortWrite && (try? FileSystem.freeBytes(files.root)).map { $0 < 4 << 20 } ?? false
        if error.isNoSpace || isFull {
            self.init(
                .noSpace, "no space left to write \(data): free some disk space or lower the budget",
                path: data, cause: error)
        } else if error.isHalted {
            self.init(
                .mustReopen,
                "the index \(data) could not be written and takes no more changes: close all stores at \(path) in this "
                    + "process and open them again",
                path: data, cause: error)
        } else if error.isDamage {
            self.init(.corruption, "the index \(data) is damaged", remedy: .rebuildIndex, path: data, cause: error)
        } else {
            self.init(.io, "cannot read or write the index \(data)", path: data, cause: error)
        }
    }
}
