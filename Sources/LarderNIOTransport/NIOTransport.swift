import HTTPTypes
import HTTPWire
import LarderHTTP
import NIOCore
import NIOSSL

/// Carries requests over HTTP/1.1 connections of SwiftNIO, which it keeps for the next ones.
///
/// ```swift
/// let transport = NIOTransport()
/// let response = try await transport.send(TransportRequest(head: request))
/// for try await piece in response.body { ... }
/// await transport.close()
/// ```
///
/// It owns its connections; the event loops are its caller's. Safe to use from many tasks at once.
///
/// - A request is never sent twice. A kept connection that turns out closed before a byte of the request went out is
///   replaced; one that closes afterwards is ``TransportError/Kind/closed``, and the caller decides.
/// - The content of a response is read up to 256 KiB ahead of who takes it; what the system holds when the server has
///   closed the connection, all of it.
/// - A final response that comes while the request's content is still being sent is delivered; no more content is sent, and
///   the connection is not used again.
/// - `Expect: 100-continue` is sent as any field; the content follows without waiting.
/// - Fields that belong to one connection are the transport's own, as are `Content-Length` and `Transfer-Encoding`: those in
///   a request are passed over.
public final class NIOTransport: Transport {
    private let configuration: Configuration
    let pool: ConnectionPool
    private let connector: Connector

    /// Makes a transport; connections are opened when they are needed.
    ///
    /// A TLS configuration that cannot be used, such as trust roots that cannot be read, shows when a request wants TLS.
    public init(_ configuration: Configuration = Configuration()) {
        self.configuration = configuration
        pool = ConnectionPool(
            connectionsPerHost: max(1, configuration.connectionsPerHost),
            waitingPerHost: max(0, configuration.waitingPerHost))
        connector = Connector(configuration, pool)
    }

    /// Sends a request and returns when the head of the final response is there.
    public func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        let endpoint = try endpoint(of: request)
        let message = try await RequestMessage(request)
        let deadline = NIODeadline.now() + TimeAmount(request.timeouts.connect)
        while true {
            let (connection, isReused) = try await connection(to: endpoint, deadline)
            let exchange = Exchange(message, request, endpoint: endpoint, connection: connection)
            var event = try await connection.start(exchange)
            while case .informational(let head) = event {
                await request.onInformational?(head)
                event = try await connection.nextHead(exchange)
            }
            switch event {
            case .final(let head, let length, let piece):
                let reader = BodyReader(exchange, piece)
                return TransportResponse(
                    head: head,
                    body: TransportBody(length: length) { () throws(TransportError) in try await reader.next() })
            case .stale where isReused: continue
            case .stale, .informational:
                throw TransportError(.closed, mayHaveBeenSeen: false, "\(endpoint) closed the connection at once")
            }
        }
    }

    /// Closes connections that nobody uses, and those in use when their responses end. Requests from now on, and those that
    /// wait for a connection, fail with ``TransportError/Kind/cannotConnect``.
    public func close() async {
        for connection in pool.close() { await connection.close() }
    }

    // MARK: Parts

    private func endpoint(of request: TransportRequest) throws(TransportError) -> Endpoint {
        let head = request.head
        guard let scheme = head.scheme?.lowercased(), scheme == "http" || scheme == "https" else {
            throw .invalidRequest("the scheme is '\(head.scheme ?? "")': http or https can be sent")
        }
        guard let authority = head.authority, let place = HostAndPort(authority) else {
            throw .invalidRequest("the authority '\(head.authority ?? "")' is no host with or without a port")
        }
        guard head.method != .connect else { throw .invalidRequest("CONNECT makes a tunnel, which is no response") }
        if let destination = request.destination {
            guard let host = HostAndPort(destination.host) else {
                throw .invalidRequest("the destination '\(destination.host)' is no host")
            }
            return Endpoint(host: host.host, port: destination.port, isTLS: destination.scheme == "https")
        }
        if let route = configuration.route { return route(scheme, authority) }
        let isTLS = scheme == "https"
        return Endpoint(host: place.host, port: place.port ?? (isTLS ? 443 : 80), isTLS: isTLS)
    }

    /// A kept connection, or a new one.
    private func connection(
        to endpoint: Endpoint, _ deadline: NIODeadline
    ) async throws(TransportError) -> (Connection, isReused: Bool) {
        let loop = configuration.eventLoopGroup.any()
        switch try await pool.lease(endpoint, deadline, timer: loop) {
        case .kept(let connection): return (connection, true)
        case .place: return (try await connector.connect(to: endpoint, on: loop, deadline), false)
        }
    }
}
