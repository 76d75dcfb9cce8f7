import Larder
import LarderHTTP
import LarderServer
import Logging
import SystemPackage

extension HTTPCache: StoreUser {
    package func drain(upTo limit: Duration) async {
        let end = Task {
            try await Task.sleep(for: limit)
            cancelAll()
        }
        await drain()
        end.cancel()
    }
}

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
    private let keeper: Keeper<HTTPCache>

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
        keeper = Keeper(at: path, configuration, logger: logger, makeCache)
    }

    /// Opens the store. Waits for the disk on the calling thread.
    ///
    /// - Returns: the cache over the store.
    /// - Throws: `LarderError`, as opening a store does.
    public func open() throws -> HTTPCache { try keeper.open() }

    /// Takes a store that is open at the path.
    ///
    /// - Parameter store: the keeper closes it from now on.
    /// - Returns: the cache over the store.
    public func use(_ store: Store) -> HTTPCache { keeper.use(store) }

    /// The store in use; nil before ``open()`` and after ``close()``.
    public var store: Store? { keeper.store }

    /// The cache in use; nil before ``open()`` and after ``close()``.
    public var cache: HTTPCache? { keeper.user }

    /// Looks after the store until the task is cancelled.
    /// - Parameters:
    ///   - gateway: uses the cache of the store that is open.
    ///   - interval: between two looks. Default: 2 s.
    public func run(_ gateway: Gateway, every interval: Duration = .seconds(2)) async {
        await keeper.run(every: interval) { await gateway.use($0) }
    }

    /// Closes the store. Waits for the disk on the calling thread.
    ///
    /// - Throws: `LarderError`, as `Store.close()` does.
    public func close() throws { try keeper.close() }

    /// Looks once.
    package func look(_ gateway: Gateway) async { await keeper.look { await gateway.use($0) } }
}
