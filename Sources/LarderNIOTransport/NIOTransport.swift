import HTTPTypes
import HTTPWire
import LarderHTTP
import NIOCore
import NIOPosix
import NIOSSL

/// Carries requests over HTTP/1.1 connections of SwiftNIO, which it keeps for later requests; or over HTTP/2, if that
/// is enabled (``Configuration/http2``) and the server speaks it.
///
/// ```swift
/// let transport = NIOTransport()
/// let response = try await transport.send(TransportRequest(head: request))
/// for try await piece in response.body { ... }
/// await transport.close()
/// ```
///
/// It owns its connections; the event loops belong to its caller. Safe to use from many tasks at the same time.
///
/// - A kept connection that turns out closed before a byte of the request went out is replaced. One that closes after
///   that and before a byte of the response costs a second attempt, on a new connection, if the request is idempotent
///   and its content can be read again (RFC 9112 section 9.3.1); other requests fail
///   (`TransportError.lostKeptConnection`). A server that reports that it did not process the request (RFC 9113 section
///   8.7) also causes a second attempt, if the content can be read again. Nothing else is sent twice.
/// - The content of a response is read up to 128 KiB ahead of its reader, over HTTP/2 up to 256 KiB. Once the server
///   has closed the connection, everything that the system holds is read.
/// - A final response that arrives while the request's content is still being sent is delivered; no more content is
///   sent, and the connection is not used again.
/// - With `Expect: 100-continue`, content of more than 64 KiB, or that cannot be read twice, is sent when the server
///   asks for it, or has not answered for a second.
/// - The transport sets the fields that belong to one connection, and `Content-Length` and `Transfer-Encoding`: those
///   in a request are ignored.
public final class NIOTransport: Transport {
    let configuration: Configuration
    let pool: ConnectionPool
    let connector: Connector
    let held = HeldBytes()

    /// Makes a transport; connections are opened when they are needed.
    ///
    /// A TLS configuration that cannot be used, for instance with unreadable trust roots, fails when a request needs
    /// TLS.
    ///
    /// - Parameter configuration: limits, event loops, TLS, proxy; it cannot be changed later.
    public init(_ configuration: Configuration = Configuration()) {
        self.configuration = configuration
        pool = ConnectionPool(
            connectionsPerHost: max(1, configuration.connectionsPerHost),
            waitingPerHost: max(0, configuration.waitingPerHost),
            sessionsPerHost: configuration.http2 ? max(1, configuration.http2ConnectionsPerHost) : 0)
        connector = Connector(configuration, pool)
    }

