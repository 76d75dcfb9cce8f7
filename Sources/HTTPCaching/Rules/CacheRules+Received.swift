import HTTPTypes

/// Handling what comes back: RFC 9111 sections 3, 3.4, 4.3.3, 4.3.4, 4.3.5 and 4.4.
extension CacheRules {
    /// Decides how to handle a response from the next hop.
    ///
    /// - Parameters:
    ///   - response: the head as received.
    ///   - forwardedRequest: the request that was sent.
    ///   - stored: the responses stored under the primary key, in the order they had when the forwarded request was
    ///     made. Do not drop responses that were removed since from the array; apply updates only to those that still
    ///     exist.
    ///   - requestTime: when the request was sent.
    ///   - responseTime: when the head was received; also the current time.
    ///   - lifetimeSeconds: a lifetime of the caller in place of the response's own. A response whose status is
    ///     understood is then stored even if it states neither freshness nor a validator. Nil: its own.
    /// - Returns: the changes to make and the answer. Interim responses (1xx) change nothing and are passed on.
    public func received(
        _ response: HTTPResponse, for forwardedRequest: ForwardedRequest, stored: [StoredResponse],
        requestTime: Instant,
        responseTime: Instant, lifetimeSeconds: Int64? = nil
    ) -> ReceivedDecision {
        var decision = ReceivedDecision()
        let status = response.status.code
        guard status >= 200 else {
            decision.obstacle = .statusNotFinal
            return decision
        }
        decision.invalidation = invalidation(by: response, to: forwardedRequest.request)
        let selected = forwardedRequest.selected.flatMap { stored.indices.contains($0) ? $0 : nil }

        if status == 304, forwardedRequest.purpose == .complete {
            // Nothing was asked that this could answer.
            decision.obstacle = .statusNotUnderstood
            decision.answer = .fetch(unconditional(forwardedRequest))
            return decision
        }
        if let obstacle = unsolicited(status, forwardedRequest) {
            decision.obstacle = obstacle
            decision.answer = .unusable
            return decision
        }
        if status == 304, !forwardedRequest.candidates.isEmpty {
            return notModified(
                response, forwardedRequest: forwardedRequest, stored: stored, requestTime: requestTime,
                responseTime: responseTime)
        }
        if let selected, isServerError(status),
            let served = serveOnError(
                forwardedRequest, stored: stored[selected], index: selected, now: responseTime,
                isDisconnected: takesAsDisconnection(forwardedRequest))
        {
            decision.answer = .serve(served)
            return decision
        }
        if forwardedRequest.request.method == .head {
            return headReceived(
                response, forwardedRequest: forwardedRequest, stored: stored, requestTime: requestTime,
                responseTime: responseTime)
        }
        // The first look for a field hashes the names of all: not where no answer depends on it.
        let isIfRange = status == 206 && forwardedRequest.sent.headerFields.contains(.ifRange)
        if status == 206, forwardedRequest.isSliced, !answers(response, forwardedRequest, now: responseTime) {
            decision.obstacle = .partNotUnderstood
            decision.answer = .fetch(unconditional(forwardedRequest))
            return decision
        }
        if let selected, status == 206, stored[selected].body.isComplete,
            hasSameStrongValidator(stored[selected], response, responseTime: responseTime)
        {
            guard hasForm(of: stored[selected].head, response, isIfRange: isIfRange) else {
                decision.obstacle = .partNotUnderstood
                return decision
            }
            // Section 3.4: a part of what is stored already brings new fields only.
            let update = freshened(stored[selected], by: response, requestTime: requestTime, responseTime: responseTime)
            keep(
                [ReceivedDecision.Update(index: selected, response: update)], from: response, stored: stored,
                for: forwardedRequest, in: &decision)
            return decision
        }
        switch newResponse(
            response, to: forwardedRequest.request, hasContent: forwardedRequest.hasContent, isIfRange: isIfRange,
            stored: stored, selected: selected, requestTime: requestTime, responseTime: responseTime,
            lifetimeSeconds: lifetimeSeconds)
        {
        case .success(let new): decision.store = new
        case .failure(let refusal): decision.obstacle = refusal.obstacle
        }
        if forwardedRequest.purpose == .complete, let selected {
            complete(
                &decision, response, forwardedRequest: forwardedRequest, stored: stored, selected: selected,
                responseTime: responseTime)
        } else if let selected, Self.supersedes(status: status),
            forwardedRequest.purpose == .validate || answersForAll(forwardedRequest, decision.obstacle),
            decision.store?.replaces.contains(selected) != true
        {
            // Section 4.3.3: a full response says that what was validated is not current any more. So does one to a
            // plain request for it, where it has no validator.
            decision.removals.append(selected)
        }
        return decision
    }

