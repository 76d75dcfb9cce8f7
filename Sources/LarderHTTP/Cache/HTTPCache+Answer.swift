import HTTPCaching
import HTTPTypes
import Larder

/// Answering from the store.
extension HTTPCache {
    /// What the store says to a request under the cache's default options, at once: for an event loop. Where that would
    /// take waiting for a disk, the answer is to load, which asks the store again.
    package func answer(_ request: HTTPRequest, hasContent: Bool) throws(FetchError) -> LocalAnswer {
        let question = try question(request, hasContent: hasContent, body: nil, FetchOptions())
        if question.wantsContent { return .load(PendingLoad(undecided: question)) }
        guard question.needsStored, let primary = question.primary else { return try answer(question, []) }
        guard let found = findAtOnce(primary, question.search, for: question.subject) else {
            return .load(PendingLoad(undecided: question))
        }
        return try answer(question, found)
    }

    /// What the store says to a request; the cooperative pool does not wait.
    func answer(
        _ request: HTTPRequest, hasContent: Bool, body: RequestBody?, _ options: FetchOptions
    ) async throws(FetchError) -> LocalAnswer {
        let question = try question(request, hasContent: hasContent, body: body, options)
        return try await answer(question)
    }

    /// As above, waiting on the calling thread.
    func answerWaiting(
        _ request: HTTPRequest, hasContent: Bool, body: RequestBody?, _ options: FetchOptions
    ) throws(FetchError) -> LocalAnswer {
        let question = try question(request, hasContent: hasContent, body: body, options)
        if question.wantsContent { return .load(PendingLoad(undecided: question)) }
        var found: [Shelf.Found] = []
        if question.needsStored, let primary = question.primary {
            found = findWaiting(primary, question.search, for: question.subject)
        }
        return try answer(question, found)
    }

    /// What the store says to a question; the cooperative pool does not wait.
    func answer(_ question: Question) async throws(FetchError) -> LocalAnswer {
        if question.wantsContent { return .load(PendingLoad(undecided: question)) }
        var found: [Shelf.Found] = []
        if question.needsStored, let primary = question.primary {
            found = await find(primary, question.search, for: question.subject)
        }
        return try answer(question, found)
    }

    private func answer(_ question: Question, _ found: [Shelf.Found]) throws(FetchError) -> LocalAnswer {
        let now = now
        let (subject, plan, url, hasContent) = (question.subject, question.plan, question.url, question.hasContent)
        guard question.reads else {
            if plan.isOffline || plan.policy.contains(.doNotLoad) { throw notCached(url) }
            let exchange = Exchange(request: subject, reason: .bypass, hasContent: hasContent)
            return .load(PendingLoad(question, found: found, exchange: exchange))
        }
        let use = try use(of: found, for: subject, plan: plan, now: now, url: url)
        if use == .use, !hasContent, let served = serveRegardless(subject, found, now: now) {
            return .response(response(from: served, found, now: now))
        }
        if plan.policy.contains(.doNotLoad) { throw notCached(url) }
        let asksFirst = use == .load || plan.policy.contains(.askIfModified)
        var found = found
        if asksFirst {
            // Also when the origin fails: what had to be validated before its use is not used without.
            for index in found.indices { found[index].response.isInvalidated = true }
        }
        let stored = found.map(\.response)
        switch rules.reuse(
            subject, hasContent: hasContent, stored: stored, now: now, isDisconnected: plan.isOffline)
        {
        case .serve(let served):
            if let background = served.background, let primary = question.primary {
                refresh(background, question, primary: primary, found: found)
            }
            return .response(response(from: served, found, now: now))
        case .refuse(let head):
            if plan.isOffline { throw notCached(url) }
            return .response(refusal(head))
        case .forward(let exchange): return .load(PendingLoad(question, found: found, exchange: exchange))
        }
    }

