import HTTPTypes

/// Collapsing requests: RFC 9111 section 4, "a cache can use a response that is stored or storable to satisfy multiple
/// requests, provided that it is allowed to reuse that response for the requests in question".
extension CacheRules {
    /// The loads of the same key that a request may share.
    public enum Collapsing: Sendable, Hashable {
        /// None: the request is answered on its own.
        case none
        /// Any that is under way.
        case any
        /// A load that is sent after the request arrived.
        ///
        /// A request with `no-cache` accepts only a response validated with the origin (section 5.2.1.4), one with
        /// `max-age=0` only a response that is not older than the request (section 5.2.1.1). The answer to a later
        /// request was generated later, and the origin would have given the same answer to this request. The answer to
        /// an earlier request may have been generated earlier, for instance before a change that the client knows of,
        /// so it cannot be used. The same is true of an earlier validation.
        case later
    }

    /// The loads that a request may share.
    ///
    /// - Parameter request: the client's request.
    /// - Returns: none, one that is under way, or only one that is sent later.
    public func collapsing(of request: HTTPRequest) -> Collapsing {
        guard request.method == .get || request.method == .head else { return .none }
        let facts = RequestFacts(request, options: options)
        let directives = facts.directives
        guard !facts.hasPreconditionForOrigin, !directives.noStore, directives.minFresh == nil else { return .none }
        if facts.hasRange {
            // Those with the same range may share what comes for it.
            guard request.method == .get, !facts.hasIfRange, !isConditional(request), options.storesPartialResponses
            else { return .none }
        }
        return directives.noCache || directives.maxAge == 0 ? .later : .any
    }

    /// True if a request has conditions that a cache can evaluate.
    ///
    /// - Parameter request: the client's request.
    /// - Returns: true for `If-None-Match` and `If-Modified-Since`.
    public func isConditional(_ request: HTTPRequest) -> Bool {
        request.headerFields.contains(.ifNoneMatch) || request.headerFields.contains(.ifModifiedSince)
    }

    /// A request without the directives that a later load satisfies.
    ///
    /// - Parameter request: the client's request.
    /// - Returns: the same request, for ``reuse(_:hasContent:stored:now:isDisconnected:)`` after that load.
    public func satisfiedByValidation(_ request: HTTPRequest) -> HTTPRequest {
        var request = request
        request.headerFields.remove(.cacheControl)
        request.headerFields.remove(.pragma)
        return request
    }

    /// The answer to one of the requests that share a new, whole response, while its body arrives: according to the
    /// request's own conditions and range. Nil if the response may not be used for the request.
    ///
    /// - Parameters:
    ///   - new: the response that is arriving.
    ///   - request: the request to answer.
    ///   - length: the length of the body; nil while it is not known. Then a range is not cut out.
    ///   - isFollower: true for a request other than the one that was sent: then the response has to be fresh, and the
    ///     request has to match.
    ///   - now: the current time.
    /// - Returns: with the content `none`, `whole` or `range`.
    public func serve(
        arriving new: NewResponse, to request: HTTPRequest, length: Int64?, isFollower: Bool, now: Instant
    ) -> ServedResponse? {
        if isFollower, !mayShare(new, request, now: now) { return nil }
        let stored = StoredResponse(
            head: new.head, method: new.method, selecting: new.selecting, requestTime: new.requestTime,
            responseTime: new.responseTime, body: .complete(length: length ?? 0), policy: new.policy)
        var request = request
        if length == nil { request.headerFields.remove(.range) }
        let facts = RequestFacts(request, options: options)
        var served = serve(request, facts: facts, stored: stored, index: 0, now: now)
        // RFC 9110 section 8.6: what is declared is the length that GET would have.
        if length == nil, request.method == .head, !new.head.headerFields.contains(.contentLength) {
            served?.head.headerFields.remove(.contentLength)
        }
        guard case .multipart = served?.content else { return served }
        // Several ranges of a body that is arriving: the whole is an answer, too (RFC 9110 section 14.2).
        request.headerFields.remove(.range)
        return serve(
            request, facts: RequestFacts(request, options: options), stored: stored, index: 0, now: now)
    }

    /// The same for a 206 that is arriving, and a request whose range it contains.
    ///
    /// - Parameters:
    ///   - new: the part as it will be stored.
    ///   - contentRange: the value of the 206; a stored part does not keep it.
    ///   - request: a request that shares the load.
    ///   - now: the current time.
    /// - Returns: the answer; nil if the part may not be used for the request.
    public func serve(
        arrivingPart new: NewResponse, contentRange: String?, to request: HTTPRequest, now: Instant
    ) -> ServedResponse? {
        guard mayShare(new, request, now: now) else { return nil }
        var part = new.head
        part.status = .partialContent
        part.headerFields[.contentRange] = contentRange
        return serve(slices: part, to: request, now: now)
    }

    private func mayShare(_ new: NewResponse, _ request: HTTPRequest, now: Instant) -> Bool {
        let maxAge = RequestFacts(request, options: options).directives.maxAge ?? 0
        return new.policy.isFresh(at: now, clockSkewTolerance: options.clockSkewToleranceMilliseconds)
            && !new.policy.flags.contains(.noCache) && new.selecting.matches(request.headerFields)
            && (maxAge == 0 || new.policy.ageMilliseconds(at: now) <= maxAge.secondsAsMilliseconds)
    }

    /// True if a response was not stored because of the resource itself. Then the next response will not be stored
    /// either, and waiting for it is useless. Fields of the request and errors of the server say nothing about that.
    /// Nor do refusals, which one client can provoke with its own field or range: only 404 and 410 are about the
    /// resource.
    ///
    /// - Parameters:
    ///   - obstacle: the reason that it was not stored.
    ///   - status: the status code of the response.
    /// - Returns: false if the next response may be stored.
    public func isLasting(_ obstacle: StoringObstacle, status: Int) -> Bool {
        guard status < 400 || status == 404 || status == 410 else { return false }
        switch obstacle {
        case .requestNoStore, .requestHasContent, .dependsOnRequest, .statusNotFinal, .noKey, .partNotUnderstood:
            return false
        default: return true
        }
    }
}