    /// Decides on the answer if no response arrived: a stored response that may be served (RFC 9111 section 4.2.4, RFC
    /// 5861 section 4), or nil: answer 502 or 504.
    ///
    /// - Parameters:
    ///   - forwardedRequest: the request that could not be sent, or was not answered.
    ///   - stored: the responses that were passed to ``reuse(_:hasContent:stored:now:isDisconnected:)``.
    ///   - now: the current time.
    /// - Returns: the stale response to serve; nil if none may be.
    public func failed(_ forwardedRequest: ForwardedRequest, stored: [StoredResponse], now: Instant) -> ServedResponse?
    {
        guard let selected = forwardedRequest.selected, stored.indices.contains(selected) else { return nil }
        return serveOnError(forwardedRequest, stored: stored[selected], index: selected, now: now, isDisconnected: true)
    }

    /// The member for `Cache-Status` of a forwarded request (RFC 9211).
    ///
    /// - Parameters:
    ///   - forwardedRequest: the request that was sent.
    ///   - receivedStatus: the status code of the next hop; nil if there was no answer.
    ///   - sentStatus: the status code that the client gets.
    ///   - stored: the response that was or will be stored; nil for none.
    ///   - isCollapsed: true if other requests share the forwarded request.
    ///   - now: the current time.
    ///
    /// - Returns: the member of this cache.
    public func cacheStatus(
        forwarded forwardedRequest: ForwardedRequest, receivedStatus: Int?, sentStatus: Int, stored: StoredPolicy?,
        isCollapsed: Bool = false, now: Instant
    ) -> CacheStatus {
        let ttl = stored.map { ($0.lifetimeMilliseconds.subtractingSaturating($0.ageMilliseconds(at: now))) / 1_000 }
        return CacheStatus(
            cacheName: options.cacheName, outcome: .forwarded(forwardedRequest.reason),
            forwardStatus: receivedStatus == sentStatus ? nil : receivedStatus, ttlSeconds: ttl,
            isStored: stored != nil,
            isCollapsed: isCollapsed)
    }

    /// A 304 to a request without a precondition and a 206 to one without a range answer a question that was not asked
    /// (RFC 9110 sections 15.4.5 and 15.3.7): a client could only take them for the whole representation.
    private func unsolicited(_ status: Int, _ forwardedRequest: ForwardedRequest) -> StoringObstacle? {
        let fields = forwardedRequest.sent.headerFields
        switch status {
        case 304:
            let hasCondition = [.ifNoneMatch, .ifModifiedSince].contains { fields.contains($0) }
            return hasCondition ? nil : .statusNotUnderstood
        case 206 where forwardedRequest.request.method == .get:
            return fields.contains(.range) ? nil : .partNotUnderstood
        default: return nil
        }
    }

    /// Whether a full response that is not stored would have been sent to another client, too.
    private func answersForAll(_ forwardedRequest: ForwardedRequest, _ obstacle: StoringObstacle?) -> Bool {
        switch obstacle {
        case .authorization, .requestNoStore, .requestHasContent: false
        default: forwardedRequest.purpose == .forward && !forwardedRequest.sent.headerFields.contains(.range)
        }
    }

