import HTTPTypes

/// Storing responses in caches: RFC 9111 sections 3, 3.3 and 3.5, RFC 9110 section 9.3.3.
extension CacheRules {
    /// The conditions of RFC 9111 section 3, one by one. A response may be stored when all of them hold.
    struct StoringConditions {
        var methodIsUnderstood: Bool
        var statusIsFinal: Bool
        var statusIsUnderstoodWhereNeeded: Bool
        var noStoreIsAbsent: Bool
        var privateAllowsStoring: Bool
        var authorizationAllowsStoring: Bool
        var somethingAllowsStoring: Bool

        /// The first condition that does not hold.
        var obstacle: StoringObstacle? {
            if !methodIsUnderstood { return .methodNotUnderstood }
            if !statusIsFinal { return .statusNotFinal }
            if !statusIsUnderstoodWhereNeeded { return .statusNotUnderstood }
            if !noStoreIsAbsent { return .noStore }
            if !privateAllowsStoring { return .privateResponse }
            if !authorizationAllowsStoring { return .authorization }
            if !somethingAllowsStoring { return .notCacheable }
            return nil
        }

        /// One that neither the other fields of the response nor a lifetime from elsewhere can make up for: most of
        /// what is not stored says so itself.
        var directiveObstacle: StoringObstacle? { obstacle == .notCacheable ? nil : obstacle }
    }

    /// Section 3: evaluates every condition.
    func storingConditions(
        _ response: HTTPResponse, request: HTTPRequest, _ control: Control
    ) -> StoringConditions {
        storingConditions(
            status: response.status.code, hasExpires: response.headerFields.contains(.expires), request: request,
            control)
    }

    private func storingConditions(
        status: Int, hasExpires: Bool, request: HTTPRequest, _ control: Control
    ) -> StoringConditions {
        let (directives, isTargeted) = control
        let method = request.method.rawValue
        // Section 5.2.2.3: with must-understand, no-store is for caches that do not understand the status code.
        let ignoresNoStore = directives.mustUnderstand && understands(status: status)
        let hasExplicitFreshness =
            directives.maxAge.seconds != nil || (hasExpires && !isTargeted)
            || (isShared && directives.sMaxage.seconds != nil)
        return StoringConditions(
            methodIsUnderstood: method == "GET" || method == "HEAD" || method == "POST"
                || options.extraMethods.contains(method),
            statusIsFinal: status >= 200,
            statusIsUnderstoodWhereNeeded: status != 304 && (!directives.mustUnderstand || understands(status: status)),
            noStoreIsAbsent: !directives.noStore || ignoresNoStore,
            privateAllowsStoring: !isShared || directives.isPrivate != .unqualified,
            authorizationAllowsStoring: !isShared || !request.headerFields.contains(.authorization)
                || allowsAuthenticatedStoring(directives),
            somethingAllowsStoring: directives.isPublic || (!isShared && directives.permitsPrivateStoring)
                || hasExplicitFreshness
                || Self.isHeuristicallyCacheable(status: status))
    }

    /// The reason that a response to a GET of which nothing is stored is not stored, where its status and directives
    /// are enough to know that; else nil. With all its fields
    /// ``received(_:for:stored:requestTime:responseTime:lifetimeSeconds:)`` decides the same.
    /// - Parameter response: neither 206 nor 304; has at least the fields in ``directiveFields``.
    package func obstacle(byDirectives response: HTTPResponse, to request: HTTPRequest) -> StoringObstacle? {
        storingConditions(response, request: request, control(of: response)).directiveObstacle
    }

    /// The same of a response whose only field of ``directiveFields`` is one `Cache-Control` with that value.
    package func obstacle(
        byCacheControl value: [UInt8], status: HTTPResponse.Status, to request: HTTPRequest
    ) -> StoringObstacle? {
        let control = (directives: ResponseDirectives(value), isTargeted: false)
        return storingConditions(status: status.code, hasExpires: false, request: request, control).directiveObstacle
    }

    /// Section 3.5: the directives that let a shared cache reuse a response to a request with `Authorization`.
    func allowsAuthenticatedStoring(_ directives: ResponseDirectives) -> Bool {
        directives.permitsAuthenticatedStoring || directives.isPublic || directives.sMaxage.seconds != nil
    }

