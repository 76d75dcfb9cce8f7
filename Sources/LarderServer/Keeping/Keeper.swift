import Dispatch
import Larder
import LarderHTTP
import Locks
import Logging
import SystemPackage

/// What uses a store that is kept: a cache, or an object server.
package protocol StoreUser: Sendable {
    var health: StoreHealth { get }

    /// Waits for what it does in the background. What is not over within the limit is given up.
    func drain(upTo limit: Duration) async
}

extension StoreHealth: StoreUser {
    package var health: StoreHealth { self }
    package func drain(upTo limit: Duration) async {}
}

private let keeperQueue = DispatchQueue(label: "larder.gateway.store")

/// What a `StoreKeeper` does, for whatever uses the store.
package final class Keeper<User: StoreUser>: Sendable {
    private let path: FilePath
    private let configuration: Configuration
    private let makeUser: @Sendable (Store) -> User
    private let logger: Logger
    private let held = Mutex<(store: Store, user: User)?>(nil)
    /// The limits of the store when it was well. They are kept in the store, so a new one would have none.
    private let budget = Mutex(Budget.unlimited)
    /// What was logged last, so that each cause is logged once.
    private let told = Mutex<Set<String>>([])

    /// - Parameters:
    ///   - path: the directory of the store.
    ///   - configuration: how the store is opened, each time.
    ///   - logger: where it tells what it sees and does.
    ///   - makeUser: makes what uses a store; with the same settings each time.
    package init(
        at path: FilePath, _ configuration: Configuration, logger: Logger,
        _ makeUser: @escaping @Sendable (Store) -> User
    ) {
        self.path = path
        self.configuration = configuration
        self.logger = logger
        self.makeUser = makeUser
    }

    /// Opens the store. Waits for the disk on the calling thread.
    package func open() throws -> User { use(try Store(at: path, configuration)) }

    /// Takes a store that is open at the path, and closes it in the end.
    package func use(_ store: Store) -> User {
        if let known = try? store.budget() { budget.withLock { $0 = known } }
        let user = makeUser(store)
        held.withLock { $0 = (store, user) }
        return user
    }

    /// The store in use; nil before ``open()`` and after ``close()``.
    package var store: Store? { held.withLock { $0?.store } }

    /// What uses it.
    package var user: User? { held.withLock { $0?.user } }

    /// Looks after the store until the task is cancelled.
    /// - Parameters:
    ///   - interval: between two looks.
    ///   - use: gets what uses a store that was opened again.
    package func run(
        every interval: Duration = .seconds(2), _ use: @escaping @Sendable (User) async -> Void
    ) async {
        while !Task.isCancelled {
            do { try await Task.sleep(for: interval) } catch { return }
            await look(use)
        }
    }

    /// Closes the store. Waits for the disk on the calling thread.
    package func close() throws {
        let old = held.withLock { held in
            defer { held = nil }
            return held
        }
        try old?.store.close()
    }

    /// Looks once.
    package func look(_ use: @Sendable (User) async -> Void) async {
        guard let (store, user) = held.withLock({ $0 }) else { return }
        let troubles = await user.health.troubles()
        tell(troubles)
        if troubles.isEmpty, let statistics = try? await store.performShort({ try store.statistics() }) {
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
        let fresh = makeUser(new)
        fresh.health.continueCounting(after: user.health.failures)
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
            keeperQueue.async { continuation.resume(returning: Result { try body() }) }
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
