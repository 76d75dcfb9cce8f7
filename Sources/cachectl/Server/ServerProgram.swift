import CLarder
import CachectlCore
import Larder
import LarderHTTP
import LarderServer
import Logging

/// What a server program runs on a store: the caching gateway, or the object server.
protocol ServedService: Sendable {
    /// What uses the store.
    associatedtype User: StoreUser

    /// Where the keeper of the store tells what it does.
    var logger: Logger { get }

    /// What uses the store, also one that was opened again.
    func user(of store: Store) -> User

    /// Opens the addresses.
    /// - Throws: `CommandError`; then none is open.
    func start(_ user: User) async throws -> any RunningServer<User>
}

/// A server whose addresses are open.
protocol RunningServer<User>: Sendable {
    associatedtype User: StoreUser

    var addresses: Announcement.Addresses { get }

    /// What other servers on the store must not see before this one is sure to run.
    func recover(_ store: Store) async throws

    /// Continues with a store that was opened again.
    func use(_ user: User) async

    /// False without a file of its own.
    func reopenAccessLog() throws(GatewayError) -> Bool

    /// False without TLS.
    func reloadCertificate() throws(GatewayError) -> Bool

    /// Waits for requests in progress for up to `drain`, and closes everything.
    func stop(drain: Duration) async

    /// Closes what the cache uses, after its last load.
    func closeOrigins() async
}

extension RunningServer {
    func recover(_ store: Store) async throws {}
    func closeOrigins() async {}
}

/// A server on a store, from the opening of the store to the end of the drain: what `serve` and `objects` have in
/// common.
struct ServerProgram: Sendable {
    let options: StoreOptions
    let settings: ServerSettings
    let levels: LogLevels

    /// Call it before anything takes long: from here on SIGHUP does not end the program.
    static func listen() {
        Interruption.listen()
        Reloading.listen()
    }

    /// Runs until SIGINT or SIGTERM.
    /// - Parameter source: the file with settings, if there is one.
    func run(_ service: some ServedService, _ source: Reloading.Source? = nil) throws {
        try options.withStore(.creating, rebuildsIndex: true, configure) { store in
            try Blocking.untilInterrupted { try await serve(store, service, source) }
        }
    }

    /// A commit takes as long as many hits, whatever is in it. A server that is killed may lose what came in this time.
    private static let commitDelay = Duration.milliseconds(100)

    /// How the store is opened, the first time and again.
    private func configure(_ configuration: inout Configuration) {
        configuration.logger = levels.logger(configuration.logger)
        configuration.memoryLimit = settings.hotBodies ?? .mebibytes(32)
        configuration.commitDelay = Self.commitDelay
        if settings.verifyReads == true { configuration.verification = .always }
    }

    private func serve(_ store: Store, _ service: some ServedService, _ source: Reloading.Source?) async throws {
        var opening = try options.configuration(.creating)
        configure(&opening)
        let keeper = Keeper(at: options.path, opening, logger: service.logger) { service.user(of: $0) }
        let server = try await service.start(keeper.use(store))
        // Not before everything is open that can fail: other servers may be using the store.
        let hasDefaultBudget: Bool
        do {
            if let budget = settings.budget { try store.setByteBudget(ofServer: budget) }
            hasDefaultBudget = try DefaultBudget.set(in: store, unless: settings.budget)
            try await server.recover(store)
        } catch {
            await server.stop(drain: .zero)
            throw error
        }
        let watching = Task { await keeper.run { await server.use($0) } }
        try Announcement(
            server.addresses, try await store.performShort { try store.statistics() }, store.path.string,
            hasDefaultBudget: hasDefaultBudget
        )
        .write(asJSON: options.json)
        // Serving needs two thirds of it.
        clarder_release_startup_memory()
        var reloading = Reloading(server, levels, source) { keeper.store }
        // Until SIGINT or SIGTERM cancels this task.
        for await _ in SignalHandler.arrivals { reloading.obey() }
        Interruption.endAtNext()
        let drain = settings.drain ?? .seconds(10)
        Output.note(
            "draining: waiting up to \(Render.elapsed(drain)) for requests in progress; another signal exits now")
        let start = ContinuousClock.now
        await Task {
            watching.cancel()
            await watching.value
            await server.stop(drain: drain)
        }.value
        // Loads that continue without a client have what is left of the time.
        await Task { await keeper.user?.drain(upTo: max(.zero, drain - (.now - start))) }.value
        await server.closeOrigins()
        try keeper.close()
    }
}