    /// What the policy says of what is stored, before the rules are asked.
    private func use(
        of found: [Shelf.Found], for request: HTTPRequest, plan: FetchPlan, now: Instant, url: String
    ) throws(FetchError) -> Reuse {
        if let user = plan.user {
            guard let candidate = found.first(where: { $0.response.selecting.matches(request.headerFields) }) else {
                return .followRules
            }
            do {
                return try user.reuse(candidate.response, for: request, now: now)
            } catch {
                throw FetchError(.policyFailed, url: url, "the policy failed for \(url): \(error)")
            }
        }
        return plan.policy.ignoresExpiry ? .use : .followRules
    }

    private func notCached(_ url: String) -> FetchError {
        FetchError(.notCached, url: url, "\(url) is not in the cache, and loading it is not allowed")
    }

    /// A stored response for a request, fresh or not, whatever it says about being used stale.
    func serveRegardless(_ request: HTTPRequest, _ found: [Shelf.Found], now: Instant) -> ServedResponse? {
        var request = request
        request.headerFields[.cacheControl] = nil
        request.headerFields[.pragma] = nil
        let loosened = found.map { $0.response.alwaysFresh }
        guard case .serve(var served) = rules.reuse(request, stored: loosened, now: now) else { return nil }
        let policy = found[served.index].response.policy
        served.lifetimeMilliseconds = policy.lifetimeMilliseconds
        // The caller accepts any staleness.
        served.stale = policy.isFresh(at: now) ? nil : .maxStale
        return served
    }

    // MARK: Answers

    /// The answer made of a stored response, its own or one that was just freshened.
    func response(
        from served: ServedResponse, _ found: [Shelf.Found], source: FetchResponse.Source? = nil,
        originStatus: Int? = nil, cacheStatus: CacheStatus? = nil, now: Instant
    ) -> FetchResponse {
        let entry = found[served.index]
        var head = served.head
        head.status = head.status.withReason
        let status = cacheStatus ?? served.cacheStatus(name: rules.options.cacheName)
        finish(&head, status)
        return FetchResponse(
            head: head, body: ResponseBody(Self.segments(served.content, entry)),
            source: source ?? (served.stale == nil ? .hit : .stale), storedStatus: entry.response.head.status.code,
            originStatus: originStatus, ageSeconds: served.ageMilliseconds / 1_000, freshSeconds: served.ttlSeconds,
            cacheStatus: configuration.addsCacheStatus ? status : nil, isStored: true)
    }

    private static func segments(_ content: ServedResponse.Content, _ found: Shelf.Found) -> [ResponseBody.Segment] {
        switch content {
        case .none: return []
        case .whole: return found.segments(0..<(found.response.body.total ?? 0))
        case .range(let range): return found.segments(range)
        case .multipart(let parts):
            var segments: [ResponseBody.Segment] = []
            for (index, range) in parts.ranges.enumerated() {
                segments.append(.bytes(parts.header(of: index)))
                segments += found.segments(range)
            }
            segments.append(.bytes(parts.trailer))
            return segments
        }
    }

    private func refusal(_ head: HTTPResponse) -> FetchResponse {
        var head = head
        if let name = configuration.viaName { head.headerFields.appendVia(name) }
        return FetchResponse(
            head: head, body: .empty, source: .network, storedStatus: nil, originStatus: nil, ageSeconds: nil,
            freshSeconds: nil, cacheStatus: nil, isStored: false)
    }

    /// Adds what every answer gets.
    func finish(_ head: inout HTTPResponse, _ status: CacheStatus) {
        if let name = configuration.viaName { head.headerFields.appendVia(name) }
        if configuration.addsCacheStatus { status.append(to: &head.headerFields) }
    }

    static func url(of request: HTTPRequest) -> String {
        "\(request.scheme ?? "http")://\(request.authority ?? "")\(request.path ?? "")"
    }
}

extension StoredResponse {
    /// The same response as one that never goes stale.
    fileprivate var alwaysFresh: StoredResponse {
        var result = self
        result.isInvalidated = false
        result.policy.flags.subtract([.noCache, .staleProhibited])
        result.policy.lifetimeSource = .override
        result.policy.lifetimeMilliseconds = .max
        return result
    }
}
