import HTTPCaching
import HTTPTypes
import HTTPWire
import Larder
import Locks

/// A request on its way to the origin by ``Relay``. On one event loop only.
// SAFETY: what changes is touched on the event loop that `start` is called on, where the transport reports, too.
package final class RelayedRequest: RelayedWork, @unchecked Sendable {
    private let relay: Relay
    private let route: RelayRoute
    private let permit: HostLimiter.Permit
    private let load: RelayedLoad
    private let request: HTTPRequest
    private var exchange: (any RelayedExchange)?
    private var receive: (@Sendable (RelayedEvent) -> Void)?
    private var lastAnswer = 0
    /// Whether the whole response has come and is on its way to the store.
    private var isBeingStored = false
    private let head: [UInt8]

    /// - Parameter head: the request as it goes out, with `Host` and `Via`, without fields of the connection.
    init(
        _ relay: Relay, _ route: RelayRoute, _ permit: HostLimiter.Permit, _ load: RelayedLoad, _ request: HTTPRequest,
        head: [UInt8]
    ) {
        self.head = head
        self.relay = relay
        self.route = route
        self.permit = permit
        self.load = load
        self.request = request
    }

    /// Sends it.
    package func start(_ execute: Executing, _ receive: @escaping @Sendable (RelayedEvent) -> Void) {
        self.receive = receive
        lastAnswer = relay.failures.lastAnswer
        load.load.markSent(at: relay.context.now)
        let timeouts = relay.context.configuration.timeouts
        guard let exchange = relay.transport.relay(head, to: route, timeouts, { self.take($0) }) else {
            return end(.load(unstarted()))
        }
        relay.count.add(1, ordering: .relaxed)
        guard self.receive != nil else { return }
        self.exchange = exchange
        load.load.begin { [weak self] in
            guard let self else { return }
            exchange.execute { self.cancelled() }
        }
    }

    package func unstarted() -> BegunLoad {
        permit.release()
        return .led(load)
    }

    package func cancel() {
        receive = nil
        // Others get it, and the store does.
        if isBeingStored { return }
        exchange?.cancel()
        exchange = nil
        permit.release()
        load.giveUp()
    }

    /// By who cancels loads.
    private func cancelled() {
        guard receive != nil, !isBeingStored else { return }
        exchange?.cancel()
        permit.release()
        fail(FetchError(cancellation, request.url))
    }

    private var cancellation: TransportError {
        TransportError(
            .cancelled, mayHaveBeenSeen: true, endpoint: route.endpoint,
            "the request to \(route.endpoint) was cancelled")
    }

    private func take(_ event: RelayEvent) {
        switch event {
        case .informational(let head): receive?(.informational(head.withoutConnectionFields))
        case .response(let head, let body): answered(head, body)
        case .failure(let error): failed(error)
        }
    }

    private func end(_ event: RelayedEvent) {
        let receive = receive
        self.receive = nil
        exchange = nil
        receive?(event)
    }

    private func answered(_ head: HeadForm, _ body: TransportBody) {
        relay.failures.succeeded(route.endpoint)
        let (now, body) = (relay.context.now, body.giving(back: permit))
        let forwarded = ForwardedRequest(request: request, reason: .uriMiss)
        switch relay.verdict(head, for: forwarded, requestTime: load.load.sentTime ?? now, now: now) {
        case .pass(let isShareable):
            answer(head, self.body(body), forwarded, shared: nil, isShareable: isShareable, now: now)
        case .store(let new) where body.whole != nil:
            isBeingStored = true
            makeWay { [self] in store(new, head, body, forwarded, now: now) }
        case .store, .load: goOn(head, body)
        }
    }

    private func store(
        _ new: NewResponse, _ head: HeadForm, _ body: TransportBody, _ forwarded: ForwardedRequest, now: Instant
    ) {
        // Who waits for it has it from a load, where the store fails, too.
        guard let whole = body.whole, relay.changes.storeAtOnce(new, whole, for: load) else { return goOn(head, body) }
        let shared = Load.Shared(new: new, contentRange: nil, content: .whole(whole), originStatus: head.status.code)
        makeWay { [self] in
            answer(head, self.body(body), forwarded, shared: shared, isShareable: true, now: now)
        }
    }

    /// Continues in the next turn of the event loop: what is done about a response that is stored takes as long as
    /// dozens of hits, and those that came meanwhile go first.
    private func makeWay(_ body: @escaping @Sendable () -> Void) {
        if let exchange { exchange.executeLater(body) } else { body() }
    }

    /// A load continues it.
    private func goOn(_ head: HeadForm, _ body: TransportBody) {
        if receive == nil { return load.giveUp() }
        load.hold(TransportResponse(head: head.response, body: body))
        end(.load(.led(load)))
    }

    /// - Parameter shared: what was stored of it, for others.
    private func answer(
        _ head: HeadForm, _ body: ResponseBody, _ forwarded: ForwardedRequest, shared: Load.Shared?,
        isShareable: Bool?, now: Instant
    ) {
        var response = relay.builder.received(head, forwarded, stored: shared?.new.policy, now: now)
        load.end(.success(Load.Arrival(response: response, shared: shared)), isShareable: isShareable)
        if shared != nil, load.joinKey == nil { relay.joinable.clearPass(load.primary) }
        response.body = body
        end(.response(response))
    }

    private func body(_ body: TransportBody) -> ResponseBody {
        if let whole = body.whole { return whole.isEmpty ? .empty : ResponseBody([.bytes(whole)]) }
        let (url, load) = (request.url, load)
        if let exchange { load.load.begin { exchange.execute { exchange.cancel() } } }
        return ResponseBody(length: body.length, holder: load) {
            defer { withExtendedLifetime(load) {} }
            do throws(TransportError) { return try await body.next() } catch { throw FetchError(error, url) }
        }
    }

    private func failed(_ error: TransportError) {
        permit.release()
        if error.lostKeptConnection { return end(.load(.led(load))) }
        if relay.origin.repeats(error) {
            load.noteAttempt()
            return end(.load(.led(load)))
        }
        let failure = FetchError(error, request.url)
        relay.failures.failed(
            route.endpoint, failure, since: lastAnswer, isProbe: false, now: relay.context.configuration.clock.now())
        fail(failure)
    }

    private func fail(_ failure: FetchError) {
        load.end(.failure(failure), isShareable: nil)
        end(.failure(failure))
    }
}

extension TransportBody {
    /// The same, which gives a place back at its end.
    fileprivate func giving(back permit: HostLimiter.Permit) -> TransportBody {
        if whole != nil {
            permit.release()
            return self
        }
        return TransportBody(length: length) { () throws(TransportError) in
            do throws(TransportError) {
                let piece = try await next()
                if piece == nil { permit.release() }
                return piece
            } catch {
                permit.release()
                throw error
            }
        }
    }
}
