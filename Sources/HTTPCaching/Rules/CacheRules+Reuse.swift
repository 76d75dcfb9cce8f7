import HTTPTypes

/// Constructing responses from caches: RFC 9111 section 4.
extension CacheRules {
    /// Decides how to handle a request.
    ///
    /// - Parameters:
    ///   - request: the client's request as received, without fields that belong to the connection.
    ///   - hasContent: true if the request has content. GET and HEAD with content are sent to the origin and nothing is
    ///     stored: a cache that ignored the content would serve one client the answer to another's question.
    ///   - stored: all responses stored under the primary key, in any order; positions in the answer refer to this
    ///     array.
    ///   - now: the current time.
    ///   - isDisconnected: true if the cache is offline: nothing is forwarded then.
    /// - Returns: the decision. Cost for a fresh hit without `Vary`: one pass over the request's fields and one copy
    ///   of the stored ones.
    public func reuse(
        _ request: HTTPRequest, hasContent: Bool = false, stored: [StoredResponse], now: Instant,
        isDisconnected: Bool = false
    ) -> ReuseDecision {
        let facts = RequestFacts(request, options: options)
        func forward(_ reason: CacheStatus.ForwardReason, selected: Int? = nil, candidates: [Int] = []) -> ReuseDecision
        {
            if isDisconnected || facts.directives.onlyIfCached { return .refuse(Self.gatewayTimeout) }
            return .forward(
                ForwardedRequest(
                    request: request, reason: reason, selected: selected, candidates: candidates, hasContent: hasContent
                ))
        }
        guard allowsReuse(request.method) else { return forward(.method) }
        // Preconditions that only an origin server can evaluate (section 4.3.2).
        guard !hasContent, !facts.hasPreconditionForOrigin, request.headerFields.count <= Self.maximumFields else {
            return forward(.bypass)
        }
        guard !stored.isEmpty else { return forward(.uriMiss) }
        let candidates = candidates(for: request, stored: stored)
        guard let selected = select(candidates, stored: stored) else {
            return forward(stored.allSatisfy { isUserOwn($0.head) } ? .uriMiss : .varyMiss)
        }
        let chosen = current(stored[selected])

        let isFresh = chosen.policy.isFresh(at: now, clockSkewTolerance: options.clockSkewToleranceMilliseconds)
        let needsValidation = chosen.isInvalidated || chosen.policy.flags.contains(.noCache)
        if isFresh && !needsValidation && isAcceptable(chosen.policy, request: facts.directives, now: now) {
            if let served = serve(request, facts: facts, stored: chosen, index: selected, now: now) {
                return .serve(served)
            }
        } else if !(isFresh && !needsValidation),
            let permission = isDisconnected
                ? permissionOnError(chosen, request: facts.directives, now: now, isDisconnected: true)
                    ?? permissionWhileConnected(chosen, request: facts.directives, now: now)
                : permissionWhileConnected(chosen, request: facts.directives, now: now),
            var served = serve(request, facts: facts, stored: chosen, index: selected, now: now, stale: permission)
        {
            if permission == .whileRevalidate && !isDisconnected {
                served.background = backgroundExchange(
                    request, stored: stored, candidates: candidates, selected: selected)
            }
            return .serve(served)
        }
        if isDisconnected || facts.directives.onlyIfCached { return .refuse(Self.gatewayTimeout) }
        return .forward(
            forwardedRequest(
                request, facts: facts, stored: stored, candidates: candidates, selected: selected,
                isFresh: isFresh && !needsValidation, now: now))
    }

