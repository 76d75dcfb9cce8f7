import HTTPCaching
import HTTPTypes
import Larder

/// One load from the request to the end of the body: sends, lets the rules judge what comes, applies what they say, and
/// hands the answer over once.
struct LoadRun: Sendable {
    let loader: Loader
    let load: Load
    var pending: LoadRequest
    let body: RequestBody?
    let joinKey: String?
    let isDetached: Bool
    /// What other processes wait for the end of.
    let claim: KeyClaim?
    let onInformational: (@Sendable (HTTPResponse) async -> Void)?

    private var rules: CacheRules { loader.context.rules }
    private var url: String { load.url }

    func run() async {
        let given = pending.led?.takeResponse()
        let origin = loader.origin.endpoint(of: pending.forwardedRequest.sent)
        let admission = loader.failures.admit(origin, now: loader.context.configuration.clock.now()) {
            (try? loader.builder.fallback(pending, FetchError(.origin, url: url, ""))) != nil
        }
        var isProbe = false
        switch admission {
        // It has answered already.
        case _ where given != nil: break
        case .refuse(let error): return answer(after: error, isAsked: false)
        case .probe: isProbe = true
        case .ask: break
        }
        let lastAnswer = loader.failures.lastAnswer
        do {
            try await ask(pending.forwardedRequest, origin: origin, given: given, isRepetition: false)
        } catch {
            loader.failures.failed(
                origin, error, since: lastAnswer, isProbe: isProbe, now: loader.context.configuration.clock.now())
            answer(after: error, isAsked: true)
        }
    }

    private func answer(after error: FetchError, isAsked: Bool) {
        let result: Result<FetchResponse, FetchError>
        do {
            result = .success(try loader.builder.fallback(pending, error, isAsked: isAsked))
        } catch {
            result = .failure(error)
        }
        arrive(result.map { Load.Arrival(response: $0, shared: nil) }, isShareable: nil)
    }

    private func arrive(_ result: Result<Load.Arrival, FetchError>, isShareable: Bool?) {
        // Out of the joinable first, unless the others can have it: a request that comes now must find the store or ask
        // again.
        if (try? result.get().shared) == nil {
            if let joinKey { loader.joinable.leave(joinKey, load, isShareable: isShareable) }
            claim?.releaseSoon()
        }
        load.arrive(result)
    }

    /// One request and its answer.
    /// - Parameter given: the answer, if it is there.
    private func ask(
        _ forwardedRequest: ForwardedRequest, origin: String, given: TransportResponse? = nil, isRepetition: Bool
    ) async throws(FetchError) {
        var requestTime = loader.context.now
        var received: TransportResponse
        if let given {
            received = given
            requestTime = load.sentTime ?? requestTime
        } else {
            load.markSent(at: requestTime)
            received = try await loader.origin.send(
                forwardedRequest, as: pending, url: url, body: isRepetition && body?.isReplayable != true ? nil : body,
                onInformational: onInformational)
        }
        loader.failures.succeeded(origin)
        let responseTime = loader.context.now
        let stored = pending.found.map(\.response)
        var decision = rules.received(
            received.head, for: forwardedRequest, stored: stored, requestTime: requestTime, responseTime: responseTime,
            lifetimeSeconds: pending.plan.secondsToCache)
        reconsider(&decision, received.head, forwardedRequest, requestTime: requestTime, responseTime: responseTime)

        // Before any caller hears of the answer (section 4.4).
        var pending = pending
        if let invalidation = decision.invalidation {
            // What this very request invalidates does not keep its own response out (RFC 9110 section 9.3.3); what
            // others have invalidated since does.
            let isCurrent =
                pending.primary.map { loader.changes.generations.current($0) == pending.generation } ?? false
            let isListCurrent =
                pending.search.map { loader.changes.generations.current($0.listKey) == $0.generation } ?? false
            await loader.changes.invalidate(invalidation, pending.plan.keyPolicy)
            if isCurrent, let primary = pending.primary {
                pending.generation = loader.changes.generations.current(primary)
            }
            if isListCurrent, let scope = pending.search {
                pending.search?.generation = loader.changes.generations.current(scope.listKey)
            }
        }
        let updated = await loader.changes.apply(decision, to: pending)
        if case .fetch(let again) = decision.answer, !isRepetition {
            await drain(received.body)
            // Its place at the host and its connection go before another is asked for.
            received.body = TransportBody(length: 0) { () throws(TransportError) in nil }
            try await ask(again, origin: origin, isRepetition: true)
            return
        }
        if case .unusable = decision.answer {
            // What is stored is not served for it: the origin answers, and a stale response would hide how.
            let error = FetchError(
                TransportError(
                    .malformedResponse, mayHaveBeenSeen: true,
                    "a \(received.head.status.code) came to a request that did not ask for one"), url)
            if pending.plan.policy.contains(.fallbackToCacheIfLoadFails) { throw error }
            return arrive(.failure(error), isShareable: nil)
        }
        await answer(received, decision, forwardedRequest, pending, updated, now: responseTime)
    }