    /// Sends a request.
    ///
    /// - Parameter request: with scheme, authority and path. The transport sets `Content-Length`, `Transfer-Encoding`
    ///   and fields of one connection.
    /// - Returns: the final response when its head has arrived. Its body has to be read to the end or dropped: until
    ///   then it takes a connection, or a stream of one.
    /// - Throws: `TransportError`; its `mayHaveBeenSeen` is true if the server may have acted on the request.
    public func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        let target = try target(of: request)
        let message = try await RequestMessage(request, for: target.proxy)
        do throws(TransportError) {
            return try await send(message, request, to: target.hop, isRepetition: false)
        } catch {
            let isHarmless = error.lostKeptConnection && message.isIdempotent || error.isRefusal
            guard isHarmless, message.isReplayable, !Task.isCancelled else { throw error }
            return try await send(message, request, to: target.hop, isRepetition: true)
        }
    }

    /// - Parameter isRepetition: takes no kept connection: all that are left from the same time may be closed.
    private func send(
        _ message: RequestMessage, _ request: TransportRequest, to hop: Endpoint, isRepetition: Bool
    ) async throws(TransportError) -> TransportResponse {
        let deadline = NIODeadline.now() + TimeAmount(request.timeouts.connect)
        while true {
            let (connection, isKept) = try await connection(to: hop, deadline, isNew: isRepetition)
            let exchange = Exchange(
                message, request.timeouts, endpoint: hop, connection: connection, isKept: isKept, held: held)
            var event = try await connection.start(exchange)
            while case .informational(let head) = event {
                await request.onInformational?(head)
                event = try await connection.nextHead(exchange)
            }
            switch event {
            case .final(let head, let length, let piece):
                return TransportResponse(head: head.response, body: TransportBody(exchange, length: length, piece))
            case .stale where isKept: continue
            case .stale, .informational:
                throw TransportError(
                    .closed, mayHaveBeenSeen: false, endpoint: "\(hop)", "\(hop) closed the connection at once")
            }
        }
    }

    /// The endpoint to which connections are made, or tunnels through the proxy.
    ///
    /// - Parameter request: the request that will be sent.
    /// - Returns: scheme, host and port in lower case; the authority of the request if it cannot be sent.
    public func endpoint(for request: TransportRequest) -> String {
        guard let endpoint = try? endpoint(of: request) else { return request.head.authority ?? "" }
        return "\(endpoint.isTLS ? "https" : "http")://\(endpoint)".lowercased()
    }

    /// Memory of responses under way, in bytes: content that was read ahead and waits, and 64 KiB as a read buffer.
    public var heldBytes: Int { held.count }

    /// Closes unused connections, and those in use when their responses end. Later requests, and those that wait for a
    /// connection, fail with `TransportError.Code.cannotConnect`.
    public func close() async {
        let (idle, sessions) = pool.close()
        for session in sessions { session.closeWhenUnused() }
        for connection in idle { await connection.close() }
    }

    // MARK: Parts

    /// Where a request goes: to the endpoint, perhaps by a tunnel, or to the proxy as such.
    private func target(of request: TransportRequest) throws(TransportError) -> (hop: Endpoint, proxy: Proxy?) {
        let endpoint = try endpoint(of: request)
        // A proxy connects to where the URL says, so any other endpoint takes a tunnel.
        guard let proxy = configuration.proxy, proxy.serves(endpoint), !endpoint.isTLS, request.destination == nil,
            configuration.route == nil
        else { return (endpoint, nil) }
        return (proxy.endpoint, proxy)
    }

    private func endpoint(of request: TransportRequest) throws(TransportError) -> Endpoint {
        let head = request.head
        guard let scheme = head.scheme?.lowercased(), scheme == "http" || scheme == "https" else {
            throw .invalidRequest("the scheme is '\(head.scheme ?? "")': http or https can be sent")
        }
        guard let authority = head.authority, let place = HostAndPort(authority) else {
            throw .invalidRequest("the authority '\(head.authority ?? "")' is not a host with or without a port")
        }
        guard head.method != .connect else { throw .invalidRequest("CONNECT makes a tunnel, which is not a response") }
        if let destination = request.destination {
            guard let host = HostAndPort(destination.host) else {
                throw .invalidRequest("the destination '\(destination.host)' is not a host")
            }
            return Endpoint(host: host.host, port: destination.port, isTLS: destination.scheme == "https")
        }
        if let route = configuration.route { return route(scheme, authority) }
        let isTLS = scheme == "https"
        return Endpoint(host: place.host, port: place.port ?? (isTLS ? 443 : 80), isTLS: isTLS)
    }

    /// A kept connection, or a new one.
    private func connection(
        to hop: Endpoint, _ deadline: NIODeadline, isNew: Bool
    ) async throws(TransportError) -> (Connection, isKept: Bool) {
        // A task that runs on an event loop is nearest to the connections of that one.
        let loop = MultiThreadedEventLoopGroup.currentEventLoop ?? configuration.eventLoopGroup.any()
        while true {
            let opened: ConnectionOpening.Outcome
            switch try await pool.acquire(hop, deadline, isNew: isNew, timer: loop) {
            case .kept(let connection): return (connection, true)
            case .stream(let session):
                if let connection = await session.open() { return (connection, true) }
                // It has ended meanwhile.
                pool.retire(session)
                continue
            case .place:
                do throws(TransportError) {
                    opened = try await connector.connect(to: hop, on: loop, deadline)
                } catch {
                    // The origin takes no further connection: a stream of one that there is has to do.
                    guard error.code != .cancelled, pool.hasSession(hop), .now() < deadline else { throw error }
                    loop.scheduleTask(in: PoolState.Host.rest) { [pool] in pool.lookAgain(hop) }
                    continue
                }
            }
            switch opened {
            case .connection(let connection): return (connection, false)
            case .session(let session):
                if let connection = await session.open() { return (connection, false) }
                throw TransportError(
                    .closed, mayHaveBeenSeen: false, endpoint: "\(hop)", "\(hop) closed the connection at once")
            }
        }
    }
}

extension TransportBody {
    /// - Parameter piece: the content that came with the head.
    init(_ exchange: Exchange, length: Int64?, _ piece: Exchange.Piece) {
        if piece.isLast, length == Int64(piece.bytes.count) {
            self.init(whole: piece.bytes)
            return
        }
        let reader = BodyReader(exchange, piece)
        self.init(length: length) { () throws(TransportError) in try await reader.next() }
    }
}

extension TransportError {
    /// The server said that it did not process the request, or had said before that it would not.
    fileprivate var isRefusal: Bool { code == .closed && !mayHaveBeenSeen }
}
