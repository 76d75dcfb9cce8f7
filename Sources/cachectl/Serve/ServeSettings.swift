import ArgumentParser
import CachectlCore
import Larder
import LarderGateway

/// The settings of `serve`: the one table of them.
///
/// Each is a flag, and a member of the file of `--config` under the property's name: `SettingsFile` turns a member into the
/// flag and has it read here. So a setting is added by a property, which checks its value, and its use in `ServeSetup`. What
/// has no value on the command line is nil; defaults stand in `ServeSetup` and the help.
struct ServeSettings: ParsableArguments {
    // MARK: Where requests come from and go

    @Option(
        help: ArgumentHelp(
            "Where requests go: URL for all hosts, or HOST=URL for one; may be given several times.", valueName: "url"),
        transform: OriginArgument.parse)
    var origin: [OriginArgument] = []

    @Option(
        help: ArgumentHelp("Address and port; port 0 takes a free one. Default: 127.0.0.1:8080.", valueName: "address"),
        transform: AddressArgument.parse)
    var listen: AddressArgument?

    @Flag(
        inversion: .prefixedNo, exclusivity: .chooseLast,
        help: "Forward proxy: requests for a whole URL go where it says. Default: no.")
    var forward: Bool?

    @Flag(inversion: .prefixedNo, exclusivity: .chooseLast, help: "Send the client's Host to the origin. Default: yes.")
    var passHost: Bool?

    @Option(
        help: ArgumentHelp("Address and port of /metrics, /healthz and a status page.", valueName: "address"),
        transform: AddressArgument.parse)
    var admin: AddressArgument?

    @Option(
        help: ArgumentHelp("Address and port for TLS.", valueName: "address"), transform: AddressArgument.parse)
    var tlsListen: AddressArgument?

    @Option(help: ArgumentHelp("Certificate chain, PEM.", valueName: "file"), completion: .file())
    var certificate: String?

    @Option(help: ArgumentHelp("Private key, PEM.", valueName: "file"), completion: .file())
    var key: String?

    @Flag(inversion: .prefixedNo, exclusivity: .chooseLast, help: "Offer HTTP/2 on the TLS port. Default: yes.")
    var http2: Bool?

    @Flag(
        inversion: .prefixedNo, exclusivity: .chooseLast,
        help: "Speak HTTP/2 with https origins that offer it. Default: no.")
    var originHTTP2: Bool?

    @Flag(inversion: .prefixedNo, exclusivity: .chooseLast, help: "Allow CONNECT. Default: no.")
    var tunnel: Bool?

    @Option(
        help: ArgumentHelp("A port that CONNECT may reach; may be given several times. Default: 443.", valueName: "n"),
        transform: { try CountArgument.parse($0, in: 1...65_535) })
    var tunnelPort: [Int] = []

    // MARK: What is stored

    @Option(
        help: ArgumentHelp(
            "Byte budget of the store, or 'unlimited'. Default: the store's; of one without, 80 % of what is free on the disk.",
            valueName: "size"),
        transform: SizeArgument.parseBudget)
    var budget: ByteCount?

    @Option(
        help: ArgumentHelp("The cache's name in Cache-Status. Default: larder.", valueName: "name"),
        transform: CacheNameArgument.parse)
    var name: String?

    @Flag(inversion: .prefixedNo, exclusivity: .chooseLast, help: "Answer PURGE. Default: yes.")
    var purge: Bool?

    @Option(help: ArgumentHelp("Clients that send this as a bearer token may PURGE from anywhere.", valueName: "token"))
    var purgeToken: String?

    @Option(
        help: ArgumentHelp(
            "A content coding that counts in Accept-Encoding, the best first; may be given several times. Default: the field counts as it is.",
            valueName: "coding"))
    var foldEncoding: [String] = []

    @Option(
        help: ArgumentHelp(
            "Fetch ranges of large responses in whole slices of this size. Default: as they are asked for.",
            valueName: "size"),
        transform: { try SizeArgument.parse($0, in: .kibibytes(64) ... .gibibytes(1)) })
    var slice: ByteCount?

    // MARK: Logs

    @Option(
        help: ArgumentHelp("Write a line for each request here; - for standard output.", valueName: "file"),
        completion: .file())
    var accessLog: String?