    /// What the options change of what the rules say.
    private func reconsider(
        _ decision: inout ReceivedDecision, _ head: HTTPResponse, _ forwardedRequest: ForwardedRequest,
        requestTime: Instant,
        responseTime: Instant
    ) {
        let plan = pending.plan
        if plan.policy.contains(.doNotWrite) || pending.primary == nil {
            decision.store = nil
            decision.updates = []
            return
        }
        if decision.store == nil, !plan.respectsCacheControl, decision.obstacle != nil,
            case .asReceived = decision.answer,
            var new = rules.storingRegardless(
                head, to: forwardedRequest.request, hasContent: forwardedRequest.hasContent,
                stored: pending.found.map(\.response),
                requestTime: requestTime, responseTime: responseTime)
        {
            if plan.secondsToCache == nil,
                [.none, .invalid].contains(new.policy.lifetimeSource) || new.policy.lifetimeMilliseconds <= 0
            {
                new.policy.override(lifetimeSeconds: plan.defaultLifetimeSeconds)
            }
            new.policy.flags.subtract([.noCache])
            decision.store = new
        }
        if decision.store != nil { plan.adjust(&decision.store!.policy) }
        for index in decision.updates.indices {
            let old = pending.found[decision.updates[index].index].response.policy
            // A lifetime that was given stays given.
            if let seconds = plan.secondsToCache {
                decision.updates[index].response.policy.override(lifetimeSeconds: seconds)
            } else if old.lifetimeSource == .override, !old.isSuperseded {
                let given = old.lifetimeMilliseconds - old.initialAgeMilliseconds
                decision.updates[index].response.policy.override(lifetimeSeconds: given / 1_000)
            }
        }
    }

    private func answer(
        _ received: TransportResponse, _ decision: ReceivedDecision, _ forwardedRequest: ForwardedRequest,
        _ pending: LoadRequest,
        _ found: [ResponseStore.Found], now responseTime: Instant
    ) async {
        let code = received.head.status.code
        if case .serve(let served) = decision.answer {
            let status = rules.cacheStatus(
                forwarded: forwardedRequest, receivedStatus: code, sentStatus: served.head.status.code,
                stored: decision.store?.policy, now: responseTime)
            let source: FetchResponse.Source = served.stale == nil ? .revalidated : .fallback
            let response = loader.builder.response(
                from: served, found, source: source, originStatus: code, cacheStatus: status, now: responseTime)
            arrive(
                .success(Load.Arrival(response: response, shared: nil)),
                isShareable: served.stale == nil ? isReusable(found[served.index].response.policy) : nil)
            if decision.store == nil {
                await drain(received.body)
                return
            }
        }
        var storing: Storing?
        if let new = decision.store {
            storing = await Storing(
                changes: loader.changes, lookup: loader.lookup, pending: pending, new: new, found: found,
                length: received.body.length, isAwaited: claim != nil)
        }
        if storing == nil, let obstacle = decision.obstacle {
            loader.changes.logObstacle(obstacle, url)
        }
        var isShareable: Bool? = storing != nil
        if storing == nil, let obstacle = decision.obstacle, !rules.isLasting(obstacle, status: code) {
            isShareable = nil
        }
        await deliver(received, decision, forwardedRequest, found, storing, isShareable: isShareable, now: responseTime)
    }

