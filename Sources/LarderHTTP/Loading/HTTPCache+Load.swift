import HTTPCaching
import HTTPTypes
import Larder

/// Asking the origin.
extension HTTPCache {
    /// Loads what the store could not answer, however long it takes.
    func loadUntimed(
        _ pending: PendingLoad, body: RequestBody?, onInformational: (@Sendable (HTTPResponse) async -> Void)?
    ) async throws(FetchError) -> FetchResponse {
        if var question = pending.undecided {
            var body = body
            if question.wantsContent, let given = body {
                body = await gathered(given)
                question = try self.question(question, content: body ?? given)
            }
            switch try await answer(question) {
            case .response(let response): return response
            case .load(let pending):
                return try await loadUntimed(pending, body: body, onInformational: onInformational)
            }
        }
        if pending.plan.isOffline {
            let url = Self.url(of: pending.request)
            throw FetchError(.notCached, url: url, "\(url) is not in the cache, and the cache is offline")
        }
        let load = Load(url: Self.url(of: pending.request), generation: pending.generation)
        let pending = sliced(pending)
        guard let (key, isLater) = collapsingKey(pending, body: body) else {
            return try await lead(load, pending, body: body, flight: nil, onInformational: onInformational)
        }
        return try await share(load, pending, key: key, isLater: isLater, onInformational)
    }

    /// Loads together with others who want the same, where it may.
    private func share(
        _ load: Load, _ pending: PendingLoad, key: String, isLater: Bool,
        _ onInformational: (@Sendable (HTTPResponse) async -> Void)?
    ) async throws(FetchError) -> FetchResponse {
        var pending = pending
        if !isLater, pending.subject.method == .head || rules.isConditional(pending.subject),
            let leading = flights.leading(key, generation: load.generation)
        {
            return try await join(leading, load, pending, isLater: false, onInformational)
        }
        var flight = key
        if pending.subject.method == .head {
            // What comes has no body: others than HEAD can do nothing with it.
            flight += " HEAD"
        } else if pending.exchange.selected == nil, rules.isConditional(pending.subject) {
            // One alone may ask the origin in its own words. When another comes, one whole response is for all of them.
            switch flights.enter(key + " if", load, mayPass: false) {
            case .join: break
            case .lead, .leadAfter, .alone:
                return try await lead(
                    load, pending, body: nil, flight: key + " if", onInformational: onInformational)
            }
            pending.exchange.sent.headerFields[.ifNoneMatch] = nil
            pending.exchange.sent.headerFields[.ifModifiedSince] = nil
        }
        switch flights.enter(flight, load, isLater: isLater) {
        case .lead: return try await lead(load, pending, body: nil, flight: flight, onInformational: onInformational)
        case .leadAfter(let other):
            return try await lead(
                load, pending, body: nil, flight: flight, after: other, onInformational: onInformational)
        case .alone:
            if pending.exchange.purpose == .forward { pending.exchange.sent = pending.exchange.request }
            let response = try await lead(load, pending, body: nil, flight: nil, onInformational: onInformational)
            if response.isStored, response.source == .network { flights.clearPass(flight) }
            return response
        case .join(let leading): return try await join(leading, load, pending, isLater: isLater, onInformational)
        }
    }

    /// With the range in whole slices, where that is wanted.
    private func sliced(_ pending: PendingLoad) -> PendingLoad {
        guard let sliceBytes = configuration.sliceBytes, pending.exchange.purpose == .forward,
            pending.exchange.reason != .bypass, !pending.plan.policy.contains(.doNotWrite),
            let range = rules.widenedRange(of: pending.exchange.request, sliceBytes: sliceBytes)
        else { return pending }
        var sliced = pending
        sliced.exchange.sent.headerFields[.range] = range
        return sliced
    }

    private func join(
        _ leading: Load, _ load: Load, _ pending: PendingLoad, isLater: Bool,
        _ onInformational: (@Sendable (HTTPResponse) async -> Void)?
    ) async throws(FetchError) -> FetchResponse {
        if let response = try await follow(leading, pending, isLater: isLater) { return response }
        // What came is of no use to this request: it goes its own way, and no other waits for it.
        var pending = pending
        if pending.exchange.purpose == .forward { pending.exchange.sent = pending.exchange.request }
        return try await lead(load, pending, body: nil, flight: nil, onInformational: onInformational)
    }

