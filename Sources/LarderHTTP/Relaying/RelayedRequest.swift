import HTTPCaching
import HTTPTypes
import Larder
import Locks

/// What an origin answered to a request by ``Relay``, for one load.
package final class RelayedResponse: Sendable {
    let requestTime: Instant
    /// Of the key when the request was sent: see ``Generations``.
    let generation: UInt32
    private let response: Mutex<TransportResponse?>

    init(_ response: TransportResponse, requestTime: Instant, generation: UInt32) {
        self.response = Mutex(response)
        self.requestTime = requestTime
        self.generation = generation
    }

    /// The response, once: who does not need it any more must not hold its connection.
    func take() -> TransportResponse? {
        response.withLock { response in
            defer { response = nil }
            return response
        }
    }
}

/// A request on its way by ``Relay``. On one event loop only.
// SAFETY: what changes is touched on the event loop that `send` is called on, where the transport reports, too.
package final class RelayedRequest: @unchecked Sendable {
    /// What comes; all but interim responses end it.
    package enum Event: Sendable {
        case informational(HTTPResponse)
        case response(FetchResponse)
        case failure(FetchError)
        /// It is to be loaded: the origin has not answered, or with a response that may be stored.
        case load(RelayedResponse?)
    }

    private let relay: Relay
    private let route: RelayRoute
    private let permit: HostLimiter.Permit
    private let key: String
    private let request: HTTPRequest
    private var exchange: (any RelayedExchange)?
    private var receive: (@Sendable (Event) -> Void)?
    private var lastAnswer = 0
    private let generation: UInt32
    private let requestTime: Instant

    init(_ relay: Relay, _ route: RelayRoute, _ permit: HostLimiter.Permit, key: String, _ request: HTTPRequest) {
        self.relay = relay
        self.route = route
        self.permit = permit
        self.key = key
        self.request = request
        generation = relay.generations.current(key)
        requestTime = relay.context.now
    }

    /// The value of `Host` that the origin gets.
    package var host: String { route.host }

    /// Sends it; once.
    /// - Parameters:
    ///   - head: as it goes out, with ``host`` and `Via`, without fields of the connection.
    ///   - receive: called on the event loop, perhaps before this returns; not after ``cancel()``.
    package func send(_ head: [UInt8], _ receive: @escaping @Sendable (Event) -> Void) {
        self.receive = receive
        lastAnswer = relay.failures.lastAnswer
        let timeouts = relay.context.configuration.timeouts
        let exchange = relay.transport.relay(head, to: route, timeouts) { self.take($0) }
        if let exchange {
            relay.count.add(1, ordering: .relaxed)
            if self.receive != nil { self.exchange = exchange }
        } else {
            permit.release()
            end(.load(nil))
        }
    }

    /// Nothing more is wanted of it.
    package func cancel() {
        receive = nil
        exchange?.cancel()
        exchange = nil
        permit.release()
    }

    private func take(_ event: RelayEvent) {
        switch event {
        case .informational(let head): receive?(.informational(head.withoutConnectionFields))
        case .response(let response): answered(response)
        case .failure(let error): failed(error)
        }
    }

    private func end(_ event: Event) {
        let receive = receive
        self.receive = nil
        exchange = nil
        receive?(event)
    }

    private func answered(_ received: TransportResponse) {
        relay.failures.succeeded(route.endpoint)
        let status = received.head.status.code
        var received = received
        received.body = received.body.giving(back: permit)
        let now = relay.context.now
        // 304 and 206 answer questions that were not asked: see ``CacheRules/received``.
        if status == 304 || status == 206 || !relay.forbidsStoring(received.head, to: request, at: now) {
            // One for several queries is asked for again: what was invalidated of the others meanwhile is not known.
            let isOfOneQuery = !received.head.headerFields.contains(.noVarySearch)
            return end(
                .load(
                    isOfOneQuery
                        ? RelayedResponse(received, requestTime: requestTime, generation: generation) : nil))
        }
        end(.response(relay.builder.passed(received.head, body(received.body), reason: .uriMiss, now: now)))
    }

    private func body(_ body: TransportBody) -> ResponseBody {
        if let whole = body.whole { return whole.isEmpty ? .empty : ResponseBody([.bytes(whole)]) }
        let url = request.url
        return ResponseBody(length: body.length) {
            do throws(TransportError) { return try await body.next() } catch { throw FetchError(error, url) }
        }
    }

    private func failed(_ error: TransportError) {
        permit.release()
        if error.lostKeptConnection || !error.mayHaveBeenSeen || relay.origin.repeats(error) { return end(.load(nil)) }
        let failure = FetchError(error, request.url)
        relay.failures.failed(
            route.endpoint, failure, since: lastAnswer, isProbe: false, now: relay.context.configuration.clock.now())
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
