import ArgumentParser
import Larder
import LarderGateway
import LarderHTTP

/// The settings of `serve`, checked and in the types that the gateway takes.
struct ServeSetup: Sendable {
    var gateway = GatewayConfiguration()
    var timeouts = Timeouts()
    var name = "larder"
    var budget: ByteCount?
    var drain = Duration.seconds(10)

    init(_ settings: ServeSettings) throws {
        gateway.logger.logLevel = .error
        let listen = try Self.address(settings.listen ?? "127.0.0.1:8080", "listen")
        gateway.host = listen.host
        gateway.port = listen.port
        if let admin = settings.admin {
            let address = try Self.address(admin, "admin")
            gateway.adminHost = address.host
            gateway.adminPort = address.port
        }
        gateway.routes = try Self.routes(settings)
        gateway.tls = try Self.tls(settings, host: listen.host)
        gateway.tunnels.isAllowed = settings.tunnel ?? false
        if let ports = settings.tunnelPort { gateway.tunnels.ports = Set(ports) }
        gateway.purging.isEnabled = settings.purge ?? true
        gateway.purging.token = settings.purgeToken
        if let threads = settings.threads {
            guard (1...256).contains(threads) else { throw ValidationError("threads \(threads): give 1 ... 256.") }
            gateway.eventLoops = threads
        }
        budget = try settings.budget.map(SizeArgument.parseBudget)
        if let given = settings.name {
            guard !given.isEmpty, given.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C }) else {
                throw ValidationError("name '\(given)': give printable ASCII without spaces and quotation marks.")
            }
            name = given
        }
        gateway.accessLog = try Self.accessLog(settings)
        if let time = try Self.time(settings.connectTimeout, "connect-timeout") { timeouts.connect = time }
        if let time = try Self.time(settings.readTimeout, "read-timeout") { timeouts.read = time }
        if let time = try Self.time(settings.idleTimeout, "idle-timeout") { gateway.limits.idleTimeout = time }
        if let time = try Self.time(settings.headTimeout, "head-timeout") { gateway.limits.headTimeout = time }
        if let time = try Self.time(settings.drain, "drain") { drain = time }
        if let size = try settings.maxHead.map(SizeArgument.parse) {
            guard (1_024...(16 << 20)).contains(size.bytes) else {
                throw ValidationError("max-head: give 1KiB ... 16MiB.")
            }
            gateway.limits.headBytes = Int(size.bytes)
        }
        if let size = try settings.maxBody.map(SizeArgument.parse) { gateway.limits.bodyBytes = size.bytes }
        if let count = settings.maxConnections {
            guard count > 0 else { throw ValidationError("max-connections: give 1 or more.") }
            gateway.limits.connections = count
        }
        if let size = try settings.hotBodies.map(SizeArgument.parse) {
            gateway.hotBodyBytes = Int(clamping: size.bytes)
        }
    }

    private static func routes(_ settings: ServeSettings) throws -> Routes {
        var routes = Routes(allowsForwarding: settings.forward ?? false, passesHost: settings.passHost ?? true)
        for text in settings.origin ?? [] {
            do {
                // A host has no slash, a URL has one before any equals sign.
                if let equals = text.firstIndex(of: "="), !text[..<equals].contains("/") {
                    routes.hosts[text[..<equals].lowercased()] = try OriginServer(
                        String(text[text.index(after: equals)...]))
                } else if routes.otherwise == nil {
                    routes.otherwise = try OriginServer(text)
                } else {
                    throw ValidationError(
                        "--origin \(text): only one can be for all hosts; give HOST=URL for the others.")
                }
            } catch let error as GatewayError {
                throw ValidationError("--origin: " + error.message)
            }
        }
        if routes.otherwise == nil, routes.hosts.isEmpty, !routes.allowsForwarding {
            throw ValidationError("give --origin URL, or --forward for a proxy.")
        }
        if routes.otherwise != nil, routes.allowsForwarding {
            throw ValidationError("--forward and an --origin for all hosts exclude each other.")
        }
        return routes
    }

    private static func tls(_ settings: ServeSettings, host: String) throws -> GatewayTLS? {
        guard let listen = settings.tlsListen else {
            if settings.certificate != nil || settings.key != nil {
                throw ValidationError("--certificate and --key are for --tls-listen.")
            }
            return nil
        }
        guard let certificate = settings.certificate, let key = settings.key else {
            throw ValidationError("--tls-listen needs --certificate and --key.")
        }
        let address = try address(listen, "tls-listen")
        guard address.host == host else {
            throw ValidationError("--tls-listen \(listen): the address has to be that of --listen, \(host).")
        }
        return GatewayTLS(
            port: address.port, certificateFile: certificate, keyFile: key,
            allowsHTTP2: settings.http2 ?? true)
    }

    private static func accessLog(_ settings: ServeSettings) throws -> AccessLogConfiguration? {
        guard let path = settings.accessLog else { return nil }
        var format = AccessLogConfiguration.Format.common
        if let name = settings.logFormat {
            guard let found = AccessLogConfiguration.Format(rawValue: name) else {
                throw ValidationError("log-format \(name): there are common and json.")
            }
            format = found
        }
        return AccessLogConfiguration(format: format, path: path == "-" ? nil : path)
    }

    private static func time(_ seconds: Double?, _ name: String) throws -> Duration? {
        guard let seconds else { return nil }
        guard seconds >= 0.001, seconds <= 1e6 else {
            throw ValidationError("\(name) \(seconds): give 0.001 ... 1000000.")
        }
        return .seconds(seconds)
    }

    /// `127.0.0.1:8080`, `[::1]:8080`, `localhost:0`.
    private static func address(_ text: String, _ name: String) throws -> (host: String, port: Int) {
        guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]),
            (0...65_535).contains(port)
        else { throw ValidationError("--\(name) \(text): give address and port, such as 127.0.0.1:8080.") }
        var host = String(text[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        guard !host.isEmpty, !host.contains("]") else {
            throw ValidationError("--\(name) \(text): the address is missing or not right.")
        }
        return (host, port)
    }
}