    @Option(help: ArgumentHelp("Form of the access log. Default: common.", valueName: "form"))
    var logFormat: LogFormatArgument?

    @Option(
        help: ArgumentHelp(
            "Least severe messages to print on standard error. Default: warning.",
            valueName: "level"))
    var logLevel: LogLevelArgument?

    // MARK: Limits

    @Option(
        help: ArgumentHelp("Event loops, 1 ... 256. Default: one for each core.", valueName: "n"),
        transform: { try CountArgument.parse($0, in: 1...256) })
    var threads: Int?

    @Option(
        help: ArgumentHelp("Until a connection to an origin must stand. Default: 10s.", valueName: "duration"),
        transform: DurationArgument.parseTimeout)
    var connectTimeout: Duration?

    @Option(
        help: ArgumentHelp("What an origin may take to answer. Default: 60s.", valueName: "duration"),
        transform: DurationArgument.parseTimeout)
    var readTimeout: Duration?

    @Option(
        help: ArgumentHelp("What a client may keep an idle connection. Default: 75s.", valueName: "duration"),
        transform: DurationArgument.parseTimeout)
    var idleTimeout: Duration?

    @Option(
        help: ArgumentHelp("What a client may take to send a head. Default: 10s.", valueName: "duration"),
        transform: DurationArgument.parseTimeout)
    var headTimeout: Duration?

    @Option(
        help: ArgumentHelp("What running answers get at the end. Default: 10s.", valueName: "duration"),
        transform: DurationArgument.parseTimeout)
    var drain: Duration?

    @Option(
        help: ArgumentHelp("Largest head of a request. Default: 64KiB.", valueName: "size"),
        transform: { try SizeArgument.parse($0, in: .kibibytes(1) ... .mebibytes(16)) })
    var maxHead: ByteCount?

    @Option(
        help: ArgumentHelp("Largest content of a request. Default: 1GiB.", valueName: "size"),
        transform: SizeArgument.parse)
    var maxBody: ByteCount?

    @Option(
        help: ArgumentHelp("Client connections at once. Default: 16384.", valueName: "n"),
        transform: { try CountArgument.parse($0, in: 1 ... .max) })
    var maxConnections: Int?

    @Option(
        help: ArgumentHelp("Client connections of one address, or IPv6 /64. Default: 4096.", valueName: "n"),
        transform: { try CountArgument.parse($0, in: 1 ... .max) })
    var maxClientConnections: Int?

    @Option(
        help: ArgumentHelp("Requests of one client that origins are asked for. Default: 128.", valueName: "n"),
        transform: { try CountArgument.parse($0, in: 1 ... .max) })
    var maxClientRequests: Int?

    @Flag(
        inversion: .prefixedNo, exclusivity: .chooseLast,
        help: "Limit clients on this machine as others; not with a proxy in front. Default: no.")
    var limitLoopback: Bool?

    @Option(
        help: ArgumentHelp(
            "Memory for what waits for clients and origins; beyond it requests are refused. Default: 512MiB.",
            valueName: "size"),
        transform: { try SizeArgument.parse($0, in: .mebibytes(1) ... .gibibytes(1_024)) })
    var memory: ByteCount?

    @Option(
        help: ArgumentHelp("What all content of a request may take. Default: 6h.", valueName: "duration"),
        transform: DurationArgument.parseTimeout)
    var contentTimeout: Duration?

    @Option(
        help: ArgumentHelp("What a client may take to read a response. Default: no limit.", valueName: "duration"),
        transform: DurationArgument.parseTimeout)
    var responseTimeout: Duration?

    @Option(
        help: ArgumentHelp("What a request may wait for its turn at an origin. Default: 10s.", valueName: "duration"),
        transform: DurationArgument.parseTimeout)
    var queueTimeout: Duration?

    @Option(
        help: ArgumentHelp("What a request to an origin may take in all. Default: no limit.", valueName: "duration"),
        transform: DurationArgument.parseTimeout)
    var totalTimeout: Duration?

    @Option(
        help: ArgumentHelp(
            "Memory for large bodies that are asked for again and again. Default: 32MiB.", valueName: "size"),
        transform: SizeArgument.parse)
    var hotBodies: ByteCount?
}