    /// The reason that a response may not or should not be stored (RFC 9111 section 3).
    ///
    /// - Parameters:
    ///   - response: the final response as received.
    ///   - request: the request that it answers.
    ///   - hasContent: true if the request has content.
    ///   - policy: the result of ``policy(for:requestTime:responseTime:)`` for the response.
    ///   - lifetimeSeconds: see ``received(_:for:stored:requestTime:responseTime:lifetimeSeconds:)``.
    /// - Returns: the first obstacle; nil if it may be stored.
    public func storingObstacle(
        _ response: HTTPResponse, to request: HTTPRequest, hasContent: Bool = false, policy: StoredPolicy,
        lifetimeSeconds: Int64? = nil
    ) -> StoringObstacle? {
        storingObstacle(
            storingConditions(response, request: request, control(of: response)), response, to: request,
            hasContent: hasContent, policy: policy, lifetimeSeconds: lifetimeSeconds)
    }

    /// As above, from the conditions.
    private func storingObstacle(
        _ conditions: StoringConditions, _ response: HTTPResponse, to request: HTTPRequest, hasContent: Bool,
        policy: StoredPolicy, lifetimeSeconds: Int64?
    ) -> StoringObstacle? {
        var conditions = conditions
        let given = understands(status: response.status.code) ? lifetimeSeconds : nil
        if given != nil || (policy.lifetimeSource == .heuristic && policy.lifetimeMilliseconds > 0) {
            conditions.somethingAllowsStoring = true
        }
        if let obstacle = conditions.obstacle {
            return obstacle
        }
        if response.headerFields.count > Self.maximumFields { return .tooManyFields }
        guard let key = cacheKey(for: request) else { return .noKey }
        if request.method == .head { return .headResponse }
        if options.honorsRequestDirectives, let value = request.headerFields.combined(.cacheControl),
            RequestDirectives(value).noStore
        {
            return .requestNoStore
        }
        if request.method == .post {
            guard isReusablePost(response, key: key, policy: policy) else { return .postNotReusable }
        } else if hasContent && !options.extraMethods.contains(request.method.rawValue) {
            return .requestHasContent
        }
        if Self.dependsOnRequest(status: response.status.code) { return .dependsOnRequest }
        if SelectingFields(vary: response.headerFields.combined(.vary), request: request.headerFields) == nil {
            return .varyMatchesNothing
        }
        if !takesCookies(of: response, policy) { return .setsCookie }
        let isEverFresh =
            given.map { $0 > 0 }
            ?? (policy.lifetimeMilliseconds > policy.initialAgeMilliseconds && !policy.flags.contains(.noCache))
        let mayBeStale = policy.staleWhileRevalidateSeconds > 0 || policy.staleIfErrorSeconds > 0
        let canBeValidated = policy.hasValidator && Self.mayBeNotModified(status: response.status.code)
        if !isEverFresh && !canBeValidated && (!mayBeStale || policy.flags.contains(.staleProhibited)) {
            return .neverReusable
        }
        return nil
    }

    /// RFC 9110 section 9.3.3: explicit freshness, and `Content-Location` equal to the target URI.
    private func isReusablePost(_ response: HTTPResponse, key: CacheKey, policy: StoredPolicy) -> Bool {
        let isExplicit = [.sMaxage, .maxAge, .expires].contains(policy.lifetimeSource)
        guard isExplicit, (200...299).contains(response.status.code), response.status.code != 206,
            let location = response.headerFields.single(.contentLocation)
        else { return false }
        return cacheKey(of: location, relativeTo: key).map { $0.uri == key.uri } ?? false
    }

    /// Status codes that say something about this request's preconditions, range, content, credentials, rate or
    /// connection. Stored without `Vary`, they would answer others. RFC 6585 forbids to store 428, 429, 431 and 511.
    static func dependsOnRequest(status: Int) -> Bool {
        switch status {
        case 401, 407, 408, 411, 412, 413, 415, 416, 417, 421, 425, 426, 428, 429, 431, 511: true
        default: false
        }
    }