    private func serveOnError(
        _ forwardedRequest: ForwardedRequest, stored: StoredResponse, index: Int, now: Instant, isDisconnected: Bool
    ) -> ServedResponse? {
        let facts = RequestFacts(forwardedRequest.request, options: options)
        let stored = current(stored)
        guard
            let permission = permissionOnError(
                stored, request: facts.directives, now: now, isDisconnected: isDisconnected)
        else { return nil }
        return serve(forwardedRequest.request, facts: facts, stored: stored, index: index, now: now, stale: permission)
    }

    /// Section 4.3.3: statuses that replace a stored response rather than report a passing trouble.
    private static func supersedes(status: Int) -> Bool {
        (200...399).contains(status) || status == 404 || status == 410
    }

    private func notModified(
        _ response: HTTPResponse, forwardedRequest: ForwardedRequest, stored: [StoredResponse], requestTime: Instant,
        responseTime: Instant
    ) -> ReceivedDecision {
        var decision = ReceivedDecision()
        switch identify(response, forwardedRequest: forwardedRequest, stored: stored, responseTime: responseTime) {
        case .these(let indices):
            let updates = indices.map {
                ReceivedDecision.Update(
                    index: $0,
                    response: freshened(stored[$0], by: response, requestTime: requestTime, responseTime: responseTime))
            }
            keep(updates, from: response, stored: stored, for: forwardedRequest, in: &decision)
            guard forwardedRequest.purpose == .validate else { return decision }
            let newest = updates.first { $0.index == forwardedRequest.selected } ?? updates[0]
            let facts = RequestFacts(forwardedRequest.request, options: options)
            if var served = serve(
                forwardedRequest.request, facts: facts, stored: newest.response, index: newest.index, now: responseTime)
            {
                addCookies(of: response, to: &served.head, responseTime: responseTime)
                decision.answer = .serve(served)
            } else {
                decision.answer = .fetch(unconditional(forwardedRequest))
            }
        case .clients: break
        case .nothing: decision.answer = .fetch(unconditional(forwardedRequest))
        }
        return decision
    }

    /// Whether what the client asked for can be cut out of slices: a server may send less than it was asked for (RFC
    /// 9110 section 15.3.7), and of a part that has another length than it says nothing can.
    private func answers(_ slices: HTTPResponse, _ forwardedRequest: ForwardedRequest, now: Instant) -> Bool {
        let content = slices.headerFields.single(.contentRange).flatMap { ContentRange($0) }
        guard let content, let range = content.range, !Self.hasSeveralParts(slices),
            Self.declaredLength(of: slices).map({ $0 == Int64(range.count) }) ?? true,
            let served = serve(slices: slices, to: forwardedRequest.request, now: now)
        else { return false }
        // Of an unknown length the end may be what came.
        guard case .range = served.content, let total = content.completeLength else { return true }
        return wantedRange(of: forwardedRequest.request, length: total).map { $0.upperBound <= range.upperBound }
            ?? true
    }

    /// The client's request again, without what the cache added.
    private func unconditional(_ forwardedRequest: ForwardedRequest) -> ForwardedRequest {
        ForwardedRequest(
            request: forwardedRequest.request, reason: forwardedRequest.reason, hasContent: forwardedRequest.hasContent)
    }

