import HTTPCaching
import HTTPTypes
import Larder
import Locks

/// Passes on the responses of GET requests whose last response could not be stored (``JoinableLoads``), where nothing
/// is stored under the key: in calls on the event loop of the client, over a connection to the origin that is idle
/// there. A ``Load`` takes tasks and suspensions, which cost several times as much as such a request.
///
/// Every request may also be loaded, with the same answer; what is out of the ordinary is. A response that may be
/// stored after all goes to a load.
final class Relay: Sendable {
    let context: CacheContext
    let transport: any RelayingTransport
    let origin: OriginClient
    let failures: OriginFailures
    let joinable: JoinableLoads
    let builder: AnswerBuilder
    let generations: Generations
    /// Requests that were sent this way.
    let count = Atomic<Int>(0)
    private let routes = Mutex([Host: RelayRoute]())

    private struct Host: Hashable {
        let scheme: String
        let authority: String
    }

    private static let routeLimit = 256

    /// Nil where the transport has no such way, or the configuration wants more of each response than to pass it on.
    init?(_ context: CacheContext, _ transport: any Transport, _ origin: OriginClient, _ loader: Loader) {
        let configuration = context.configuration
        guard let transport = transport as? any RelayingTransport, configuration.timeouts.total == nil,
            configuration.secondsToCache == nil, configuration.foldedContentCodings.isEmpty
        else { return nil }
        self.context = context
        self.transport = transport
        self.origin = origin
        failures = loader.failures
        joinable = loader.joinable
        builder = loader.builder
        generations = loader.changes.generations
    }

    /// A request that may go this way; nil for one that has to be loaded.
    /// - Parameters:
    ///   - key: one under which nothing is stored.
    ///   - request: the target, without fields.
    func request(_ key: Key, _ request: () -> HTTPRequest) -> RelayedRequest? {
        let key = String(decoding: key.bytes, as: UTF8.self)
        guard joinable.isPass(key), context.live.withLock({ $0.respectsCacheControl }) else { return nil }
        let request = request()
        guard let route = route(for: request), !failures.isRemembered(route.endpoint),
            let permit = origin.placeAtOnce(route.endpoint)
        else { return nil }
        return RelayedRequest(self, route, permit, key: key, request)
    }

    private func route(for request: HTTPRequest) -> RelayRoute? {
        guard let authority = request.authority, let scheme = request.scheme else { return nil }
        let host = Host(scheme: scheme, authority: authority)
        if let known = routes.withLock({ $0[host] }) { return known }
        guard let route = transport.route(scheme: scheme, authority: authority) else { return nil }
        routes.withLock { routes in
            // Clients choose the names of hosts.
            if routes.count >= Self.routeLimit { routes.removeAll() }
            routes[host] = route
        }
        return route
    }

    /// Whether a response says that those of its key cannot be stored.
    func forbidsStoring(_ response: HTTPResponse, to request: HTTPRequest, at now: Instant) -> Bool {
        if context.rules.forbidsStoring(response) { return true }
        let policy = context.rules.policy(for: response, requestTime: now, responseTime: now)
        return context.rules.storingObstacle(response, to: request, policy: policy) != nil
    }
}

extension HTTPCache {
    /// A GET that may be passed on without a load, with ``RelayedRequest/send(_:_:)``. Nil where it has to be loaded.
    /// On an event loop.
    /// - Parameters:
    ///   - key: one under which ``withPlainHit(_:_:_:values:_:)`` found nothing.
    ///   - request: the target. Its fields have no condition, no range, no `Cache-Control` and no credentials, and are
    ///     not needed here.
    package func relayedRequest(_ key: Key, _ request: @autoclosure () -> HTTPRequest) -> RelayedRequest? {
        isOffline ? nil : relay?.request(key, request)
    }

    /// Requests that were sent without a load so far.
    package var relayedCount: Int { relay?.count.load(ordering: .relaxed) ?? 0 }
}