    /// Whether a response that was just validated can answer others without asking again.
    private func isReusable(_ policy: StoredPolicy) -> Bool {
        policy.isFresh(at: loader.context.now) && !policy.flags.contains(.noCache)
    }

    /// Hands over a response whose body is arriving, and moves the body.
    private func deliver(
        _ received: TransportResponse, _ decision: ReceivedDecision, _ forwardedRequest: ForwardedRequest,
        _ found: [ResponseStore.Found],
        _ storing: Storing?, isShareable: Bool?, now: Instant
    ) async {
        let code = received.head.status.code
        let load = load
        let hasReader: Bool
        if case .serve = decision.answer { hasReader = false } else { hasReader = true }
        let own = answer(own: storing?.new, received, decision, forwardedRequest, now: now)
        // Others who wait for it have it from a spool: where the store fails, too.
        if own == nil, let whole = received.body.whole, case .asReceived = decision.answer,
            storing.map({ $0.takesWhole && load.waiterCount <= 1 }) ?? true
        {
            // Who comes from now on does not wait for what may be of no use to others.
            if storing != nil, let joinKey { loader.joinable.leave(joinKey, load, isShareable: isShareable) }
            let isStored = await storing?.store(whole) ?? false
            var response = head(received, decision, forwardedRequest, nil, isStored: isStored, now: now)
            response.body = whole.isEmpty ? .empty : ResponseBody([.bytes(whole)])
            arrive(.success(Load.Arrival(response: response, shared: nil)), isShareable: isShareable)
            await claim?.release()
            return
        }
        // Where a load is not shared, each client would have one of its own.
        let isSlice = joinKey != nil && forwardedRequest.isSliced
        var (arriving, length) = (received.body, received.body.length)
        if isSlice, length == nil, let range = storing?.new.announcedRange {
            // It comes to its end without a reader, so it has to have one.
            length = Int64(range.count)
            arriving = arriving.limited(to: Int64(range.count))
        }
        let spool = Spool(
            length: length, sink: storing?.sink,
            isDetached: isDetached || !hasReader || own?.head.status == .notModified, held: loader.held,
            abandoned: loader.abandoned,
            usefulRest: isSlice ? loader.context.configuration.sliceBytes ?? 0 : 0,
            isIndispensable: { storing?.isIndispensable ?? false }
        ) { [weak load] in load?.cancel() }
        var range: Range<Int64>?
        if case .range(let wanted)? = own?.content { range = wanted }
        if hasReader, let reader = spool.makeReader(range) {
            var response = head(received, decision, forwardedRequest, own?.head, isStored: storing != nil, now: now)
            switch own?.content {
            case nil: response.body = body(decision, reader, received, found, forwardedRequest)
            case .none?: break
            default:
                let length = range.map { Int64($0.count) } ?? received.body.length
                response.body = ResponseBody(length: length, holder: reader.spool) { try await reader.next() }
            }
            var shared: Load.Shared?
            // What came for the leader's own range, after slices were of no use, is not what others wait for. Nor is a
            // part with a byte less than it says: no range can be cut out of it.
            let isForAll = forwardedRequest.isSliced || !pending.forwardedRequest.isSliced
            let announced = storing?.new.announcedRange.map { Int64($0.count) }
            let isAsLong = announced == nil || received.body.length == nil || received.body.length == announced
            if let storing, forwardedRequest.purpose != .complete, isForAll, isAsLong {
                shared = Load.Shared(
                    new: storing.new, contentRange: received.head.headerFields[.contentRange],
                    content: .arriving(spool),
                    originStatus: code)
            }
            arrive(.success(Load.Arrival(response: response, shared: shared)), isShareable: isShareable)
        }
        let isWhole = await Pump(
            url: url, body: arriving, spool: spool, storing: storing, claim: claim,
            clock: loader.context.configuration.clock
        ).run()
        if let joinKey { loader.joinable.leave(joinKey, load, isShareable: isShareable) }
        await claim?.release()
        if let storing { await carryThrough { await storing.settle(isWhole: isWhole) } }
    }