    /// Validates in the background (RFC 5861 section 3), unless somebody does already.
    func refresh(_ exchange: Exchange, _ question: Question, primary: String, found: [Shelf.Found]) {
        // Content that is gone cannot be sent again; the next request that has to wait brings its own.
        if question.hadContent, question.content == nil { return }
        let load = Load(url: Self.url(of: exchange.request), generation: question.generation, isDetached: true)
        let flight = flight(primary, exchange.request)
        guard case .lead = flights.enter(flight, load, mayPass: false) else { return }
        var question = question
        // The method stays the one that goes to the origin; of GET and HEAD it is that of the exchange.
        if question.request.method == question.subject.method { question.request.method = exchange.request.method }
        question.request.headerFields = exchange.request.headerFields
        question.subject = exchange.request
        let pending = PendingLoad(question, found: found, exchange: exchange)
        start(
            load, pending, body: question.hadContent ? question.content.map { RequestBody($0) } : nil, flight: flight,
            isDetached: true,
            onInformational: nil)
    }

    /// The key under which a load may be shared, and whether only with one that is sent later; nil for one that no
    /// other request may share.
    private func collapsingKey(_ pending: PendingLoad, body: RequestBody?) -> (key: String, isLater: Bool)? {
        let subject = pending.subject
        guard configuration.collapsesRequests, let primary = pending.primary, body == nil,
            pending.exchange.purpose != .complete, pending.exchange.reason != .bypass,
            pending.plan.policy.isDisjoint(with: [.doNotRead, .doNotWrite, .askIfModified]), pending.plan.user == nil,
            // The conditions of a single user are that user's own business.
            rules.options.mode == .shared || !rules.isConditional(subject)
        else { return nil }
        let collapsing = rules.collapsing(of: subject)
        guard collapsing != .none else { return nil }
        var key = flight(primary, subject)
        if subject.headerFields.contains(.range) {
            // In whole slices, where those are asked for.
            guard let range = pending.exchange.sent.headerFields[.range] else { return nil }
            key += Flights.rangeMark + range
        }
        return (key, collapsing == .later)
    }

    /// What loads of a key share. What comes for credentials says little of what comes without them (RFC 9111 section
    /// 3.5).
    private func flight(_ primary: String, _ request: HTTPRequest) -> String {
        let isApart = rules.options.mode == .shared && request.headerFields.contains(.authorization)
        return isApart ? primary + " authorization" : primary
    }

    private func lead(
        _ load: Load, _ pending: PendingLoad, body: RequestBody?, flight: String?, after other: Load? = nil,
        onInformational: (@Sendable (HTTPResponse) async -> Void)?
    ) async throws(FetchError) -> FetchResponse {
        start(
            load, pending, body: body, flight: flight, after: other, isDetached: false,
            onInformational: onInformational)
        let arrival = await load.arrival(isLeader: true)
        load.letGoOfResponse()
        return try arrival.get().response
    }

    private func start(
        _ load: Load, _ pending: PendingLoad, body: RequestBody?, flight: String?, after other: Load? = nil,
        isDetached: Bool, onInformational: (@Sendable (HTTPResponse) async -> Void)?
    ) {
        active.insert(load)
        load.start { [self] in
            var pending = pending
            if let other, let flight {
                _ = await other.arrival()
                // What that one brought may be there now.
                pending = await renewed(pending)
                flights.promote(flight, load)
            }
            // Others may wait longer than the request that came first. Each leaves at its own limit; the load ends with
            // the last.
            if flight != nil, !isDetached { pending.plan.deadline = nil }
            let run = LoadRun(
                cache: self, load: load, pending: pending, body: body, flight: flight, isDetached: isDetached,
                onInformational: onInformational)
            await run.run()
            active.remove(load)
        }
    }

    /// The same request with what is stored by now.
    private func renewed(_ pending: PendingLoad) async -> PendingLoad {
        let question = Question(
            request: pending.request, subject: pending.subject, hasContent: false, primary: pending.primary,
            plan: pending.plan, url: Self.url(of: pending.request), generation: pending.generation,
            search: pending.search, needsStored: true)
        guard case .load(var renewed)? = try? await answer(question) else { return pending }
        if renewed.exchange.selected == nil {
            // For others than those who have what the conditions name.
            renewed.exchange.sent.headerFields[.ifNoneMatch] = nil
            renewed.exchange.sent.headerFields[.ifModifiedSince] = nil
        }
        return sliced(renewed)
    }

