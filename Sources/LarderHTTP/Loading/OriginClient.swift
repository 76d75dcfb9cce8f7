import HTTPCaching
import HTTPTypes

/// Sending to the origin, with limits and repetitions.
struct OriginClient: Sendable {
    private let context: CacheContext
    private let transport: any Transport
    private let limiter: HostLimiter

    init(_ context: CacheContext, _ transport: any Transport) {
        self.context = context
        self.transport = transport
        let configuration = context.configuration
        limiter = HostLimiter(
            perHost: configuration.requestsPerHost, waitingPerHost: configuration.waitingPerHost,
            total: configuration.requestLimit)
    }

    private var configuration: HTTPCacheConfiguration { context.configuration }

    /// The transport writes these.
    private static let messageFields: FieldNameSet = ["host", "content-length"]

    /// Requests that wait for a place.
    var waitingRequests: Int { limiter.waitingCount }

    /// Memory that the transport takes up, in bytes.
    var heldBytes: Int { transport.heldBytes }

    /// Sends what a forwarded request says; waits for a place, tries again where that is allowed.
    func send(
        _ forwardedRequest: ForwardedRequest, as pending: LoadRequest, url: String, body: RequestBody?,
        onInformational: (@Sendable (HTTPResponse) async -> Void)?
    ) async throws(FetchError) -> TransportResponse {
        var head = forwardedRequest.sent
        if pending.subject.method != pending.request.method { head.method = pending.request.method }
        head.headerFields = head.headerFields
            .withoutConnectionFields(besides: Self.messageFields)  // check-words: allow
        if let name = configuration.viaName { head.headerFields.appendVia(name) }
        var request = TransportRequest(head: head, body: body, timeouts: pending.plan.timeouts)
        if let onInformational {
            request.onInformational = { await onInformational($0.withoutConnectionFields) }
        }

        let permit = try await place(for: request, pending.plan, url)
        var delay = configuration.retries.delay
        var attempt = pending.led?.takeAttempts() ?? 0
        if attempt > 0 {
            do { try await configuration.sleep(delay) } catch { throw Self.cancelled(url) }
            delay = delay * 2
        }
        while true {
            let failure: TransportError
            do throws(TransportError) {
                return try await send(request, pending.plan.deadline, permit, url)
            } catch {
                failure = error
            }
            guard attempt < configuration.retries.limit, mayRepeat(request, after: failure), !Task.isCancelled,
                pending.plan.deadline?.hasPassed != true
            else { throw FetchError(failure, url) }
            attempt += 1
            do { try await configuration.sleep(delay) } catch { throw FetchError(failure, url) }
            delay = delay * 2
        }
    }

    /// The server that a request goes to, by which failures are remembered, too: host names are the clients' choice.
    func endpoint(of request: HTTPRequest) -> String { transport.endpoint(for: TransportRequest(head: request)) }

    /// A place among the requests to the server that this one goes to.
    ///
    /// Taken before the content is asked for: that is what makes a client send it (`100 Continue`), and what an origin
    /// answers with 401 or 413 need not be sent at all.
    private func place(
        for request: TransportRequest, _ plan: FetchPlan, _ url: String
    ) async throws(FetchError) -> HostLimiter.Permit {
        let host = transport.endpoint(for: request)
        let isUpload = request.body.map { !$0.isReplayable } ?? false
        let time = min(plan.timeouts.queue, plan.deadline?.rest ?? plan.timeouts.queue)
        do throws(HostLimiter.Refusal) {
            return try await limiter.acquire(host, plan.priority, isUpload: isUpload, within: time)
        } catch {
            switch error {
            case .cancelled: throw Self.cancelled(url)
            case .timedOut:
                // The origin was not asked, so this is not a failure of the origin that others should hear of.
                let why = "no request to \(host) ended in time to make room for this one (Timeouts.queue)"
                throw FetchError(
                    .timedOut, url: url, "\(url) could not be loaded: \(why)",
                    cause: TransportError(.overloaded, mayHaveBeenSeen: false, endpoint: host, why))
            case .overloaded(let running, let waiting):
                throw FetchError(
                    TransportError(
                        .overloaded, mayHaveBeenSeen: false, endpoint: host,
                        "\(running) requests to \(host) are under way and \(waiting) wait, which is as many as may"
                            + " (requestsPerHost, waitingPerHost)"), url)
            }
        }
    }

    private static func cancelled(_ url: String) -> FetchError {
        FetchError(.cancelled, url: url, "the fetch of \(url) was cancelled")
    }

    /// Sends a request once. Its place is given back with the last byte of the response.
    private func send(
        _ request: TransportRequest, _ deadline: Deadline?, _ permit: HostLimiter.Permit, _ url: String
    ) async throws(TransportError) -> TransportResponse {
        let transport = transport
        let response = try await Self.limit(deadline, url) { () throws(TransportError) in
            try await transport.send(request)
        }
        let inner = response.body
        if inner.whole != nil {
            permit.release()
            return response
        }
        return TransportResponse(
            head: response.head,
            body: TransportBody(length: inner.length) { () throws(TransportError) in
                do throws(TransportError) {
                    let piece = try await Self.limit(deadline, url) { () throws(TransportError) in
                        try await inner.next()
                    }
                    if piece == nil { permit.release() }
                    return piece
                } catch {
                    permit.release()
                    throw error
                }
            })
    }

    /// Does something for the origin's answer, until the deadline of the load.
    private static func limit<Value: Sendable>(
        _ deadline: Deadline?, _ url: String, _ body: @escaping @Sendable () async throws(TransportError) -> Value
    ) async throws(TransportError) -> Value {
        guard let deadline else { return try await body() }
        let error = TransportError(
            .timedOut, mayHaveBeenSeen: true, "\(url) was not complete in the time for the whole (Timeouts.total)")
        return try await deadline.limit(error) { () async -> Result<Value, TransportError> in
            do throws(TransportError) { return .success(try await body()) } catch { return .failure(error) }
        }.get()
    }

    private func mayRepeat(_ request: TransportRequest, after error: TransportError) -> Bool {
        guard request.body?.isReplayable ?? true else { return false }
        let idempotent: [HTTPRequest.Method] = [.get, .head, .put, .delete, .options, .trace]
        return mayRepeat(isIdempotent: idempotent.contains(request.head.method), after: error)
    }

    private func mayRepeat(isIdempotent: Bool, after error: TransportError) -> Bool {
        switch error.code {
        case .cancelled, .invalidRequest, .requestBodyFailed, .malformedResponse, .responseTooLarge: return false
        default: break
        }
        if !error.mayHaveBeenSeen { return true }
        return configuration.retries.repeatsIdempotent && isIdempotent
    }

    // MARK: For a relay

    /// A place among the requests to a server, if there is one without waiting.
    func placeAtOnce(_ endpoint: String) -> HostLimiter.Permit? { limiter.acquireAtOnce(endpoint) }

    /// Whether a GET is sent again after an error.
    func repeats(_ error: TransportError) -> Bool {
        configuration.retries.limit > 0 && mayRepeat(isIdempotent: true, after: error)
    }
}

extension HTTPResponse {
    /// An interim response to pass on. It has no content, so a length in it is wrong (RFC 9110 section 8.6) and would
    /// be taken for that of the final response by a careless recipient.
    var withoutConnectionFields: HTTPResponse {
        var result = self
        result.headerFields = headerFields.withoutConnectionFields(besides: Self.lengthFields)  // check-words: allow
        return result
    }

    private static let lengthFields: FieldNameSet = ["content-length"]
}
