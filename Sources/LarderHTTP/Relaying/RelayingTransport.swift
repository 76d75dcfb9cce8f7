import HTTPTypes
import HTTPWire

/// A transport that also sends a request in a few calls on an event loop, where a task and its suspensions would cost
/// more than the request.
package protocol RelayingTransport: Transport {
    /// Where requests for a host go; nil where only ``Transport/send(_:)`` knows the way.
    func route(scheme: String, authority: String) -> RelayRoute?

    /// Sends a GET without content over a connection of this event loop: an idle one, or one that is opened. Nil,
    /// having done nothing, where both take waiting for others.
    /// - Parameters:
    ///   - head: the request as it goes out, with `Host` and without a field of the connection.
    ///   - receive: called on the event loop, and not after ``RelayedExchange/cancel()``.
    func relay(
        _ head: [UInt8], to route: RelayRoute, _ timeouts: Timeouts,
        _ receive: @escaping @Sendable (RelayEvent) -> Void
    ) -> (any RelayedExchange)?
}

/// Where requests for a host go.
package struct RelayRoute: Sendable {
    /// Name of the server, or its address without brackets.
    package var server: String
    package var port: Int
    package var isTLS: Bool
    /// The value of `Host`.
    package var host: String
    /// The server, as ``Transport/endpoint(for:)`` names it.
    package var endpoint: String

    package init(server: String, port: Int, isTLS: Bool, host: String, endpoint: String) {
        self.server = server
        self.port = port
        self.isTLS = isTLS
        self.host = host
        self.endpoint = endpoint
    }
}

/// What arrives for a request; the last is the response or the failure.
package enum RelayEvent: Sendable {
    case informational(HTTPResponse)
    case response(HeadForm, TransportBody)
    case failure(TransportError)
}

/// A request under way. On its event loop only.
package protocol RelayedExchange: AnyObject, Sendable {
    /// Gives it up: the connection is closed, unless all of the response is there.
    func cancel()

    /// Runs something on its event loop: from any thread.
    func execute(_ body: @escaping @Sendable () -> Void)

    /// Runs something on its event loop when that has looked at its sockets again, so that other requests may go first.
    func executeLater(_ body: @escaping @Sendable () -> Void)
}
