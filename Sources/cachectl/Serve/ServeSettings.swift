import ArgumentParser
import CachectlCore
import HTTPTypes
import Larder

/// The settings of `serve`, with those of every server.
///
/// Each is a flag, and a member of the `--config` file under the property's name: `SettingsFile` turns members into
/// flags, which are parsed here. To add a setting, add a property, which checks the value, and use it in `ServeSetup`.
/// A setting that is not given is nil; the defaults are in `ServeSetup`, and in the help.
struct ServeSettings: ParsableArguments {
    // MARK: Where requests come from and go

    @Option(
        help: ArgumentHelp(
            "Origin server: URL for all hosts, or HOST=URL for one host; repeatable.", valueName: "url"),
        transform: OriginArgument.parse)
    var origin: [OriginArgument] = []

    @OptionGroup var server: ServerSettings

    @Flag(
        inversion: .prefixedNo, exclusivity: .chooseLast,
        help: "Forward proxy: send requests to the server that their URL names. Default: no.")
    var forward: Bool?

    @Flag(
        inversion: .prefixedNo, exclusivity: .chooseLast,
        help: "Pass the client's Host field to the origin. Default: yes.")
    var passHost: Bool?

    @Flag(inversion: .prefixedNo, exclusivity: .chooseLast, help: "Offer HTTP/2 on the TLS port. Default: yes.")
    var http2: Bool?

    @Flag(
        inversion: .prefixedNo, exclusivity: .chooseLast,
        help: "Use HTTP/2 with https origins that offer it. Default: no.")
    var originHTTP2: Bool?

    @Flag(inversion: .prefixedNo, exclusivity: .chooseLast, help: "Allow CONNECT. Default: no.")
    var tunnel: Bool?

    @Option(
        help: ArgumentHelp("Port that CONNECT may reach; repeatable. Default: 443.", valueName: "n"),
        transform: { try CountArgument.parse($0, in: 1...65_535) })
    var tunnelPort: [Int] = []

    // MARK: What is stored

    @Option(
        help: ArgumentHelp("The cache's name in Cache-Status. Default: larder.", valueName: "name"),
        transform: CacheNameArgument.parse)
    var name: String?

    @Flag(inversion: .prefixedNo, exclusivity: .chooseLast, help: "Accept PURGE. Default: yes.")
    var purge: Bool?

    @Option(
        help: ArgumentHelp("Bearer token that allows PURGE from any address.", valueName: "token"),
        transform: PurgeTokenArgument.parse)
    var purgeToken: String?

    @Option(
        help: ArgumentHelp(
            "Content coding to keep in Accept-Encoding, preferred first; repeatable. Default: use the field as it is.",
            valueName: "coding"),
        transform: ContentCodingArgument.parse)
    var foldEncoding: [String] = []

    @Option(
        help: ArgumentHelp(
            "Fetch ranges of large responses in slices of this size. Default: exactly as requested.",
            valueName: "size"),
        transform: { try SizeArgument.parse($0, in: .kibibytes(64) ... .mebibytes(16)) })
    var slice: ByteCount?

    @Option(
        help: ArgumentHelp(
            "How stale a response may be when it is served because its origin cannot be reached. Default: 1d.",
            valueName: "duration"),
        transform: DurationArgument.parse)
    var staleLimit: Duration?

    @Flag(
        inversion: .prefixedNo, exclusivity: .chooseLast,
        help: "Serve a stale response in place of every 5xx, as if the origin could not be reached. Default: no.")
    var staleOnError: Bool?

    @Option(
        help: ArgumentHelp(
            "Whether to store a response with Set-Cookie: explicit (if it states that it is fresh), never, or ignore "
                + "(as any other). Default: explicit.",
            valueName: "policy"))
    var setCookie: SetCookieArgument?

    @Option(
        help: ArgumentHelp(
            "Field that a 304 does not change in a stored response, such as Content-Encoding; repeatable.",
            valueName: "name"),
        transform: KeptFieldArgument.parse)
    var keepField: [HTTPField.Name] = []

    @Flag(
        inversion: .prefixedNo, exclusivity: .chooseLast,
        help: "Take the Age field at its word and ignore Date, for origins whose clock is wrong. Default: no.")
    var trustAge: Bool?

    @Flag(
        inversion: .prefixedNo, exclusivity: .chooseLast,
        help: "Store text compressed, and send it so to clients that accept gzip. Default: no.")
    var compress: Bool?

    // MARK: Limits

    @Option(
        help: ArgumentHelp("Timeout for connecting to an origin. Default: 10s.", valueName: "duration"),
        transform: DurationArgument.parseTimeout)
    var connectTimeout: Duration?

    @Option(
        help: ArgumentHelp(
            "Timeout for the response of an origin, and for each part of its body. Default: 60s.", valueName: "duration"
        ),
        transform: DurationArgument.parseTimeout)
    var readTimeout: Duration?

    @Option(
        help: ArgumentHelp("Timeout for idle client connections. Default: 75s.", valueName: "duration"),
        transform: DurationArgument.parseTimeout)
    var idleTimeout: Duration?

    @Option(
        help: ArgumentHelp("Timeout for the head of a request. Default: 10s.", valueName: "duration"),
        transform: DurationArgument.parseTimeout)
    var headTimeout: Duration?

    @Option(
        help: ArgumentHelp("Maximum size of a request's head. Default: 64KiB.", valueName: "size"),
        transform: { try SizeArgument.parse($0, in: .kibibytes(1) ... .mebibytes(16)) })
    var maxHead: ByteCount?

    @Option(
        help: ArgumentHelp(
            "Maximum size of the head of an origin's response; one field for each 256 bytes of it, or 256. Default: 64KiB.",
            valueName: "size"),
        transform: { try SizeArgument.parse($0, in: .kibibytes(1) ... .mebibytes(16)) })
    var maxResponseHead: ByteCount?

    @Option(
        help: ArgumentHelp("Maximum size of a request's content. Default: 1GiB.", valueName: "size"),
        transform: SizeArgument.parse)
    var maxBody: ByteCount?

    @Option(
        help: ArgumentHelp(
            "Maximum number of connections per client address (IPv6: per /64). Default: 4096.", valueName: "n"),
        transform: { try CountArgument.parse($0, in: 1 ... .max) })
    var maxClientConnections: Int?

    @Option(
        help: ArgumentHelp(
            "Maximum number of concurrent requests to origins per client. Default: 128.", valueName: "n"),
        transform: { try CountArgument.parse($0, in: 1 ... .max) })
    var maxClientRequests: Int?

    @Flag(
        inversion: .prefixedNo, exclusivity: .chooseLast,
        help: "Apply the limits per client to this machine too. Do not use behind a local proxy. Default: no.")
    var limitLoopback: Bool?

    @Option(
        help: ArgumentHelp("Timeout for the whole content of a request. Default: 6h.", valueName: "duration"),
        transform: DurationArgument.parseTimeout)
    var contentTimeout: Duration?

    @Option(
        help: ArgumentHelp("Timeout for a client to read a response. Default: none.", valueName: "duration"),
        transform: DurationArgument.parseTimeout)
    var responseTimeout: Duration?

    @Option(
        help: ArgumentHelp("Timeout for a request in the queue of an origin. Default: 10s.", valueName: "duration"),
        transform: DurationArgument.parseTimeout)
    var queueTimeout: Duration?

    @Option(
        help: ArgumentHelp("Timeout for a whole request to an origin. Default: none.", valueName: "duration"),
        transform: DurationArgument.parseTimeout)
    var totalTimeout: Duration?
}
