import ArgumentParser
import CachectlCore
import Larder
import LarderServer
import Logging

/// The settings that `serve` and `objects` have in common: addresses, TLS, budget, logs, limits of connections. One
/// that is not given is nil; the defaults are in the help.
struct ServerSettings: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Address and port to listen on; port 0 selects a free one. Default: 127.0.0.1:8080.", valueName: "address"),
        transform: AddressArgument.parse)
    var listen: AddressArgument?

    @Option(
        help: ArgumentHelp("Address and port for /metrics, /healthz and a status page.", valueName: "address"),
        transform: AddressArgument.parse)
    var admin: AddressArgument?

    @Option(
        help: ArgumentHelp("Address and port for TLS.", valueName: "address"), transform: AddressArgument.parse)
    var tlsListen: AddressArgument?

    @Option(help: ArgumentHelp("Certificate chain in PEM.", valueName: "file"), completion: .file())
    var certificate: String?

    @Option(help: ArgumentHelp("Private key in PEM.", valueName: "file"), completion: .file())
    var key: String?

    @Option(
        help: ArgumentHelp(
            "Byte budget of the store, or 'unlimited'. Default: its budget; without one, 80 % of the free disk space.",
            valueName: "size"),
        transform: SizeArgument.parseBudget)
    var budget: ByteCount?

    @Flag(
        inversion: .prefixedNo, exclusivity: .chooseLast,
        help: "Compare each body with its digest before it is sent; 0.6 ms a MiB. Default: no.")
    var verifyReads: Bool?

    @Option(
        help: ArgumentHelp("Access log, one line per request; - is standard output.", valueName: "file"),
        completion: .file())
    var accessLog: String?

    @Option(help: ArgumentHelp("Format of the access log. Default: common.", valueName: "format"))
    var logFormat: LogFormatArgument?

    @Option(
        help: ArgumentHelp(
            "Least severe messages to log on standard error, also by category: warning,storing=debug. Default: "
                + "warning.",
            valueName: "level"),
        completion: .list(LogLevelArgument.names), transform: LogLevelArgument.parse)
    var logLevel: LogLevelArgument?

    @Option(
        help: ArgumentHelp("Number of event loops, 1 ... 256. Default: one per core.", valueName: "n"),
        transform: { try CountArgument.parse($0, in: 1...256) })
    var threads: Int?

    @Option(
        help: ArgumentHelp("Maximum number of client connections. Default: 16384.", valueName: "n"),
        transform: { try CountArgument.parse($0, in: 1 ... .max) })
    var maxConnections: Int?

    @Option(
        help: ArgumentHelp(
            "Memory for data in transit; beyond it requests are refused. Default: 512MiB.", valueName: "size"),
        transform: { try SizeArgument.parse($0, in: .mebibytes(1) ... .gibibytes(1_024)) })
    var memory: ByteCount?

    @Option(
        help: ArgumentHelp(
            "Memory for large bodies that are requested often. Default: 32MiB.", valueName: "size"),
        transform: SizeArgument.parse)
    var hotBodies: ByteCount?

    @Option(
        help: ArgumentHelp("Time for requests in progress at shutdown. Default: 10s.", valueName: "duration"),
        transform: DurationArgument.parseTimeout)
    var drain: Duration?

    /// The levels of all messages of a server and its store, to be made once.
    var logLevels: LogLevels {
        let levels = LogLevels(.warning)
        logLevel?.apply(to: levels)
        return levels
    }

    /// Puts the settings into those of the connections.
    /// - Parameters:
    ///   - levels: of the messages.
    ///   - http2: offers HTTP/2 on the TLS port; nil: yes.
    ///   - hasOtherTLS: true if the certificate is for another port, too.
    func configure(
        _ connections: inout ServerConfiguration, _ levels: LogLevels, http2: Bool? = nil, hasOtherTLS: Bool = false
    ) throws {
        connections.logger = levels.logger(connections.logger)
        let listen = listen ?? AddressArgument(host: "127.0.0.1", port: 8080)
        connections.host = listen.host
        connections.port = listen.port
        if let admin {
            connections.adminHost = admin.host
            connections.adminPort = admin.port
        }
        connections.tls = try tls(beside: listen.host, http2: http2, hasOtherTLS: hasOtherTLS)
        try Self.checkPorts([("--listen", listen), ("--tls-listen", tlsListen), ("--admin", admin)])
        if accessLog == nil, logFormat != nil { throw ValidationError("--log-format needs --access-log.") }
        connections.accessLog = accessLog.map {
            AccessLogConfiguration(format: logFormat?.format ?? .common, path: $0 == "-" ? nil : $0)
        }
        connections.eventLoops = threads
        connections.limits.connections = maxConnections ?? connections.limits.connections
        connections.limits.memoryBytes = memory.map { Int(clamping: $0.bytes) } ?? connections.limits.memoryBytes
    }

    /// No two servers open the same port. 0 is one that is free.
    private static func checkPorts(_ addresses: [(flag: String, address: AddressArgument?)]) throws {
        let given = addresses.compactMap { entry in entry.address.map { (entry.flag, $0) } }.filter { $0.1.port != 0 }
        for (index, (flag, address)) in given.enumerated() {
            for (other, before) in given[..<index] where before.port == address.port && before.host == address.host {
                throw ValidationError("\(flag): the port \(address.port) is that of \(other).")
            }
        }
    }

    private func tls(beside host: String, http2: Bool?, hasOtherTLS: Bool) throws -> GatewayTLS? {
        guard let tlsListen else {
            if !hasOtherTLS, certificate != nil || key != nil {
                throw ValidationError("--certificate and --key need --tls-listen.")
            }
            return nil
        }
        guard let certificate, let key else { throw ValidationError("--tls-listen needs --certificate and --key.") }
        guard tlsListen.host == host else {
            throw ValidationError("--tls-listen: the address must be that of --listen, \(host), not \(tlsListen.host).")
        }
        return GatewayTLS(
            port: tlsListen.port, certificateFile: certificate, keyFile: key, allowsHTTP2: http2 ?? true)
    }
}
