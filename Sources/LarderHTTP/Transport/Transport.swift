import HTTPCaching
import HTTPTypes

/// Carries requests to the next hop: an origin server, or another proxy.
///
/// A transport knows HTTP, connections and time limits; it caches nothing, follows no redirects and changes neither
/// content nor end-to-end fields. It has to be safe to use from many tasks at the same time.
public protocol Transport: Sendable {
    /// Sends a request and returns when the head of the final response has arrived; its body follows.
    ///
    /// Cancelling the task cancels the request: the connection is closed, and nothing is sent afterwards.
    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse

    /// The server to which a request would be sent, such as `https://example.org` or `http://10.0.0.1:8080`. A cache
    /// counts requests by it (``HTTPCacheConfiguration/requestsPerHost``). Default: the destination, or else scheme and
    /// authority of the target. A transport that sends requests elsewhere has to return that server.
    func endpoint(for request: TransportRequest) -> String

    /// Memory of responses under way, in bytes: bytes that were read ahead, and the room for reading. Default: 0, for a
    /// transport that does not count it.
    var heldBytes: Int { get }
}

extension Transport {
    /// Zero: none are counted.
    public var heldBytes: Int { 0 }

    /// The destination, or else the origin of the target (RFC 9110 section 4.3.1) in its normal form.
    ///
    /// - Parameter request: the request that will be sent.
    /// - Returns: scheme, host and port, such as `http://example.org`; requests to one endpoint share limits.
    public func endpoint(for request: TransportRequest) -> String {
        if let place = request.destination { return "\(place.scheme)://\(place.host.lowercased()):\(place.port)" }
        return CacheRules().cacheKey(for: request.head)?.origin ?? request.head.authority ?? ""
    }
}

/// A request on its way to the next hop.
public struct TransportRequest: Sendable {
    /// Method, scheme (`http` or `https`), authority (host, and port unless it is the default) and path with query;
    /// fields without those that belong to one connection (RFC 9110 section 7.6.1) and without `Host`.
    public var head: HTTPRequest
    /// The content; nil for none.
    public var body: RequestBody?
    /// Called for each interim (1xx) response but 101, in order, before ``Transport/send(_:)`` returns. Default: nil.
    public var onInformational: (@Sendable (HTTPResponse) async -> Void)?
    /// Time limits.
    public var timeouts: Timeouts
    /// The server to connect to in place of the one that the target names; the message stays as it is, with the
    /// target's authority as `Host`. For the origins behind a reverse proxy. Default: nil.
    public var destination: TransportDestination?

    /// Makes a request for the origin that its target names. Each parameter sets the property of its name, and has the
    /// default that the property states.
    public init(
        head: HTTPRequest, body: RequestBody? = nil, timeouts: Timeouts = Timeouts(),
        onInformational: (@Sendable (HTTPResponse) async -> Void)? = nil
    ) {
        self.head = head
        self.body = body
        self.timeouts = timeouts
        self.onInformational = onInformational
    }
}

/// Time limits of one request.
public struct Timeouts: Sendable, Hashable {
    /// Until a connection is established, name lookup and TLS included. Default: 10 s.
    public var connect: Duration
    /// From the end of the request to the head of the response, and between any two pieces of the response's body.
    /// Default: 60 s.
    public var read: Duration
    /// Between two pieces of the request that the connection accepts. Default: 60 s.
    public var write: Duration
    /// Longest wait of a request while its host, or all hosts together, have as many requests as they may
    /// (``HTTPCacheConfiguration/requestsPerHost``). The cache keeps this limit, not the transport. Default: 10 s.
    public var queue: Duration
    /// From the call to the last byte of the response, waiting included; nil for no such limit. The cache keeps this
    /// limit, not the transport. A server that sends a byte from time to time keeps all other limits, but not this one.
    /// Default: nil.
    public var total: Duration?

    /// Makes time limits. Each parameter sets the property of its name, and has the default that the property states.
    public init(
        connect: Duration = .seconds(10), read: Duration = .seconds(60), write: Duration = .seconds(60),
        queue: Duration = .seconds(10), total: Duration? = nil
    ) {
        self.connect = connect
        self.read = read
        self.write = write
        self.queue = queue
        self.total = total
    }
}

/// The answer of the next hop.
public struct TransportResponse: Sendable {
    /// Status and fields as received, all values in order.
    public var head: HTTPResponse
    /// The content without the transfer coding; empty for responses that have none.
    public var body: TransportBody

    /// Makes a response.
    ///
    /// - Parameters:
    ///   - head: status and fields as received.
    ///   - body: the content without the transfer coding.
    public init(head: HTTPResponse, body: TransportBody) {
        self.head = head
        self.body = body
    }
}