    /// Decides the commonest case from parsed values alone: a plain request for a fresh response whose body is
    /// complete.
    ///
    /// - Parameters:
    ///   - request: the client's request.
    ///   - policy: the policy of the stored response.
    ///   - selecting: the secondary key of the stored response.
    ///   - now: the current time.
    /// - Returns: the age in whole seconds for the `Age` field; nil if the request has a precondition, a range or
    ///   directives, or the response is not fresh: then call ``reuse(_:hasContent:stored:now:isDisconnected:)``.
    ///   Allocates nothing unless `selecting` names fields. Only for the sole response stored under its key, complete
    ///   and not invalidated, and for a request without content.
    public func plainHitAge(
        _ request: HTTPRequest, policy: StoredPolicy, selecting: SelectingFields, now: Instant
    ) -> Int64? {
        guard request.method == .get, let age = plainHitAge(policy: policy, now: now) else { return nil }
        for field in request.headerFields {
            let name = field.name.canonicalName
            switch name.utf8.count {
            case 5: if name == "range" { return nil }
            case 6: if name == "pragma" && options.honorsPragma { return nil }
            case 8: if name == "if-match" { return nil }
            case 13: if name == "cache-control" || name == "if-none-match" { return nil }
            case 17: if name == "if-modified-since" { return nil }
            case 19: if name == "if-unmodified-since" { return nil }
            default: break
            }
        }
        guard selecting.fields.isEmpty || selecting.matches(request.headerFields) else { return nil }
        return age
    }

    /// The same for a request that is known to be GET, without content, precondition, range, `Cache-Control` and
    /// `Pragma`, and for a response that does not vary. Allocates nothing.
    ///
    /// - Parameters:
    ///   - policy: the policy of the stored response.
    ///   - now: the current time.
    /// - Returns: the age in whole seconds; nil if it is not fresh, or was parsed under other options.
    public func plainHitAge(policy: StoredPolicy, now: Instant) -> Int64? {
        guard policy.flags.isDisjoint(with: .noCache),
            policy.fingerprint == fingerprint || policy.lifetimeSource == .override,
            policy.isFresh(at: now, clockSkewTolerance: options.clockSkewToleranceMilliseconds)
        else { return nil }
        return policy.ageMilliseconds(at: now) / 1_000
    }

    /// The stored response that a request selects, whatever its age (section 4.1).
    ///
    /// - Parameters:
    ///   - request: without fields that belong to the connection.
    ///   - stored: all responses stored under the primary key.
    /// - Returns: its position; nil if none matches.
    package func position(selectedBy request: HTTPRequest, stored: [StoredResponse]) -> Int? {
        allowsReuse(request.method) ? select(candidates(for: request, stored: stored), stored: stored) : nil
    }

    /// Section 4: the methods whose requests a stored response can answer.
    func allowsReuse(_ method: HTTPRequest.Method) -> Bool {
        method == .get || method == .head || options.extraMethods.contains(method.rawValue)
    }

    /// The positions of the responses that could be chosen for a request (sections 4 and 4.1): method and nominated
    /// fields match. Those that match by language only come in when no other does.
    func candidates(for request: HTTPRequest, stored: [StoredResponse]) -> [Int] {
        var exact: [Int] = []
        for index in stored.indices where answersMethod(stored[index], request.method) {
            if stored[index].selecting.fields.isEmpty || stored[index].selecting.matches(request.headerFields) {
                exact.append(index)
            }
        }
        guard exact.isEmpty, options.selectsByContentLanguage else { return exact }
        return stored.indices.filter {
            answersMethod(stored[$0], request.method) && matchesLanguage(stored[$0], request.headerFields)
        }
    }

    private func answersMethod(_ stored: StoredResponse, _ method: HTTPRequest.Method) -> Bool {
        (stored.method == method || (method == .head && stored.method == .get)) && !isUserOwn(stored.head)
    }

    /// Whether a response sets a cookie, where the options say that such a one is not shared.
    private func isUserOwn(_ head: HTTPResponse) -> Bool {
        isShared && options.setCookie == .neverStore && head.headerFields.contains(.setCookie)
    }

    /// Section 4.1: "that mechanism MAY be used to choose a preferred response": the request likes exactly one
    /// language best, and the stored response is in that language; all other nominated fields match.
    private func matchesLanguage(_ stored: StoredResponse, _ request: HTTPFields) -> Bool {
        guard stored.selecting.fields.contains(where: { $0.name == "accept-language" }),
            let language = stored.head.headerFields.single(.contentLanguage),
            let preferred = SelectingValue.preferredLanguage(request),
            FieldBytes.lowercased(FieldBytes.trimmed(language[...])) == preferred
        else { return false }
        return stored.selecting.fields.allSatisfy {
            $0.name == "accept-language" || SelectingValue.normalized(name: $0.name, in: request) == $0.value
        }
    }