    /// Waits for another request's answer; nil when this one cannot have it.
    private func follow(
        _ leading: Load, _ pending: PendingLoad, isLater: Bool
    ) async throws(FetchError) -> FetchResponse? {
        let arrival: Load.Arrival
        switch await leading.arrival() {
        case .success(let given): arrival = given
        case .failure(let error):
            // It was not the origin that failed: those who waited before left.
            if leading.isGivenUp, !Task.isCancelled { return nil }
            // The origin just failed: asking again at once would only add to its trouble.
            if error.transport != nil {
                return try fallback(pending, error)
            }
            if Task.isCancelled { throw error }
            return nil
        }
        if let shared = arrival.shared { return join(shared, pending) }
        if arrival.response.source == .fallback {
            // It will not fare better than the one that asked.
            let error = arrival.response.originError
            return try? fallback(
                pending, error ?? FetchError(.origin, url: leading.url, "the origin failed"), isAsked: error != nil)
        }
        // Freshened, perhaps: then the store has it now.
        guard let primary = pending.primary, !isLater || arrival.response.source == .revalidated else { return nil }
        let found = await find(primary, pending.search, for: pending.subject)
        let now = now
        let request = isLater ? rules.satisfiedByValidation(pending.subject) : pending.subject
        guard case .serve(let served) = rules.reuse(request, stored: found.map(\.response), now: now),
            served.stale == nil,
            // Of several responses one was validated; to the others a request that asks for that has to ask itself.
            !isLater || leading.sentTime.map({ found[served.index].response.responseTime >= $0 }) ?? false
        else { return nil }
        let originStatus = arrival.response.originStatus
        let status = rules.cacheStatus(
            forwarded: pending.exchange, receivedStatus: originStatus, sentStatus: served.head.status.code,
            stored: found[served.index].response.policy, isCollapsed: true, now: now)
        return response(
            from: served, found, source: originStatus == 304 ? .revalidated : .hit, originStatus: originStatus,
            cacheStatus: status, now: now)
    }

    /// A place among the readers of a response that is arriving, if it may answer this request too.
    private func join(_ shared: Load.Shared, _ pending: PendingLoad) -> FetchResponse? {
        let now = now
        let (new, spool) = (shared.new, shared.spool)
        let served =
            shared.originStatus == 206
            ? rules.serve(arrivingPart: new, contentRange: shared.contentRange, to: pending.subject, now: now)
            : rules.serve(arriving: new, to: pending.subject, length: spool.length, isFollower: true, now: now)
        guard let served else { return nil }
        var body = ResponseBody.empty
        switch served.content {
        case .none: break
        case .range(let range):
            guard let reader = spool.makeReader(range) else { return nil }
            body = ResponseBody(length: Int64(range.count)) { try await reader.next() }
        default:
            guard let reader = spool.makeReader() else { return nil }
            body = ResponseBody(length: spool.length) { try await reader.next() }
        }
        var head = served.head
        if served.ageMilliseconds < 1_000, !shared.new.head.headerFields.contains(.age) {
            head.headerFields[.age] = nil
        }
        let status = rules.cacheStatus(
            forwarded: pending.exchange, receivedStatus: shared.originStatus, sentStatus: head.status.code,
            stored: shared.new.policy, isCollapsed: true, now: now)
        finish(&head, status)
        return FetchResponse(
            head: head, body: body, source: .network, storedStatus: nil, originStatus: shared.originStatus,
            ageSeconds: served.ageMilliseconds / 1_000, freshSeconds: status.ttlSeconds,
            cacheStatus: configuration.addsCacheStatus ? status : nil, isStored: true)
    }

    /// What is answered when the origin failed: something stored, or the error.
    /// - Parameter isAsked: false if it was not asked, because it had just failed.
    func fallback(
        _ pending: PendingLoad, _ error: FetchError, isAsked: Bool = true
    ) throws(FetchError) -> FetchResponse {
        let now = now
        var served = rules.failed(pending.exchange, stored: pending.found.map(\.response), now: now)
        if served == nil, pending.plan.policy.contains(.fallbackToCacheIfLoadFails) {
            served = serveRegardless(pending.subject, pending.found, now: now)
        }
        guard let served else { throw error }
        // Nothing went forward where the origin was not asked: that is a hit (RFC 9211 section 2.1).
        let status =
            isAsked
            ? rules.cacheStatus(
                forwarded: pending.exchange, receivedStatus: nil, sentStatus: served.head.status.code, stored: nil,
                now: now) : nil
        var response = response(from: served, pending.found, source: .fallback, cacheStatus: status, now: now)
        if isAsked { response.originError = error }
        return response
    }
}