    /// Makes the value to be stored from a response, nil with the reason when it is not stored.
    func newResponse(
        _ response: HTTPResponse, to request: HTTPRequest, hasContent: Bool, isIfRange: Bool, stored: [StoredResponse],
        selected: Int?, requestTime: Instant, responseTime: Instant, lifetimeSeconds: Int64? = nil
    ) -> Result<NewResponse, StoringRefusal> {
        let control = control(of: response)
        let conditions = storingConditions(response, request: request, control)
        if let obstacle = conditions.directiveObstacle {
            return .failure(StoringRefusal(obstacle: obstacle))
        }
        let policy = policy(for: response, control, requestTime: requestTime, responseTime: responseTime)
        if let obstacle = storingObstacle(
            conditions, response, to: request, hasContent: hasContent, policy: policy, lifetimeSeconds: lifetimeSeconds)
        {
            return .failure(StoringRefusal(obstacle: obstacle))
        }
        guard
            let selecting = SelectingFields(vary: response.headerFields.combined(.vary), request: request.headerFields)
        else {
            return .failure(StoringRefusal(obstacle: .varyMatchesNothing))
        }
        let method: HTTPRequest.Method = request.method == .post ? .get : request.method
        var head = response
        head.headerFields = storedFields(of: response, control.directives, responseTime: responseTime)
        var new = NewResponse(
            head: head, method: method, selecting: selecting, requestTime: requestTime, responseTime: responseTime,
            policy: policy,
            replaces: stored.indices.filter { stored[$0].method == method && stored[$0].selecting == selecting },
            combines: nil,
            groups: response.headerFields.combined(.cacheGroups).flatMap { StringList.parse($0) } ?? [],
            expected: .whole(length: Self.declaredLength(of: response)),
            keepsIncomplete: options.storesPartialResponses && response.status.code == 200 && method == .get
                && policy.hasStrongValidator)
        guard response.status.code == 206 else { return .success(new) }
        // Section 3.3: a part is stored as an incomplete 200.
        guard options.storesPartialResponses, method == .get, let value = response.headerFields.single(.contentRange),
            let content = ContentRange(value), content.range != nil, Self.hasPlausibleLength(response, content),
            !Self.hasSeveralParts(response)
        else { return .failure(StoringRefusal(obstacle: .partNotUnderstood)) }
        new.head.status = .ok
        new.head.headerFields.remove(.contentRange)
        new.head.headerFields.remove(.contentLength)
        new.expected = .part(content, existing: ByteRanges())
        if let selected,
            canCombine(
                stored[selected], with: response, content: content, isIfRange: isIfRange, responseTime: responseTime)
        {
            new.head.headerFields = updatedFields(of: stored[selected], from: response, responseTime: responseTime)
            new.policy = self.policy(for: new.head, requestTime: requestTime, responseTime: responseTime)
            new.selecting = stored[selected].selecting
            new.expected = .part(
                ContentRange(
                    range: content.range, completeLength: content.completeLength ?? stored[selected].body.total),
                existing: stored[selected].body.available)
            new.combines = selected
            if !new.replaces.contains(selected) { new.replaces.append(selected) }
        } else if request.headerFields.contains(.ifRange) {
            return .failure(StoringRefusal(obstacle: .partWithoutMetadata))
        }
        return .success(new)
    }

    /// Makes the value to be stored from a response that the rules would not store, for a caller that wants that.
    ///
    /// The response's own caching directives are ignored; the restrictions of its request and status are not. Set a
    /// lifetime with ``StoredPolicy/override(lifetimeSeconds:)``. A `Vary` that matches nothing counts as none.
    ///
    /// Nil for
    /// - methods other than GET, requests with content, and requests with `no-store`;
    /// - statuses that ``understands(status:)`` does not know, 206, and those that answer the request rather than its
    ///   target, such as 401, 412 and 416: under the URL they would answer other requests;
    /// - in a shared cache, responses that belong to one user: `private`, `Set-Cookie`, an answer to `Authorization`,
    ///   and a `Vary` that matches nothing.
    ///
    /// - Parameters:
    ///   - response: the final response as received.
    ///   - request: the request as the client sent it.
    ///   - hasContent: true if the request has content.
    ///   - stored: the responses stored under its key.
    ///   - requestTime: when the request was sent.
    ///   - responseTime: when the head was received.
    /// - Returns: the response to store.
    public func storingRegardless(
        _ response: HTTPResponse, to request: HTTPRequest, hasContent: Bool = false, stored: [StoredResponse],
        requestTime: Instant, responseTime: Instant
    ) -> NewResponse? {
        let status = response.status.code
        guard request.method == .get, !hasContent, understands(status: status), status != 206,
            !Self.dependsOnRequest(status: status), response.headerFields.count <= Self.maximumFields,
            !RequestFacts(request, options: options).directives.noStore,
            !isShared || mayBeShared(response, to: request)
        else { return nil }
        let selecting =
            SelectingFields(vary: response.headerFields.combined(.vary), request: request.headerFields) ?? .none
        var head = response
        head.headerFields = storedFields(of: response, responseTime: responseTime)
        return NewResponse(
            head: head, method: .get, selecting: selecting, requestTime: requestTime, responseTime: responseTime,
            policy: policy(for: response, requestTime: requestTime, responseTime: responseTime),
            replaces: stored.indices.filter { stored[$0].method == .get && stored[$0].selecting == selecting },
            combines: nil, groups: response.headerFields.combined(.cacheGroups).flatMap { StringList.parse($0) } ?? [],
            expected: .whole(length: nil), keepsIncomplete: false)
    }

