/// What a client may use up before it is refused or cut off.
public struct GatewayLimits: Sendable, Hashable {
    /// The head of a request, in bytes; 431 beyond. Default: 64 KiB.
    public var headBytes = 64 << 10
    /// The request line, in bytes; 414 beyond. Default: 16 KiB.
    public var requestLineBytes = 16 << 10
    /// The number of field lines of a request; 431 beyond. Default: 256.
    public var fieldCount = 256
    /// The content of a request, in bytes; 413 beyond. Default: 1 GiB.
    public var bodyBytes: Int64 = 1 << 30
    /// Client connections at once; more get 503 and are closed. Fewer where the process may not open as many files: see
    /// ``DescriptorLimit``. Default: 16,384.
    public var connections = 16_384
    /// Connections at once from one client, which is an IPv4 address or an IPv6 network of 64 bits; more get 503 and
    /// are closed. Default: 4,096.
    public var connectionsPerClient = 4_096
    /// Requests that one client may have at origins at once; more get 429. Answers from the store do not count.
    /// Default: 128, an eighth of what one origin gets at once (`HTTPCacheConfiguration.requestsPerHost` of `cachectl
    /// serve`).
    public var requestsPerClient = 128
    /// Whether limits for a client also apply to clients on this machine. Default: false, because a proxy in front, on
    /// the same machine, sends the requests of all its clients.
    public var limitsLoopback = false
    /// Memory that may wait for clients and origins, in bytes: content on its way to an origin, and answers that
    /// clients have not taken. From 7/8 of it on, the connections that hold the most and take the least are closed; at
    /// the limit, requests that need an origin get 503.
    /// What the kernel, the store and ``GatewayConfiguration/hotBodyBytes`` take comes on top. At least 1 MiB. Default:
    /// 512 MiB.
    public var memoryBytes = 512 << 20
    /// Requests on one connection, which is closed after the last. Default: 100,000.
    public var requestsPerConnection = 100_000
    /// From the first byte of a head to its last; 408 beyond. Default: 10 s.
    public var headTimeout = Duration.seconds(10)
    /// Without a request on an open connection, which is then closed. Default: 75 s.
    public var idleTimeout = Duration.seconds(75)
    /// Without a byte of a request's content that the gateway waits for; for a response see ``minimumRate``. Default:
    /// 30 s.
    public var stallTimeout = Duration.seconds(30)
    /// Least rate of a request's content, and of a response, in bytes a second. Of content over any ``stallTimeout``;
    /// of a response a client may be 96 KiB and ``stallTimeout`` behind, as its system tells of what was read in steps
    /// of that size: one that reads nothing at all is closed after some 13 minutes with the defaults, sooner with a
    /// higher rate. Default: 128.
    public var minimumRate: Int64 = 128
    /// From a request's head to the last byte of its content; 408 beyond. Default: 6 hours.
    public var contentTimeout = Duration.seconds(6 * 3_600)
    /// From a request's head to the last byte of its response, for a client that is waited for then; the connection is
    /// closed. Default: nil, none beyond ``minimumRate``.
    public var responseTimeout: Duration?
    /// Without a byte in a tunnel, which is then closed. Default: 10 minutes.
    public var tunnelIdleTimeout = Duration.seconds(600)
    /// Streams at once on an HTTP/2 connection. Default: 100.
    public var streams = 100
    /// Responses in memory for one HTTP/2 connection whose client does not take them, in bytes; an open file counts 16
    /// KiB. Beyond it, further requests on the connection wait. One piece or stored body may go over it. Default: 512
    /// KiB.
    public var heldBytes = 512 << 10

    /// The defaults.
    public init() {}
}