    /// What the client gets of a whole response where that is not the whole: a range that the origin did not cut out
    /// (RFC 9110 section 14.2 lets it ignore `Range`), or 304 where its conditions were not sent as they were. Only of
    /// a response that is stored: of others the client gets what came. And what a client asked for of the slices that
    /// came.
    private func answer(
        own new: NewResponse?, _ received: TransportResponse, _ decision: ReceivedDecision,
        _ forwardedRequest: ForwardedRequest,
        now: Instant
    ) -> ServedResponse? {
        guard case .asReceived = decision.answer, forwardedRequest.request.method == .get else { return nil }
        if received.head.status == .partialContent, forwardedRequest.isSliced {
            return rules.serve(slices: received.head, to: forwardedRequest.request, now: now)
        }
        guard received.head.status == .ok, var new else { return nil }
        var request = forwardedRequest.request
        if forwardedRequest.purpose == .complete { request.headerFields[.range] = nil }
        let conditions: [HTTPField.Name] = [.ifNoneMatch, .ifModifiedSince]
        if conditions.allSatisfy({ forwardedRequest.sent.headerFields[$0] == request.headerFields[$0] }) {
            // The origin has judged them.
            request.headerFields[.ifNoneMatch] = nil
            request.headerFields[.ifModifiedSince] = nil
        }
        // The first caller gets the fields that are not stored, too.
        new.head = received.head
        var served = rules.serve(
            arriving: new, to: request, length: received.body.length, isFollower: false, now: now)
        served?.head.headerFields[.age] = received.head.headerFields[.age]
        return served?.content == .whole ? nil : served
    }

    /// Head and origin of an answer that comes from the network.
    private func head(
        _ received: TransportResponse, _ decision: ReceivedDecision, _ forwardedRequest: ForwardedRequest,
        _ own: HTTPResponse?,
        isStored: Bool, now: Instant
    ) -> FetchResponse {
        var head = own ?? received.head
        if case .combined(let combination) = decision.answer { head = combination.head }
        return loader.builder.received(
            .objects(head), forwardedRequest, originStatus: received.head.status.code,
            stored: isStored ? decision.store?.policy : nil, now: now)
    }

    /// What the client gets of a body that is arriving, and of stored parts that it completes.
    private func body(
        _ decision: ReceivedDecision, _ reader: SpoolReader, _ received: TransportResponse,
        _ found: [ResponseStore.Found],
        _ forwardedRequest: ForwardedRequest
    ) -> ResponseBody {
        let arriving = ResponseBody(length: received.body.length, holder: reader.spool) { try await reader.next() }
        guard case .combined(let combination) = decision.answer else { return arriving }
        let loader = loader
        let pending = pending
        let entry = found[combination.index]
        var steps = combination.stored.ranges.map { ($0, CombinedBody.Step.stored(entry.segments($0))) }
        let exact = ExactBody(arriving, count: combination.received.count, url: url)
        steps.append((combination.received, .arriving(exact)))
        for gap in combination.missing {
            steps.append(
                (
                    gap,
                    .missing {
                        try await loader.loadGap(gap, of: combination.head, sent: forwardedRequest.sent, for: pending)
                    }
                )
            )
        }
        steps.sort { $0.0.lowerBound < $1.0.lowerBound }
        let all = CombinedBody(steps.map(\.1))
        let length = steps.reduce(0) { $0 + Int64($1.0.count) }
        return ResponseBody(length: length, holder: reader.spool) { try await all.next() }
    }

    private func drain(_ body: TransportBody) async {
        // The connection can be used again after a short body; a long one is not worth waiting for.
        var count = 0
        while count < 1 << 20, let piece = try? await body.next() { count += piece.count }
    }
}
