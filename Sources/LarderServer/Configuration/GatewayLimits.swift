/// The resources that clients can use before the gateway refuses requests or closes connections.
public struct GatewayLimits: Sendable, Hashable {
    /// The head of a request, in bytes; 431 beyond. Default: 64 KiB.
    public var headBytes = 64 << 10
    /// The request line, in bytes; 414 beyond. Default: 16 KiB.
    public var requestLineBytes = 16 << 10
    /// The number of field lines of a request; 431 beyond. Default: 256.
    public var fieldCount = 256
    /// The content of a request, in bytes; 413 beyond. Default: 1 GiB.
    public var bodyBytes: Int64 = 1 << 30
    /// Simultaneous client connections; more get 503 and are closed. The limit is lower if the process cannot open as
    /// many files: see ``DescriptorLimit``. Default: 16,384.
    public var connections = 16_384
    /// Simultaneous connections from one client, which is an IPv4 address or an IPv6 network of 64 bits; more get 503
    /// and are closed. Default: 4,096.
    public var connectionsPerClient = 4_096
    /// Simultaneous requests of one client at origins; more get 429. Answers from the store do not count. Default: 128,
    /// an eighth of the simultaneous requests that one origin gets (`HTTPCacheConfiguration.requestsPerHost` of
    /// `cachectl serve`).
    public var requestsPerClient = 128
    /// Applies the limits for a client to clients on this machine as well. Default: false, because a proxy in front, on
    /// the same machine, sends the requests of all its clients.
    public var limitsLoopback = false
    /// Memory for data that waits for clients and origins, in bytes: content on its way to an origin, and answers that
    /// clients have not read. Above 7/8 of it, the gateway closes the connections that hold the most and read the
    /// least; at the limit, requests that need an origin get 503. The memory of the kernel and of the store, large
    /// bodies that are requested often included (`Configuration.memoryLimit`), does not count. At least 1 MiB. Default:
    /// 512 MiB.
    public var memoryBytes = 512 << 20
    /// Requests on one connection. The gateway closes it after the last. Default: 100,000.
    public var requestsPerConnection = 100_000
    /// The time from the first byte of a head to its last; 408 beyond. Default: 10 s.
    public var headTimeout = Duration.seconds(10)
    /// The time without a request on an open connection before the gateway closes it. Default: 75 s.
    public var idleTimeout = Duration.seconds(75)
    /// The time without a byte of a request's content that the gateway waits for. For a response see ``minimumRate``.
    /// Default: 30 s.
    public var stallTimeout = Duration.seconds(30)
    /// The least rate of a request's content, and of a response, in bytes a second. The rate of content is measured
    /// over any ``stallTimeout``. A client may be 96 KiB and ``stallTimeout`` behind with a response, because its
    /// system reports what it read in steps of that size: with the defaults, a client that reads nothing at all is
    /// disconnected after some 13 minutes, and sooner with a higher rate. Default: 128.
    public var minimumRate: Int64 = 128
    /// The time from a request's head to the last byte of its content; 408 beyond. Default: 6 hours.
    public var contentTimeout = Duration.seconds(6 * 3_600)
    /// The time from a request's head to the last byte of its response, while the gateway waits for the client; beyond
    /// it the connection is closed. Default: nil, no limit other than ``minimumRate``.
    public var responseTimeout: Duration?
    /// The time without a byte in a tunnel before the gateway closes it. Default: 10 minutes.
    public var tunnelIdleTimeout = Duration.seconds(600)
    /// Simultaneous streams on an HTTP/2 connection. Default: 100.
    public var streams = 100
    /// Memory for responses of one HTTP/2 connection whose client does not read them, in bytes; an open file counts as
    /// 16 KiB. Beyond it, further requests on the connection wait. One piece or one stored body may exceed it. Default:
    /// 512 KiB.
    public var heldBytes = 512 << 10

    /// The defaults.
    public init() {}
}
