import ArgumentParser
import CachectlCore
import HTTPCaching
import Larder
import LarderGateway
import LarderHTTP
import LarderNIOTransport
import Logging
import NIOCore
import SystemPackage

/// `serve`: the caching gateway.
struct ServeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run a caching gateway in front of origin servers, or a caching proxy.",
        discussion: """
            A shared cache (RFC 9111) between clients and --origin, with HTTP/1.1, and with TLS and HTTP/2 on \
            --tls-listen. Prints its addresses when it is ready. PURGE removes the responses of a URL, or of many with \
            Purge-Prefix or Purge-Tag; it is accepted from loopback, or with --purge-token. SIGINT and SIGTERM shut \
            down gracefully, after the responses in progress; a second signal exits at once. SIGUSR1 reopens the \
            access log. SIGHUP also reloads the certificate and the settings: a new budget and new log levels \
            hold at once. Settings can be in a JSON file (--config), under the names of the flags in camel case; flags take precedence. --check tests them.
            """)

    @OptionGroup var options: StoreOptions
    @OptionGroup var settings: ServeSettings

    @Option(help: ArgumentHelp("JSON file with settings.", valueName: "file"), completion: .file())
    var config: String?

    @Flag(help: "Check settings, certificate and key, and exit.")
    var check = false

    func run() throws {
        Interruption.listen()
        Reloading.listen()
        guard let config else { return try run(file: nil) }
        let file = try SettingsFile(FilePath(config))
        let flags = CommandLine.arguments.dropFirst(2)
        // The parser uses the last value, so flags take precedence; but it would join repeatable settings.
        let given = settings
        let arguments = file.arguments { name in
            name == "origin" && !given.origin.isEmpty || name == "tunnelPort" && !given.tunnelPort.isEmpty
                || name == "foldEncoding" && !given.foldEncoding.isEmpty
                || name == "keepField" && !given.keepField.isEmpty
        }
        try ServeCommand.parse(arguments + flags).run(
            file: file,
            fixed: Set((given.budget == nil ? [] : ["budget"]) + (given.logLevel == nil ? [] : ["logLevel"])))
    }

    /// - Parameters:
    ///   - file: the file with settings, if there is one.
    ///   - fixed: settings that the command line gives, so that a change in the file has no effect.
    private func run(file: SettingsFile?, fixed: Set<String> = []) throws {
        let setup = try ServeSetup(settings)
        guard !check else { return try report(on: setup) }
        try options.withStore(.creating, rebuildsIndex: true) {
            $0.logger = setup.levels.logger($0.logger)
        } _: { store in
            let source = file.map {
                Reloading.Source(path: FilePath(config ?? ""), file: $0, fixed: fixed)
            }
            try Blocking.untilInterrupted { try await serve(store, setup, source) }
        }
    }

    /// `--check`: opens neither a port nor the store.
    private func report(on setup: ServeSetup) throws {
        do {
            try Gateway.check(setup.gateway)
        } catch {
            throw CommandError(error)
        }
        Self.warn(ofKey: setup)
        let text = setup.destinations.map { "origin for \($0)\n" }.joined()
        try options.print(SettingsJSON(origins: setup.destinations), orText: text + "the settings are valid\n")
    }

    private func serve(_ store: Store, _ setup: ServeSetup, _ source: Reloading.Source?) async throws {
        // The cache limits requests per host; the transport's own limit must not come first.
        let transport = NIOTransport(
            NIOTransport.Configuration(
                connectionsPerHost: 1_024, maximumHeadBytes: setup.responseHead, http2: setup.usesHTTP2))
        let keeper = keeper(store, setup, over: transport)
        let cache = keeper.use(store)
        let gateway: Gateway
        do {
            gateway = try await Gateway.start(setup.gateway, cache: cache)
        } catch {
            throw CommandError(error)
        }
        // Not before everything is open that can fail: other gateways may be using the store.
        let hasDefaultBudget: Bool
        do {
            hasDefaultBudget = try Self.setBudget(of: store, setup)
            try await CollectCommand.recoverPackages(store)
        } catch {
            await gateway.stop(drain: .zero)
            throw error
        }
        Self.warn(ofKey: setup)
        let watching = Task { await keeper.run(gateway) }
        try Announcement(
            plain: gateway.address, tls: gateway.tlsAddress, admin: gateway.adminAddress, try await store.statistics(),
            store.path.string, origins: setup.destinations, hasDefaultBudget: hasDefaultBudget
        )
        .write(asJSON: options.json)
        var reloading = Reloading(gateway, keeper, setup.levels, source)
        while !Task.isCancelled {
            try? await Task.sleep(for: .milliseconds(100))
            reloading.obey()
        }
        Interruption.endAtNext()
        Output.note(
            "draining: waiting up to \(Render.elapsed(setup.drain)) for responses in progress; "
                + "another signal exits at once"
        )
        await Task {
            watching.cancel()
            await watching.value
            await gateway.stop(drain: setup.drain)
        }.value
        await keeper.cache?.drain()
        await transport.close()
        try keeper.close()
    }

    /// - Returns: true if it set the default.
    private static func setBudget(of store: Store, _ setup: ServeSetup) throws -> Bool {
        if let bytes = setup.budget { try store.setByteBudget(ofServer: bytes) }
        return try DefaultBudget.set(in: store, unless: setup.budget)
    }

    private static func warn(ofKey setup: ServeSetup) {
        var status = stat()
        guard let path = setup.gateway.tls?.keyFile, FilePath(path).withPlatformString({ stat($0, &status) }) == 0,
            status.st_mode & S_IROTH != 0
        else { return }
        setup.gateway.logger.warning(
            "every user of this machine can read the private key: change its permissions to 600",
            metadata: ["category": "settings", "path": "\(path)"])
    }

    /// Reopens the store after errors where that helps.
    private func keeper(_ store: Store, _ setup: ServeSetup, over transport: NIOTransport) -> StoreKeeper {
        var configuration = HTTPCacheConfiguration()
        configuration.caching = setup.caching
        // The pseudonym distinguishes a loop from another gateway in front of this one.
        configuration.viaName = "larder-" + String(store.identifier.prefix(8))
        configuration.timeouts = setup.timeouts
        configuration.requestsPerHost = 1_024
        configuration.logger = setup.levels.logger(configuration.logger)
        configuration.foldedContentCodings = setup.foldedContentCodings
        configuration.sliceBytes = setup.sliceBytes
        let routed = RoutedTransport(
            setup.gateway.routes, over: OriginFailureLog(over: transport, setup.gateway.logger))
        var opening = options.configuration(.creating)
        opening.logger = setup.levels.logger(opening.logger)
        return StoreKeeper(at: options.path, opening, logger: setup.gateway.logger) { [configuration] store in
            HTTPCache(store: store, transport: routed, configuration: configuration)
        }
    }
}

/// `serve --check --json`.
private struct SettingsJSON: Encodable {
    let origins: [String]
}
