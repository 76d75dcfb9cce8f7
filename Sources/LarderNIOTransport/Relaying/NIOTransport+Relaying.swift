import HTTPTypes
import HTTPWire
import LarderHTTP
import NIOCore
import NIOPosix

extension NIOTransport: RelayingTransport {
    package func route(scheme: String, authority: String) -> RelayRoute? {
        guard configuration.proxy == nil, configuration.route == nil, let place = HostAndPort(authority) else {
            return nil
        }
        let isTLS = scheme == "https"
        let endpoint = Endpoint(host: place.host, port: place.port ?? (isTLS ? 443 : 80), isTLS: isTLS)
        return RelayRoute(
            server: endpoint.host, port: endpoint.port, isTLS: isTLS, host: authority,
            endpoint: "\(scheme)://\(endpoint)".lowercased())
    }

    package func relay(
        _ head: [UInt8], to route: RelayRoute, _ timeouts: Timeouts,
        _ receive: @escaping @Sendable (RelayEvent) -> Void
    ) -> (any RelayedExchange)? {
        let endpoint = Endpoint(host: route.server, port: route.port, isTLS: route.isTLS)
        guard let loop = MultiThreadedEventLoopGroup.currentEventLoop else { return nil }
        let relayed = CalledExchange(endpoint, loop, receive)
        if let connection = pool.takeIdle(endpoint, on: loop) {
            relayed.start(exchange(head, timeouts, connection, isKept: true))
            return relayed
        }
        guard pool.takePlace(endpoint) else { return nil }
        relayed.attempt = connector.connect(to: endpoint, on: loop, .now() + TimeAmount(timeouts.connect)) { outcome in
            relayed.opened(outcome) { self.exchange(head, timeouts, $0, isKept: false) }
        }
        return relayed
    }

    private func exchange(_ head: [UInt8], _ timeouts: Timeouts, _ connection: Connection, isKept: Bool) -> Exchange {
        Exchange(
            RequestMessage(relaying: head), timeouts, endpoint: connection.endpoint, connection: connection,
            isKept: isKept, held: held)
    }
}

/// An exchange whose waiter is a call on the event loop.
// SAFETY: what changes is touched on the connection's event loop only, where `relay` starts it.
private final class CalledExchange: RelayedExchange, @unchecked Sendable {
    private let endpoint: NIOTransport.Endpoint
    private let loop: any EventLoop
    /// Nil until there is a connection.
    private var exchange: Exchange?
    /// Opens the connection, where none was idle.
    var attempt: ConnectionAttempt?
    /// Nil when all has come, or nothing more is wanted.
    private var receive: (@Sendable (RelayEvent) -> Void)?

    init(
        _ endpoint: NIOTransport.Endpoint, _ loop: any EventLoop, _ receive: @escaping @Sendable (RelayEvent) -> Void
    ) {
        self.endpoint = endpoint
        self.loop = loop
        self.receive = receive
    }

    func start(_ exchange: Exchange) {
        self.exchange = exchange
        exchange.connection.handler.start(exchange, .call { self.take($0, of: exchange) })
    }

    func opened(_ outcome: ConnectionAttempt.Outcome, _ exchange: (Connection) -> Exchange) {
        switch outcome {
        case .success(.connection(let connection)):
            if receive == nil { connection.closeSoon() } else { start(exchange(connection)) }
        case .success(.session): end(closed(isKept: false))
        case .failure(let error): end(error)
        }
    }

    func cancel() {
        receive = nil
        if let exchange {
            exchange.connection.handler.abort(exchange, .cancelled(endpoint, mayHaveBeenSeen: true))
        } else {
            attempt?.end(.failure(.cancelled(endpoint, mayHaveBeenSeen: false)))
        }
    }

    func execute(_ body: @escaping @Sendable () -> Void) { loop.execute(body) }

    func executeLater(_ body: @escaping @Sendable () -> Void) { loop.executeInNextTurn(body) }

    private func take(_ result: Result<Exchange.HeadEvent, TransportError>, of exchange: Exchange) {
        guard let receive else { return }
        switch result {
        case .success(.informational(let head)):
            receive(.informational(head))
            // Not within this call: an origin may send thousands at once.
            loop.execute {
                guard self.receive != nil else { return }
                exchange.connection.handler.nextHead(exchange, .call { self.take($0, of: exchange) })
            }
        case .success(.final(let head, let length, let piece)):
            self.receive = nil
            receive(.response(head, TransportBody(exchange, length: length, piece)))
        case .success(.stale): end(closed(isKept: exchange.isKept))
        case .failure(let error): end(error)
        }
    }

    private func closed(isKept: Bool) -> TransportError {
        TransportError(
            .closed, mayHaveBeenSeen: false, lostKeptConnection: isKept, endpoint: "\(endpoint)",
            "\(endpoint) closed the connection at once")
    }

    private func end(_ error: TransportError) {
        defer { receive = nil }
        receive?(.failure(error))
    }
}
