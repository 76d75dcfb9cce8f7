import HTTPTypes

/// Serving stale responses: RFC 9111 section 4.2.4, RFC 5861.
extension CacheRules {
    /// Section 4.2.4: the directives that prohibit a stale response.
    func prohibitsStale(_ directives: ResponseDirectives) -> Bool {
        let mustRevalidate = directives.mustRevalidate
        let proxyRevalidate = isShared && directives.proxyRevalidate
        let sMaxage = isShared && directives.sMaxage.isPresent
        let noCache = directives.noCache == .unqualified
        return mustRevalidate || proxyRevalidate || sMaxage || noCache
    }

    /// The reason that a stale response may be served.
    public enum StalePermission: UInt8, Sendable, Hashable {
        /// The request's `max-stale` (RFC 9111 section 5.2.1.2).
        case maxStale
        /// The response's `stale-while-revalidate` (RFC 5861 section 3): validate in the background.
        case whileRevalidate
        /// `stale-if-error` of the response or the request (RFC 5861 section 4).
        case ifError
        /// The origin cannot be reached (RFC 9111 section 4.2.4).
        case disconnected
    }

    /// Whether a stale response may be served at once, without asking the origin.
    func permissionWhileConnected(_ stored: StoredResponse, request: RequestDirectives, now: Instant)
        -> StalePermission?
    {
        guard !stored.isInvalidated, !stored.policy.flags.contains(.staleProhibited), !request.noCache else {
            return nil
        }
        let staleness = stored.policy.stalenessMilliseconds(at: now)
        if let maxStale = request.maxStale, staleness <= maxStale.secondsAsMilliseconds { return .maxStale }
        // A client that sets limits of its own does not want a response that is staler still.
        guard request.maxAge == nil, request.minFresh == nil else { return nil }
        let window = stored.policy.staleWhileRevalidateSeconds
        return window >= 0 && staleness <= window.secondsAsMilliseconds ? .whileRevalidate : nil
    }

    /// Whether a stored response, stale or not, may be served because the origin failed to answer properly.
    ///
    /// Where the response or the request states `stale-if-error`, that is the limit, and of two the smaller one. The
    /// limit for disconnected caches is for responses and requests that state none; without end, it was asked for and
    /// counts alone.
    func permissionOnError(
        _ stored: StoredResponse, request: RequestDirectives, now: Instant, isDisconnected: Bool
    ) -> StalePermission? {
        guard !stored.isInvalidated, !stored.policy.flags.contains(.staleProhibited), !request.noCache else {
            return nil
        }
        let staleness = stored.policy.stalenessMilliseconds(at: now)
        let stated = [stored.policy.staleIfErrorSeconds, request.staleIfError ?? -1].filter { $0 >= 0 }
        let isUnlimited = isDisconnected && options.disconnectedStaleLimitSeconds == .max
        if let window = stated.min(), !isUnlimited {
            return staleness <= window.secondsAsMilliseconds ? .ifError : nil
        }
        let limit = max(0, options.disconnectedStaleLimitSeconds).secondsAsMilliseconds
        return isDisconnected && options.servesStaleWhenDisconnected && staleness <= limit ? .disconnected : nil
    }

    /// RFC 5861 section 4: the status codes that count as an error, and what the options add.
    func isServerError(_ status: Int) -> Bool {
        switch status {
        case 500, 502, 503, 504: true
        default: options.servesStaleForServerErrors && (500...599).contains(status)
        }
    }

    /// Whether an error of the server counts as a failure to respond: section 4.3.3 allows that for a validation only.
    func takesAsDisconnection(_ forwardedRequest: ForwardedRequest) -> Bool {
        options.servesStaleForServerErrors
            || options.takesServerErrorAsDisconnection && forwardedRequest.purpose == .validate
    }
}
