import Locks
import SystemPackage

/// A content-addressed cache in a directory: bodies stored once by SHA-256, an index from keys to them, a budget that
/// holds at every moment.
///
///     let store = try Store(at: "/var/cache/app", Configuration(budget: Budget(bytes: .gigabytes(10))))
///     try store.put(Array("hello".utf8), for: "https://example.com/")
///     if let entry = try store.get("https://example.com/") { print(try entry.body.bytes()) }
///     try store.close()
///
/// A store may be used from any thread and task, and its directory by several processes at once. Lookups and small puts
/// do not wait for a disk and are synchronous; each call that may wait has an asynchronous twin. Two stores of one path
/// in one process share all but a few settings: see `Configuration`. Do not use a store across fork(2).
public final class Store: Sendable {
    let engine: Engine
    let configuration: Configuration
    /// The number that stands for the application version; nil: every version is seen.
    let version: UInt16?
    /// Tells the store from others that share its engine.
    let handle: UInt32
    private let isClosed = Atomic<Bool>(false)
    /// The directory of an ephemeral store, locked for as long as that is open.
    private let ephemeral: OwnedDescriptor?

    /// Store time, by which lifetimes and ages are judged. It is the wall clock, except that it never goes back: if the
    /// wall clock was set back, store time stays ahead of it.
    public var now: Timestamp { engine.clock.now() }

    /// Opens the store at `path`, creating the directory and its parents if they are missing.
    ///
    /// It waits for disks, so call it on a thread that may.
    /// - Complexity: O(1) in the entries. The pages of the index are checked first, about a second for a million
    ///   entries, only if `Configuration.indexCheck` asks for it or the state of the store requires it.
    /// - Parameters:
    ///   - path: a directory, on a local file system. A relative path is one from the current directory.
    ///   - configuration: settings of this store. Default: no budget, everything else as documented there.
    /// - Throws: `invalidArgument` (a file in the way, values out of range), `formatMismatch` (another program's
    ///   directory, a newer format), `corruption` (a damaged index), `io`, `noSpace`, `locked` (open in this process
    ///   with other settings that stores of one path share).
    public convenience init(at path: some PathConvertible, _ configuration: Configuration = Configuration()) throws {
        try self.init(path: path.filePath(), configuration, ephemeral: nil)
    }

    init(path: FilePath, _ configuration: Configuration, ephemeral: OwnedDescriptor?) throws {
        let (engine, handle) = try Registry.acquire(path, configuration, lock: ephemeral)
        do {
            version = try engine.versions.number(of: configuration.version)
        } catch {
            try Registry.release(engine, handle)
            throw error
        }
        self.engine = engine
        self.handle = handle
        self.configuration = configuration
        self.ephemeral = ephemeral
        if let version { engine.writing?.removals.reclaimOtherVersions(version) }
    }

    deinit {
        // There is no caller to report a failure to; call `close()` to get it.
        try? close()
    }

    /// Commits pending changes and releases the store's files. Later calls throw `closed`. Idempotent, and safe from
    /// any thread. Waits for the last commit and its sync.
    /// - Throws: the errors that this store's relaxed puts and removals could not report (see `flush(_:)`); `io`.
    public func close() throws {
        guard isClosed.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged
        else { return }
        defer { if ephemeral != nil { Ephemeral.remove(engine.path) } }
        defer { engine.audience.endEvents(of: handle) }
        try Registry.release(engine, handle)
    }

    /// As the synchronous form, on a thread that may wait for the disk. It runs to its end even if the task is
    /// cancelled.
    public func close() async throws {
        try await IOPool.long.run { [self] in try close() }
    }

    /// Opens a store on a thread that may wait for the disk: the asynchronous form of `init(at:_:)`.
    /// - Parameters:
    ///   - path: the directory; it is created if it is missing.
    ///   - configuration: settings of the store. Default: no budget.
    /// - Returns: an open store.
    /// - Throws: as `init(at:_:)`; `CancellationError`.
    public static func open(
        at path: some PathConvertible, _ configuration: Configuration = Configuration()
    ) async throws -> Store {
        try Task.checkCancellation()
        return try await IOPool.long.run { try Store(at: path, configuration) }
    }

    /// Runs calls that may wait on a thread that may wait, so that no thread of the cooperative pool does: the
    /// asynchronous form of all calls that have none of their own.
    ///
    ///     let count = try await store.perform { try $0.statistics().entryCount }
    ///     try await store.perform { try $0.collect(compact: true) }
    ///
    /// In a task the compiler asks for it where a call is marked. All stores of the process share two threads for this:
    /// a third `work` waits for one of them, and so do asynchronous opens, closes and removals of a selection. So let
    /// `work` make its calls and return, and never let it wait for another task.
    ///
    /// `work` also begins in a cancelled task. Cancelling the task ends `collect`, `check`, `adopt`, `export`, `keys`,
    /// `forEach` and `remove` of a selection in it with `CancellationError`; all other calls run to their end.
    /// - Parameter work: gets this store.
    /// - Returns: the result of `work`.
    /// - Throws: the errors of `work`.
    @discardableResult
    public func perform<R: Sendable>(_ work: @escaping @Sendable (Store) throws -> R) async throws -> R {
        try await IOPool.long.runCancellable { [self] in try work(self) }
    }

    /// The directory.
    public var path: FilePath { engine.path }

    /// 32 hexadecimal digits that identify the store among all others.
    public var identifier: String { engine.storeID }

    /// True if the store is encrypted: see `Configuration.encryption`.
    public var isEncrypted: Bool { engine.files.cipher != nil }

    /// True once `close()` was called.
    var isOver: Bool { isClosed.load(ordering: .acquiring) }

    @inline(__always)
    func requireOpen() throws(LarderError) {
        if isClosed.load(ordering: .acquiring) {
            throw LarderError(.closed, "the store at \(engine.path) was closed", path: engine.path)
        }
    }

    @inline(__always)
    func writing() throws(LarderError) -> Engine.Writing {
        try requireOpen()
        return try engine.requireWriting()
    }

    /// Commits everything put and removed so far by this process, access times included, and syncs the index: removals,
    /// pins, lifetimes and entries whose body is in the index survive power loss when the call has returned.
    ///
    /// - Parameter durability: `relaxed` (the default): a body in a file that was put without `Durability.durable` may
    ///   still be lost with power, until a checkpoint in the background; its entry is a miss then. `durable`: such
    ///   bodies also survive. Each of them is synced or, if there are very many, the whole file system, including
    ///   writes of other programs.
    /// - Throws: `closed`, `io`, `noSpace`; and, once, the errors that the relaxed puts and removals of this store
    ///   could not report: those changes are not in the store. `LarderError.keys` has their keys, `failures` the causes
    ///   if there are several.
    @available(*, noasync, message: "Use `perform`, which waits off the cooperative threads.")
    public func flush(_ durability: Durability = .relaxed) throws {
        try requireOpen()
        engine.commitPending()
        try finishFlush(durability)
    }

    private func finishFlush(_ durability: Durability) throws {
        let synced = Result {
            guard let writing = engine.writing else { return }
            if durability == .durable {
                try writing.checkpoints.make()
            } else {
                try writing.transactions.syncIndexIfNeeded()
            }
        }
        // What was lost first, with its keys: a disk that failed for that fails for the sync, too.
        try engine.writing?.submission.throwFailure(of: handle)
        try synced.get()
    }
}
