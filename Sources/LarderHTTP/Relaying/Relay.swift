import HTTPCaching
import HTTPTypes
import HTTPWire
import Larder
import Locks

/// Asks the origin for what nothing is stored of, without a task: in calls on the event loop of the client, over a
/// connection of that event loop. A ``Load`` takes tasks and suspensions, which cost several times as much as such a
/// request.
///
/// Every request may also be loaded, with the same answer; what is out of the ordinary is. To others a request on this
/// way is a load, which they may join (``RelayedLoad``), and one that comes later joins it (``RelayedFollower``).
final class Relay: Sendable {
    let context: CacheContext
    let transport: any RelayingTransport
    let origin: OriginClient
    let failures: OriginFailures
    let joinable: JoinableLoads
    let builder: AnswerBuilder
    let changes: StoreChanges
    /// Requests that were sent this way.
    let count = Atomic<Int>(0)
    private let active: ActiveLoads
    private let lookup: Lookup
    /// Whether new responses can be, as far as the configuration tells.
    private let storesAtOnce: Bool
    private let routes = Mutex([Host: RelayRoute]())

    private struct Host: Hashable {
        let scheme: String
        let authority: String
    }

    private static let routeLimit = 256

    /// Nil where the transport has no such way, or the configuration wants more of each response than to pass it on and
    /// store it.
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
        changes = loader.changes
        active = loader.active
        lookup = loader.lookup
        storesAtOnce = configuration.storagePolicy != .memoryOnly && changes.store.isRelaxed
    }

    /// What is done about a request on this way; nil for one that has to be loaded.
    /// - Parameters:
    ///   - key: one under which nothing is stored.
    ///   - request: the target, without fields.
    ///   - head: of the request as it goes out, with that value of `Host`.
    func work(_ key: Key, _ request: () -> HTTPRequest, head: (_ host: String) -> [UInt8]) -> (any RelayedWork)? {
        guard context.live.withLock({ $0.respectsCacheControl }) else { return nil }
        let primary = String(decoding: key.bytes, as: UTF8.self)
        // What is to be stored may be on its way to another process.
        if !joinable.isPass(primary), !storesAtOnce || changes.store.isShared { return nil }
        var scope = SearchScope(uri: primary)
        scope.generation = changes.generations.current(scope.listKey)
        let request = request()
        guard let route = route(for: request), !lookup.mayFindElsewhere(scope), !failures.isRemembered(route.endpoint)
        else { return nil }
        let generation = changes.generations.current(primary)
        let collapses = context.configuration.collapsesRequests
        if collapses, let leading = joinable.leading(primary, generation: generation) {
            return RelayedFollower(of: leading, builder, request)
        }
        guard let permit = origin.placeAtOnce(route.endpoint) else { return nil }
        let load = Load(url: primary, generation: generation)
        var joinKey: String?
        if collapses {
            switch joinable.enter(primary, load) {
            case .lead: joinKey = primary
            case .alone: break
            // It came since.
            case .join(let leading): return RelayedFollower(of: leading, builder, request)
            case .leadAfter: return nil
            }
        }
        let relayed = RelayedLoad(
            load, primary: primary, joinKey: joinKey, searchGeneration: scope.generation, joinable, active)
        return RelayedRequest(self, route, permit, relayed, request, head: head(route.host))
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

    // MARK: Responses

    /// What is to be done about a response.
    enum Verdict {
        /// It is passed on: it may not be stored, and what came for the key last says of the next what this is.
        case pass(isShareable: Bool?)
        /// It is stored and passed on.
        case store(NewResponse)
        /// The rules want more than that.
        case load
    }

    /// Judges a response as a load would.
    func verdict(_ head: HeadForm, for forwarded: ForwardedRequest, requestTime: Instant, now: Instant) -> Verdict {
        let (rules, status) = (context.rules, head.status.code)
        // They answer questions that were not asked: see ``CacheRules/received``.
        if status == 304 || status == 206 { return .load }
        // Else it would be done twice for most of what is stored.
        if case .lines(let lines) = head, lines.mentions(["no-store", "private"], in: rules.directiveFields.contains),
            let obstacle = obstacle(byDirectives: lines, to: forwarded.request)
        {
            return pass(obstacle, status, forwarded)
        }
        let decision = rules.received(
            head.response, for: forwarded, stored: [], requestTime: requestTime, responseTime: now)
        guard case .asReceived = decision.answer, decision.invalidation == nil else { return .load }
        if let new = decision.store { return .store(new) }
        guard let obstacle = decision.obstacle else { return .load }
        return pass(obstacle, status, forwarded)
    }

    private func obstacle(byDirectives lines: HeadLines, to request: HTTPRequest) -> StoringObstacle? {
        let rules = context.rules
        if let value = lines.onlyValue("cache-control", of: rules.directiveFields.contains) {
            return rules.obstacle(byCacheControl: value, status: lines.status, to: request)
        }
        let fields = lines.fields(named: rules.directiveFields.contains)
        return rules.obstacle(byDirectives: HTTPResponse(status: lines.status, headerFields: fields), to: request)
    }

    private func pass(_ obstacle: StoringObstacle, _ status: Int, _ forwarded: ForwardedRequest) -> Verdict {
        changes.logObstacle(obstacle, forwarded.request.url)
        return .pass(isShareable: context.rules.isLasting(obstacle, status: status) ? false : nil)
    }
}

extension HTTPCache {
    /// What may be done about a GET without a task. Nil where it has to be loaded. On an event loop.
    /// - Parameters:
    ///   - key: one under which ``withPlainHit(_:_:_:values:_:)`` found nothing.
    ///   - request: the target. Its fields have no condition, no range, no `Cache-Control` and no credentials, and are
    ///     not needed here.
    ///   - head: the request as it goes out, with that value of `Host`, and with `Via`, without fields of the
    ///     connection.
    package func relayedWork(
        _ key: Key, _ request: @autoclosure () -> HTTPRequest, head: (_ host: String) -> [UInt8]
    ) -> (any RelayedWork)? {
        isOffline ? nil : relay?.work(key, request, head: head)
    }

    /// Requests that were sent without a load so far.
    package var relayedCount: Int { relay?.count.load(ordering: .relaxed) ?? 0 }
}
