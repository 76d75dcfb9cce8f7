import LarderHTTP

extension RoutedTransport: RelayingTransport {
    package func route(scheme: String, authority: String) -> RelayRoute? {
        guard let relaying else { return nil }
        guard let origin = routes.origin(for: authority) else {
            return relaying.route(scheme: scheme, authority: authority)
        }
        var route = relaying.route(scheme: origin.scheme, authority: origin.authority)
        if routes.passesHost { route?.host = authority }
        return route
    }

    package func relay(
        _ head: [UInt8], to route: RelayRoute, _ timeouts: Timeouts,
        _ receive: @escaping @Sendable (RelayEvent) -> Void
    ) -> (any RelayedExchange)? {
        relaying?.relay(head, to: route, timeouts, receive)
    }
}
