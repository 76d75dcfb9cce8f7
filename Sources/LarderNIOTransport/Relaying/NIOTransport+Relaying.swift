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
        guard let loop = MultiThreadedEventLoopGroup.currentEventLoop,
            let connection = pool.takeIdle(endpoint, on: loop)
        else { return nil }
        let exchange = Exchange(
            RequestMessage(relaying: head), timeouts, endpoint: endpoint, connection: connection, isKept: true,
            held: held)
        let relayed = CalledExchange(exchange, receive)
        relayed.start()
        return relayed
    }
}

/// An exchange whose waiter is a call on the event loop.
// SAFETY: what changes is touched on the connection's event loop only, where `relay` starts it.
private final class CalledExchange: RelayedExchange, @unchecked Sendable {
    private let exchange: Exchange
    /// Nil when all has come, or nothing more is wanted.
    private var receive: (@Sendable (RelayEvent) -> Void)?

    init(_ exchange: Exchange, _ receive: @escaping @Sendable (RelayEvent) -> Void) {
        self.exchange = exchange
        self.receive = receive
    }

    private var handler: any ExchangeHandler { exchange.connection.handler }

    func start() { handler.start(exchange, .call { self.take($0) }) }

    func cancel() {
        receive = nil
        handler.abort(exchange, .cancelled(exchange.endpoint, mayHaveBeenSeen: true))
    }

    func execute(_ body: @escaping @Sendable () -> Void) { handler.loop.execute(body) }

    func executeLater(_ body: @escaping @Sendable () -> Void) { handler.loop.executeInNextTurn(body) }

    private func take(_ result: Result<Exchange.HeadEvent, TransportError>) {
        guard let receive else { return }
        switch result {
        case .success(.informational(let head)):
            receive(.informational(head))
            // Not within this call: an origin may send thousands at once.
            handler.loop.execute {
                if self.receive != nil { self.handler.nextHead(self.exchange, .call { self.take($0) }) }
            }
        case .success(.final(let head, let length, let piece)):
            self.receive = nil
            receive(.response(head, TransportBody(exchange, length: length, piece)))
        case .success(.stale):
            end(TransportError(.closed, mayHaveBeenSeen: false, endpoint: "\(exchange.endpoint)", "it was closed"))
        case .failure(let error): end(error)
        }
    }

    private func end(_ error: TransportError) {
        defer { receive = nil }
        receive?(.failure(error))
    }
}
