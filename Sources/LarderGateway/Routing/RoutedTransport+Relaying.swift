import LarderHTTP

extension RoutedTransport: RelayingTransport {
    package func route(scheme: String, authority: String) -> RelayRoute? {
        guard let inner = inner as? any RelayingTransport else { return nil }
        guard let origin = routes.origin(for: authority) else {
            return inner.route(scheme: scheme, authority: authority)
        }
        var route = inner.route(scheme: origin.scheme, authority: origin.authority)
        if routes.passesHost { route?.host = authority }
        return route
    }

    package func relay(
        _ head: [UInt8], to route: RelayRoute, _ timeouts: Timeouts,
        _ receive: @escaping @Sendable (RelayEvent) -> Void
    ) -> (any RelayedExchange)? {
        (inner as? any RelayingTransport)?.relay(head, to: route, timeouts, receive)
    }
}
