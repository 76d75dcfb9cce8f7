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
    /// Client connections at once; more get 503 and are closed. Default: 16,384.
    public var connections = 16_384
    /// Requests on one connection, which is closed after the last. Default: 100,000.
    public var requestsPerConnection = 100_000
    /// From the first byte of a head to its last; 408 beyond. Default: 10 s.
    public var headTimeout = Duration.seconds(10)
    /// Without a request on an open connection, which is then closed. Default: 75 s.
    public var idleTimeout = Duration.seconds(75)
    /// Without a byte of a request's content that the gateway waits for, or without a byte of the response that the client
    /// takes. Default: 30 s.
    public var stallTimeout = Duration.seconds(30)
    /// Least rate of a request's content, and of a response, in bytes a second, over any ``stallTimeout``. Default: 128.
    public var minimumRate: Int64 = 128
    /// Without a byte in a tunnel, which is then closed. Default: 10 minutes.
    public var tunnelIdleTimeout = Duration.seconds(600)
    /// Streams at once on an HTTP/2 connection. Default: 100.
    public var streams = 100
    /// Responses in memory for one HTTP/2 connection whose client does not take them, in bytes; an open file counts 16 KiB.
    /// Beyond it, further requests on the connection wait. One piece or stored body may go over it. Default: 512 KiB.
    public var heldBytes = 512 << 10

    /// The defaults.
    public init() {}
}
