import Dispatch
import Larder
import LarderHTTP
import Logging
import Locks
import SystemPackage

/// Keeps the store of a gateway usable: looks at it every so often, tells what is wrong with it, and opens it again
/// where that helps.
///
/// ```swift
/// let keeper = StoreKeeper(at: "/var/cache/gateway", Configuration()) { store in
///     HTTPCache(store: store, transport: transport, configuration: caching)
/// }
/// let gateway = try await Gateway.start(settings, cache: try keeper.open())
/// let watching = Task { await keeper.run(gateway) }
/// ```
///
/// Opening again helps where the directory was removed or replaced, where the index is damaged (it is rebuilt from what
/// can be read, or started empty where nothing can), and where the store says so. A full disk, a file system that has
/// become read-only and a failing one are the store's own to get over: it tries again by itself. All the while requests
/// are answered from the origin. A store that has to be made again gets the budget of the old one.
///
/// It owns the store; ``close()`` closes it. Safe to use from any thread.
public final class StoreKeeper: Sendable {
    private static let queue = DispatchQueue(label: "larder.gateway.store")

    private let path: FilePath
    private let configuration: Configuration
    private let makeCache: @Sendable (Store) -> HTTPCache
    private let logger: Logger
    private let held = Mutex<(store: Store, cache: HTTPCache)?>(nil)
    /// The limits of the store when it was well. They are kept in the store, so a new one would have none.
    private let budget = Mutex(Budget.unlimited)
    /// What was logged last, so that each cause is logged once.
    private let told = Mutex<Set<String>>([])

    /// Names the store; ``open()`` or ``use(_:)`` begins.
    ///
    /// - Parameters:
    ///   - path: the directory of the store.
    ///   - configuration: how the store is opened, each time.
    ///   - logger: where it tells what it sees and does.
    ///   - makeCache: makes the cache over a store; with the same settings each time.
    public init(
        at path: FilePath, _ configuration: Configuration, logger: Logger = Logger(label: "larder.gateway"),
        makeCache: @escaping @Sendable (Store) -> HTTPCache
    ) {
        self.path = path
        self.configuration = configuration
        self.logger = logger
        self.makeCache = makeCache
    }

    /// Opens the store. Waits for the disk on the calling thread.
    ///
    /// - Returns: the cache over the store.
    /// - Throws: `LarderError`, as opening a store does.
    public func open() throws -> HTTPCache { use(try Store(at: path, configuration)) }

    /// Takes a store that is open at the path.
    ///
    /// - Parameter store: the keeper closes it from now on.
    /// - Returns: the cache over the store.
    public func use(_ store: Store) -> HTTPCache {
        if let known = try? store.budget() { budget.withLock { $0 = known } }
        let cache = makeCache(store)
        held.withLock { $0 = (store, cache) }
        return cache
    }

    /// The store in use; nil before ``open()`` and after ``close()``.
    public var store: Store? { held.withLock { $0?.store } }

    /// The cache in use; nil before ``open()`` and after ``close()``.
    public var cache: HTTPCache? { held.withLock { $0?.cache } }

    /// Looks after the store until the task is cancelled.
    /// - Parameters:
    ///   - gateway: uses the cache of the store that is open.
    ///   - interval: between two looks. Default: 2 s.
    public func run(_ gateway: Gateway, every interval: Duration = .seconds(2)) async {
        await run(every: interval) { await gateway.use($0) }
    }

    /// As above, for what uses the store otherwise.
    /// - Parameter use: gets the cache over the store that was opened again.
    package func run(
        every interval: Duration = .seconds(2), _ use: @escaping @Sendable (HTTPCache) async -> Void
    ) async {
        while !Task.isCancelled {
            do { try await Task.sleep(for: interval) } catch { return }
            await look(use)
        }
    }

    /// Closes the store. Waits for the disk on the calling thread.
    ///
    /// - Throws: `LarderError`, as `Store.close()` does.
    public func close() throws {
        let old = held.withLock { held in
            defer { held = nil }
            return held
        }
        try old?.store.close()
    }

    /// Looks once.
    package func look(_ gateway: Gateway) async { await look { await gateway.use($0) } }

    package func look(_ use: @Sendable (HTTPCache) async -> Void) async {
        guard let (store, cache) = held.withLock({ $0 }) else { return }
        let troubles = await cache.storeTroubles()
        tell(troubles)
        if troubles.isEmpty, let statistics = try? await store.statistics() {
            budget.withLock { $0 = statistics.budget }
        }
        guard troubles.contains(where: \.wantsReopening) else { return }
        let isRemoved = troubles.contains { $0.work == .place }
        // The requests that use it meanwhile miss, and go to the origin.
        await attempt("close the store") { [self] in
            // It may have changed since the last look. A store whose directory is gone still knows; a damaged index is
            // left alone.
            if isRemoved, let known = try? store.budget() { budget.withLock { $0 = known } }
            try store.close()
        }
        guard let new = await reopened(rebuilding: !isRemoved) else { return }
        await attempt("set the budget") { [self] in
            let budget = budget.withLock { $0 }
            if try new.budget() == .unlimited, budget != .unlimited { try new.setBudget(budget) }
        }
        let fresh = makeCache(new)
        fresh.continueCounting(after: cache)
        held.withLock { $0 = (new, fresh) }
        await use(fresh)
        told.withLock { $0 = [] }
        logger.warning("the store is open again", metadata: ["category": "store", "path": "\(path)"])
    }

    private func reopened(rebuilding: Bool) async -> Store? {
        if rebuilding {
            await attempt("rebuild the index") { [self] in
                let report = try Store.rebuildIndex(at: path, configuration)
                guard !report.damages.isEmpty else { return }
                logger.warning(
                    "the index was damaged and is rebuilt",
                    metadata: ["category": "store", "path": "\(path)", "kept": "\(report.keptEntries)"])
            }
        }
        return await attempt("open the store") { [self] in try Store(at: path, configuration) }
    }

    /// Does something that may wait for the disk, away from the cooperative pool; nil if it fails, which is logged.
    @discardableResult
    private func attempt<R: Sendable>(_ what: String, _ body: @escaping @Sendable () throws -> R) async -> R? {
        let result = await withCheckedContinuation { continuation in
            Self.queue.async { continuation.resume(returning: Result { try body() }) }
        }
        switch result {
        case .success(let value): return value
        case .failure(let error):
            tellOnce("cannot \(what)", "\(error)")
            return nil
        }
    }

    private func tell(_ troubles: [StoreTrouble]) {
        // What the cache sees of reading and writing it tells itself.
        for trouble in troubles where trouble.work == .place || trouble.work == .upkeep {
            tellOnce("the store is in trouble, requests are answered from the origin", "\(trouble)")
        }
        if troubles.isEmpty, !told.withLock({ $0.isEmpty }) {
            told.withLock { $0 = [] }
            logger.warning("the store works again", metadata: ["category": "store", "path": "\(path)"])
        }
    }

    private func tellOnce(_ message: Logger.Message, _ cause: String) {
        guard told.withLock({ $0.insert("\(message) \(cause)").inserted }) else { return }
        logger.error(message, metadata: ["category": "store", "path": "\(path)", "cause": "\(cause)"])
    }
}
