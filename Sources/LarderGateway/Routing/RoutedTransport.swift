import HTTPTypes
import LarderHTTP

/// Connects to the origin that the host of a request is routed to; everything else is the inner transport's.
///
/// The cache of a reverse proxy gets one of these: a stored response is then validated, in the background too, with the
/// server that it came from.
public struct RoutedTransport: Transport {
    let routes: Routes
    let inner: any Transport
    /// The inner transport, where it can relay.
    let relaying: (any RelayingTransport)?

    /// Puts routes before a transport.
    ///
    /// - Parameters:
    ///   - routes: which origin serves which host.
    ///   - inner: carries the requests.
    public init(_ routes: Routes, over inner: any Transport) {
        self.routes = routes
        self.inner = inner
        relaying = inner as? any RelayingTransport
    }

    /// Sends a request to the origin that its host is routed to.
    ///
    /// - Parameter request: its target names the host that the client asked for.
    /// - Returns: the answer of the origin, as the inner transport gives it.
    /// - Throws: what the inner transport throws.
    public func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        try await inner.send(routed(request))
    }

    /// The origin that the host is routed to.
    ///
    /// - Parameter request: the request that will be sent.
    /// - Returns: one name for all hosts of an origin, which share its places.
    public func endpoint(for request: TransportRequest) -> String { inner.endpoint(for: routed(request)) }

    /// The inner transport's.
    public var heldBytes: Int { inner.heldBytes }

    private func routed(_ request: TransportRequest) -> TransportRequest {
        guard let origin = routes.origin(for: request.head.authority ?? "") else { return request }
        var request = request
        if routes.passesHost {
            request.destination = TransportDestination(scheme: origin.scheme, host: origin.host, port: origin.port)
        } else {
            request.head.scheme = origin.scheme
            request.head.authority = origin.authority
        }
        return request
    }
}
