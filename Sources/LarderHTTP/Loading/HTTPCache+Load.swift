import HTTPCaching
import HTTPTypes
import Larder

/// Asking the origin.
extension HTTPCache {
    /// Loads what the store could not answer, however long it takes.
    func loadUntimed(
        _ pending: PendingLoad, body: RequestBody?, onInformational: (@Sendable (HTTPResponse) async -> Void)?
    ) async throws(FetchError) -> FetchResponse {
        if let question = pending.undecided {
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
        guard let key = collapsingKey(pending, body: body) else {
            return try await lead(load, pending, body: body, flight: nil, onInformational: onInformational)
        }
        switch flights.enter(key, load) {
        case .lead: return try await lead(load, pending, body: body, flight: key, onInformational: onInformational)
        case .alone:
            let response = try await lead(load, pending, body: body, flight: nil, onInformational: onInformational)
            if response.isStored { flights.clearPass(key) }
            return response
        case .join(let leading):
            if let response = try await follow(leading, pending) { return response }
            // What came is of no use to this request: it goes its own way, and nobody waits for it.
            return try await lead(load, pending, body: body, flight: nil, onInformational: onInformational)
        }
    }

    /// Validates in the background (RFC 5861 section 3), unless somebody does already.
    func refresh(
        _ exchange: Exchange, primary: String, found: [Shelf.Found], plan: FetchPlan, generation: UInt32
    ) {
        let load = Load(url: Self.url(of: exchange.request), generation: generation, isDetached: true)
        guard case .lead = flights.enter(primary, load, mayPass: false) else { return }
        let question = Question(
            request: exchange.request, subject: exchange.request, hasContent: false, primary: primary, plan: plan,
            url: load.url, generation: generation, needsStored: true)
        let pending = PendingLoad(question, found: found, exchange: exchange)
        start(load, pending, body: nil, flight: primary, isDetached: true, onInformational: nil)
    }

    /// The key under which a load may be shared; nil for one that is nobody else's business.
    private func collapsingKey(_ pending: PendingLoad, body: RequestBody?) -> String? {
        guard configuration.collapsesRequests, let primary = pending.primary, body == nil,
            pending.subject.method == .get, pending.exchange.purpose != .complete,
            pending.exchange.reason != .bypass, pending.exchange.reason != .request,
            pending.plan.policy.isDisjoint(with: [.doNotRead, .doNotWrite, .askIfModified]), pending.plan.user == nil
        else { return nil }
        let fields = pending.subject.headerFields
        let own: [HTTPField.Name] = [
            .range, .ifNoneMatch, .ifModifiedSince, .ifMatch, .ifUnmodifiedSince, .cacheControl,
        ]
        return own.contains { fields.contains($0) } ? nil : primary
    }

    private func lead(
        _ load: Load, _ pending: PendingLoad, body: RequestBody?, flight: String?,
        onInformational: (@Sendable (HTTPResponse) async -> Void)?
    ) async throws(FetchError) -> FetchResponse {
        start(load, pending, body: body, flight: flight, isDetached: false, onInformational: onInformational)
        let arrival = await load.arrival(isLeader: true)
        load.letGoOfResponse()
        return try arrival.get().response
    }

    private func start(
        _ load: Load, _ pending: PendingLoad, body: RequestBody?, flight: String?, isDetached: Bool,
        onInformational: (@Sendable (HTTPResponse) async -> Void)?
    ) {
        active.insert(load)
        load.start { [self] in
            let run = LoadRun(
                cache: self, load: load, pending: pending, body: body, flight: flight, isDetached: isDetached,
                onInformational: onInformational)
            await run.run()
            active.remove(load)
        }
    }

    /// Waits for another request's answer; nil when this one cannot have it.
    private func follow(_ leading: Load, _ pending: PendingLoad) async throws(FetchError) -> FetchResponse? {
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
        // Freshened, perhaps: then the store has it now.
        guard let primary = pending.primary else { return nil }
        let found = await find(primary)
        if case .serve(let served) = rules.reuse(pending.subject, stored: found.map(\.response), now: now) {
            return response(from: served, found, now: now)
        }
        return nil
    }

    /// A place among the readers of a response that is arriving, if it may answer this request too.
    private func join(_ shared: Load.Shared, _ pending: PendingLoad) -> FetchResponse? {
        let now = now
        let policy = shared.new.policy
        guard policy.isFresh(at: now), !policy.flags.contains(.noCache),
            shared.new.selecting.matches(pending.subject.headerFields), let reader = shared.spool.makeReader()
        else { return nil }
        let age = policy.ageMilliseconds(at: now)
        var head = shared.new.head
        if head.headerFields.contains(.age) || age >= 1_000 { head.headerFields[.age] = String(age / 1_000) }
        let status = rules.cacheStatus(
            forwarded: pending.exchange, receivedStatus: shared.originStatus, sentStatus: head.status.code,
            stored: policy, isCollapsed: true, now: now)
        finish(&head, status)
        return FetchResponse(
            head: head, body: ResponseBody(length: shared.spool.length) { try await reader.next() }, source: .network,
            storedStatus: nil, originStatus: shared.originStatus, ageSeconds: age / 1_000,
            freshSeconds: status.ttlSeconds, cacheStatus: configuration.addsCacheStatus ? status : nil, isStored: true)
    }

    /// What is answered when the origin failed: something stored, or the error.
    func fallback(_ pending: PendingLoad, _ error: FetchError) throws(FetchError) -> FetchResponse {
        let now = now
        var served = rules.failed(pending.exchange, stored: pending.found.map(\.response), now: now)
        if served == nil, pending.plan.policy.contains(.fallbackToCacheIfLoadFails) {
            served = serveRegardless(pending.subject, pending.found, now: now)
        }
        guard let served else { throw error }
        let status = rules.cacheStatus(
            forwarded: pending.exchange, receivedStatus: nil, sentStatus: served.head.status.code, stored: nil, now: now
        )
        return response(from: served, pending.found, source: .fallback, cacheStatus: status, now: now)
    }
}
