import HTTPCaching
import HTTPTypes

/// Sending to the origin, with limits and repetitions.
extension HTTPCache {
    /// Sends what an exchange says; waits for a place, tries again where that is allowed.
    func send(
        _ exchange: Exchange, as pending: PendingLoad, url: String, body: RequestBody?,
        onInformational: (@Sendable (HTTPResponse) async -> Void)?
    ) async throws(FetchError) -> TransportResponse {
        var head = exchange.sent
        if pending.subject.method != pending.request.method { head.method = pending.request.method }
        head.headerFields = head.headerFields.withoutConnectionFields(besides: ["host", "content-length"])
        if let name = configuration.viaName { head.headerFields.appendVia(name) }
        let request = TransportRequest(
            head: head, body: body, timeouts: pending.plan.timeouts, onInformational: onInformational)

        guard let permit = await limiter.acquire(head.authority ?? "", pending.plan.priority) else {
            throw FetchError(.cancelled, url: url, "the fetch of \(url) was cancelled")
        }
        var delay = configuration.retries.delay
        var attempt = 0
        while true {
            let failure: TransportError
            do throws(TransportError) {
                let response = try await transport.send(request)
                // The place is given back with the last byte.
                let inner = response.body
                return TransportResponse(
                    head: response.head,
                    body: TransportBody(length: inner.length) { () throws(TransportError) in
                        do throws(TransportError) {
                            let piece = try await inner.next()
                            if piece == nil { permit.release() }
                            return piece
                        } catch {
                            permit.release()
                            throw error
                        }
                    })
            } catch {
                failure = error
            }
            guard attempt < configuration.retries.limit, mayRepeat(request, after: failure), !Task.isCancelled else {
                throw Self.fetchError(failure, url)
            }
            attempt += 1
            do { try await configuration.sleep(delay) } catch { throw Self.fetchError(failure, url) }
            delay = delay * 2
        }
    }

    private func mayRepeat(_ request: TransportRequest, after error: TransportError) -> Bool {
        guard request.body?.isReplayable ?? true else { return false }
        switch error.kind {
        case .cancelled, .invalidRequest, .requestBodyFailed, .malformedResponse, .responseTooLarge: return false
        case .cannotConnect, .timedOut, .closed, .incompleteResponse: break
        }
        if !error.mayHaveBeenSeen { return true }
        let idempotent: [HTTPRequest.Method] = [.get, .head, .put, .delete, .options, .trace]
        return configuration.retries.repeatsIdempotent && idempotent.contains(request.head.method)
    }

    static func fetchError(_ error: TransportError, _ url: String) -> FetchError {
        let kind: FetchError.Kind
        switch error.kind {
        case .timedOut: kind = .timedOut
        case .cancelled: kind = .cancelled
        case .invalidRequest: kind = .invalidURL
        default: kind = .origin
        }
        return FetchError(kind, url: url, "\(url) could not be loaded: \(error.message)", transport: error)
    }
}