    /// Section 4: of several suitable responses the most recent by `Date`; section 4.1: one with `Vary` before one
    /// without.
    func select(_ candidates: [Int], stored: [StoredResponse]) -> Int? {
        guard candidates.count > 1 else { return candidates.first }
        let withVary = candidates.filter { !stored[$0].selecting.fields.isEmpty }
        return (withVary.isEmpty ? candidates : withVary).max {
            (stored[$0].policy.date, stored[$0].responseTime) < (stored[$1].policy.date, stored[$1].responseTime)
        }
    }

    /// Sections 5.2.1.1 to 5.2.1.4: whether the request accepts a fresh response. A reload (`max-age=0`) does not
    /// validate an `immutable` one (RFC 8246 section 2), `no-cache` does.
    func isAcceptable(_ policy: StoredPolicy, request: RequestDirectives, now: Instant) -> Bool {
        let age = policy.ageMilliseconds(at: now)
        let isYoungEnough = request.maxAge.map { age <= $0.secondsAsMilliseconds } ?? true
        let isReloadOfImmutable = request.maxAge == 0 && policy.flags.contains(.immutable)
        let staysFreshLongEnough =
            request.minFresh.map {
                policy.lifetimeMilliseconds.subtractingSaturating(age) >= $0.secondsAsMilliseconds
            } ?? true
        return !request.noCache && (isYoungEnough || isReloadOfImmutable) && staysFreshLongEnough
    }

    /// What to send when the selected response cannot be used as it is.
    private func forwardedRequest(
        _ request: HTTPRequest, facts: RequestFacts, stored: [StoredResponse], candidates: [Int], selected: Int,
        isFresh: Bool, now: Instant
    ) -> ForwardedRequest {
        let chosen = stored[selected]
        var forwardedRequest = ForwardedRequest(
            request: request, reason: isFresh ? .request : .stale, selected: selected, candidates: candidates)
        if request.method == .get, facts.hasRange, let value = request.headerFields.single(.range),
            RangeField.parse(value) == .otherUnit
        {
            forwardedRequest.reason = .bypass
            return forwardedRequest
        }
        if !chosen.body.isComplete {
            let answer = rangeAnswer(request, facts: facts, stored: chosen, now: now)
            if answer == .missing || request.method != .get {
                if isFresh { forwardedRequest.reason = .partial }
                if !facts.hasRange, let sent = completionRequest(request, stored: chosen, isFresh: isFresh) {
                    forwardedRequest.sent = sent
                    forwardedRequest.purpose = .complete
                }
                // Its entity tag must not be sent: a 304 could not be answered from it (section 4.3.2).
                return forwardedRequest
            }
        }
        if let sent = validationRequest(request, stored: stored, candidates: candidates, selected: selected) {
            forwardedRequest.sent = sent
            forwardedRequest.purpose = .validate
        }
        return forwardedRequest
    }

    /// The validation that follows a response served under `stale-while-revalidate`: the whole representation,
    /// without the client's own preconditions.
    private func backgroundExchange(_ request: HTTPRequest, stored: [StoredResponse], candidates: [Int], selected: Int)
        -> ForwardedRequest
    {
        var plain = request
        for name: HTTPField.Name in [.ifNoneMatch, .ifModifiedSince, .ifRange, .range] {
            plain.headerFields.remove(name)
        }
        if plain.method == .head { plain.method = .get }
        var forwardedRequest = ForwardedRequest(
            request: plain, reason: .stale, selected: selected, candidates: candidates)
        guard stored[selected].body.isComplete else { return forwardedRequest }
        if let sent = validationRequest(plain, stored: stored, candidates: candidates, selected: selected) {
            forwardedRequest.sent = sent
            forwardedRequest.purpose = .validate
        }
        return forwardedRequest
    }
}
