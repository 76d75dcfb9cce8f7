import ArgumentParser
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
            A shared cache (RFC 9111) between clients and --origin: HTTP/1.1, with --tls-listen also TLS and HTTP/2. Prints \
            the addresses when it is ready. PURGE removes what is stored for a URL, with Purge-Prefix or Purge-Tag for many; \
            from loopback, or with --purge-token. SIGINT or SIGTERM ends it in order: running answers are finished. \
            Settings can stand in a JSON file (--config), with the names of the flags in camel case; flags win.
            """)

    @OptionGroup var options: StoreOptions

    @Option(
        help: ArgumentHelp(
            "Where requests go: URL for all hosts, or HOST=URL for one; may be given several times.", valueName: "url"))
    var origin: [String] = []

    @Option(
        help: ArgumentHelp("Address and port; port 0 takes a free one. Default: 127.0.0.1:8080.", valueName: "address"))
    var listen: String?

    @Flag(help: "Forward proxy: requests for a whole URL go where it says.")
    var forward = false

    @Flag(inversion: .prefixedNo, help: "Send the client's Host to the origin. Default: yes.")
    var passHost: Bool?

    @Option(help: ArgumentHelp("Address and port of /metrics, /healthz and a status page.", valueName: "address"))
    var admin: String?

    @Option(help: ArgumentHelp("Address and port for TLS.", valueName: "address"))
    var tlsListen: String?

    @Option(help: ArgumentHelp("Certificate chain, PEM.", valueName: "file"), completion: .file())
    var certificate: String?

    @Option(help: ArgumentHelp("Private key, PEM.", valueName: "file"), completion: .file())
    var key: String?

    @Flag(inversion: .prefixedNo, help: "Offer HTTP/2 on the TLS port. Default: yes.")
    var http2: Bool?

    @Flag(help: "Allow CONNECT.")
    var tunnel = false

    @Option(
        help: ArgumentHelp("A port that CONNECT may reach; may be given several times. Default: 443.", valueName: "n"))
    var tunnelPort: [Int] = []

    @Flag(inversion: .prefixedNo, help: "Answer PURGE. Default: yes.")
    var purge: Bool?

    @Option(help: ArgumentHelp("Who sends this as a bearer token may PURGE from anywhere.", valueName: "token"))
    var purgeToken: String?

    @Option(help: ArgumentHelp("Event loops. Default: one for each core.", valueName: "n"))
    var threads: Int?

    @Option(help: ArgumentHelp("Byte budget of the store.", valueName: "size"))
    var budget: String?

    @Option(help: ArgumentHelp("The cache's name in Cache-Status. Default: larder.", valueName: "name"))
    var name: String?

    @Option(help: ArgumentHelp("Write a line for each request here; - for standard output.", valueName: "file"))
    var accessLog: String?

    @Option(help: ArgumentHelp("Form of the access log: common or json.", valueName: "form"))
    var logFormat: String?

    @Option(
        help: ArgumentHelp("Seconds until a connection to an origin must stand. Default: 10.", valueName: "seconds"))
    var connectTimeout: Double?

    @Option(help: ArgumentHelp("Seconds an origin may take to answer. Default: 60.", valueName: "seconds"))
    var readTimeout: Double?

    @Option(help: ArgumentHelp("Seconds a client may keep an idle connection. Default: 75.", valueName: "seconds"))
    var idleTimeout: Double?

    @Option(help: ArgumentHelp("Seconds a client may take to send a head. Default: 10.", valueName: "seconds"))
    var headTimeout: Double?

    @Option(help: ArgumentHelp("Seconds that running answers get at the end. Default: 10.", valueName: "seconds"))
    var drain: Double?

    @Option(help: ArgumentHelp("Largest head of a request. Default: 64KiB.", valueName: "size"))
    var maxHead: String?

    @Option(help: ArgumentHelp("Largest content of a request. Default: 1GiB.", valueName: "size"))
    var maxBody: String?

    @Option(help: ArgumentHelp("Client connections at once. Default: 16384.", valueName: "n"))
    var maxConnections: Int?

    @Option(
        help: ArgumentHelp(
            "Memory for large bodies that are asked for again and again. Default: 32MiB.", valueName: "size"))
    var hotBodies: String?

    @Option(help: ArgumentHelp("Settings, as JSON.", valueName: "file"), completion: .file())
    var config: String?

    func run() throws {
        Interruption.listen()
        let settings = try merged()
        let setup = try ServeSetup(settings)
        try options.withStore(.creating, budget: setup.budget) { store in
            try Blocking.untilInterrupted { try await serve(store, setup) }
        }
    }

    private func serve(_ store: Store, _ setup: ServeSetup) async throws {
        // A slow origin must not keep its other answers waiting: the cache's own limit is the one that counts.
        let transport = NIOTransport(NIOTransport.Configuration(connectionsPerHost: 1_024))
        var configuration = HTTPCacheConfiguration()
        configuration.caching = .gateway
        configuration.caching.cacheName = setup.name
        // The pseudonym tells a loop from another gateway in front of this one.
        configuration.viaName = "larder-" + String(store.identifier.prefix(8))
        configuration.timeouts = setup.timeouts
        configuration.requestsPerHost = 1_024
        configuration.logger.logLevel = .error
        let cache = HTTPCache(
            store: store, transport: RoutedTransport(setup.gateway.routes, over: transport),
            configuration: configuration)
        let gateway: Gateway
        do {
            gateway = try await Gateway.start(setup.gateway, cache: cache)
        } catch let error as GatewayError {
            throw CommandError(error.code == .cannotListen ? .temporary : .usage, error.message)
        }
        try announce(gateway)
        while !Task.isCancelled { try? await Task.sleep(for: .seconds(3600)) }
        await Task { await gateway.stop(drain: setup.drain) }.value
        await cache.drain()
        await transport.close()
    }

    private func announce(_ gateway: Gateway) throws {
        if options.json {
            try Output.write(
                JSON.line(
                    AddressesJSON(
                        address: gateway.address.map { "http://\($0.text)" },
                        tls: gateway.tlsAddress.map { "https://\($0.text)" },
                        admin: gateway.adminAddress.map { "http://\($0.text)" })))
            return
        }
        if let address = gateway.address { try Output.write("listening on http://\(address.text)\n") }
        if let address = gateway.tlsAddress { try Output.write("listening on https://\(address.text)\n") }
        if let address = gateway.adminAddress { try Output.write("admin on http://\(address.text)\n") }
    }

    /// The file's settings with the flags in their place.
    private func merged() throws -> ServeSettings {
        var settings = try config.map { try ServeSettings(file: FilePath($0)) } ?? ServeSettings()
        if !origin.isEmpty { settings.origin = origin }
        if forward { settings.forward = true }
        if tunnel { settings.tunnel = true }
        if !tunnelPort.isEmpty { settings.tunnelPort = tunnelPort }
        settings.listen = listen ?? settings.listen
        settings.passHost = passHost ?? settings.passHost
        settings.admin = admin ?? settings.admin
        settings.tlsListen = tlsListen ?? settings.tlsListen
        settings.certificate = certificate ?? settings.certificate
        settings.key = key ?? settings.key
        settings.http2 = http2 ?? settings.http2
        settings.purge = purge ?? settings.purge
        settings.purgeToken = purgeToken ?? settings.purgeToken
        settings.threads = threads ?? settings.threads
        settings.budget = budget ?? settings.budget
        settings.name = name ?? settings.name
        settings.accessLog = accessLog ?? settings.accessLog
        settings.logFormat = logFormat ?? settings.logFormat
        settings.connectTimeout = connectTimeout ?? settings.connectTimeout
        settings.readTimeout = readTimeout ?? settings.readTimeout
        settings.idleTimeout = idleTimeout ?? settings.idleTimeout
        settings.headTimeout = headTimeout ?? settings.headTimeout
        settings.drain = drain ?? settings.drain
        settings.maxHead = maxHead ?? settings.maxHead
        settings.maxBody = maxBody ?? settings.maxBody
        settings.maxConnections = maxConnections ?? settings.maxConnections
        settings.hotBodies = hotBodies ?? settings.hotBodies
        return settings
    }
}

extension SocketAddress {
    /// As a URL has it: `127.0.0.1:8080`, `[::1]:8080`.
    var text: String {
        let host = ipAddress ?? "localhost"
        return (host.contains(":") ? "[\(host)]" : host) + ":\(port ?? 0)"
    }
}

/// `serve --json`: where it listens.
private struct AddressesJSON: Encodable {
    @Nullable var address: String?
    @Nullable var tls: String?
    @Nullable var admin: String?
}