    /// Whether no part of a response belongs to the user who asked.
    private func mayBeShared(_ response: HTTPResponse, to request: HTTPRequest) -> Bool {
        directives(of: response).isPrivate == .absent && !request.headerFields.contains(.authorization)
            && !response.headerFields.contains(.setCookie)
            && SelectingFields(vary: response.headerFields.combined(.vary), request: request.headerFields) != nil
    }

    /// Section 3.4 and RFC 9110 section 15.3.7.3: both have the same strong validator, and the lengths do not
    /// contradict each other.
    func canCombine(
        _ stored: StoredResponse, with response: HTTPResponse, content: ContentRange, isIfRange: Bool,
        responseTime: Instant
    ) -> Bool {
        guard case .partial(_, let total) = stored.body, stored.policy.hasStrongValidator,
            !stored.policy.flags.contains(.neverCombined), !nominatesMore(response, than: stored),
            total == nil || content.completeLength == nil || total == content.completeLength,
            hasForm(of: stored.head, response, isIfRange: isIfRange)
        else { return false }
        return hasSameStrongValidator(stored, response, responseTime: responseTime)
    }

    /// False for a part whose message says that it has another length than its `Content-Range`, so that it is not known
    /// which bytes they are. One byte less is what ``NewResponse/finished(receivedBytes:isComplete:)`` can tell.
    static func hasPlausibleLength(_ part: HTTPResponse, _ content: ContentRange) -> Bool {
        guard let range = content.range, let length = declaredLength(of: part) else { return true }
        return length == Int64(range.count) || length == Int64(range.count) - 1
    }

    /// The value of `Content-Length`; nil without a valid one.
    static func declaredLength(of response: HTTPResponse) -> Int64? {
        response.headerFields.single(.contentLength).flatMap { FieldBytes.number($0, ceiling: .max / 16) }
    }

    /// Whether the bytes of a part are those of a representation: two content codings are two, whatever the validator
    /// says.
    /// - Parameters:
    ///   - head: of the representation.
    ///   - part: the head of the part.
    ///   - isIfRange: whether the part came for `If-Range`: then it may leave out what the client knows (RFC 9110
    ///     section 15.3.7).
    package func hasForm(of head: HTTPResponse, _ part: HTTPResponse, isIfRange: Bool) -> Bool {
        guard !Self.hasSeveralParts(part) else { return false }
        if isIfRange, !part.headerFields.contains(.contentEncoding) { return true }
        return part.headerFields[.contentEncoding] == head.headerFields[.contentEncoding]
    }

    /// Section 15.3.7.2 of RFC 9110: then `Content-Range` belongs to each part, not to the message.
    static func hasSeveralParts(_ response: HTTPResponse) -> Bool {
        response.headerFields[.contentType]?.lowercased().hasPrefix("multipart/byteranges") ?? false
    }

    func hasSameStrongValidator(_ stored: StoredResponse, _ response: HTTPResponse, responseTime: Instant) -> Bool {
        let tag = response.headerFields.single(.eTag).flatMap { EntityTag($0) }
        if let known = stored.entityTag { return tag.map { $0.matchesStrongly(known) } ?? false }
        guard tag == nil, stored.policy.flags.contains(.strongLastModified),
            let modified = response.headerFields.single(.lastModified).flatMap({ HTTPDate.parse($0, now: responseTime) }
            )
        else { return false }
        return modified == stored.policy.lastModified
    }
}

struct StoringRefusal: Error { var obstacle: StoringObstacle }