    /// Takes over updates. What its new fields forbid to keep is removed; where only this request forbids to keep
    /// what belongs to it (its credentials, section 3.5, or its `no-store`, section 5.2.1.5), the stored response
    /// stays as it was.
    private func keep(
        _ updates: [ReceivedDecision.Update], from response: HTTPResponse, stored: [StoredResponse],
        for forwardedRequest: ForwardedRequest, in decision: inout ReceivedDecision
    ) {
        let forbidsStoring = RequestFacts(forwardedRequest.request, options: options).directives.noStore
        for update in updates {
            let head = update.response.head
            let conditions = storingConditions(head, request: forwardedRequest.request, control(of: head))
            if nominatesMore(response, than: stored[update.index]) {
                decision.removals.append(update.index)
                decision.obstacle = .varyChanged
            } else if !conditions.noStoreIsAbsent || !conditions.privateAllowsStoring {
                decision.removals.append(update.index)
                decision.obstacle = conditions.noStoreIsAbsent ? .privateResponse : .noStore
            } else if forbidsStoring {
                decision.obstacle = .requestNoStore
            } else if conditions.authorizationAllowsStoring {
                decision.updates.append(update)
            } else {
                decision.obstacle = .authorization
            }
        }
    }

    /// Section 4.3.5: a 200 to HEAD freshens the stored responses that it describes and makes the others stale.
    /// Nothing new is stored.
    private func headReceived(
        _ response: HTTPResponse, forwardedRequest: ForwardedRequest, stored: [StoredResponse], requestTime: Instant,
        responseTime: Instant
    ) -> ReceivedDecision {
        var decision = ReceivedDecision()
        decision.obstacle = .headResponse
        guard response.status.code == 200 else { return decision }
        for index in forwardedRequest.candidates
        where stored.indices.contains(index) && stored[index].head.status.code == 200 {
            if describes(response, stored[index], responseTime: responseTime) {
                let update = freshened(
                    stored[index], by: response, requestTime: requestTime, responseTime: responseTime)
                keep(
                    [ReceivedDecision.Update(index: index, response: update)], from: response, stored: stored,
                    for: forwardedRequest, in: &decision)
                let facts = RequestFacts(forwardedRequest.request, options: options)
                if index == forwardedRequest.selected,
                    var served = serve(
                        forwardedRequest.request, facts: facts, stored: update, index: index, now: responseTime)
                {
                    addCookies(of: response, to: &served.head, responseTime: responseTime)
                    decision.answer = .serve(served)
                }
            } else {
                var stale = stored[index]
                stale.isInvalidated = true
                decision.updates.append(ReceivedDecision.Update(index: index, response: stale))
            }
        }
        return decision
    }

    /// Sections 3.3 and 3.4: the answer to a request for missing bytes.
    private func complete(
        _ decision: inout ReceivedDecision, _ response: HTTPResponse, forwardedRequest: ForwardedRequest,
        stored: [StoredResponse],
        selected: Int, responseTime: Instant
    ) {
        switch response.status.code {
        case 206:
            guard let new = decision.store, new.combines == selected,
                case .part(let content, let existing) = new.expected,
                let received = content.range, let total = content.completeLength,
                Self.declaredLength(of: response).map({ $0 == Int64(received.count) }) ?? true,
                case let gaps = existing.gaps(in: 0..<total), gaps.first == received
            else {
                // Not combinable: another representation, no strong validator, or other bytes than asked for.
                if stored[selected].policy.hasStrongValidator { decision.removals.append(selected) }
                decision.store = nil
                decision.answer = .fetch(unconditional(forwardedRequest))
                return
            }
            var head = new.head
            head.headerFields.set(.contentLength, String(total))
            addCookies(of: response, to: &head, responseTime: responseTime)
            decision.answer = .combined(
                ReceivedDecision.Combination(
                    index: selected, head: head, stored: existing, received: received, missing: Array(gaps.dropFirst()))
            )
        case 416:
            decision.removals.append(selected)
            decision.store = nil
            decision.answer = .fetch(unconditional(forwardedRequest))
        case 200: break
        default:
            // The client did not ask for a range, so a refusal of one says nothing to it.
            guard !forwardedRequest.request.headerFields.contains(.range) else { break }
            decision.store = nil
            decision.answer = .fetch(unconditional(forwardedRequest))
        }
    }
}
