import HTTPCaching
import HTTPTypes
import HTTPWire
import Larder

/// Makes answers of what is stored.
struct AnswerBuilder: Sendable {
    private let context: CacheContext

    init(_ context: CacheContext) { self.context = context }

    private var rules: CacheRules { context.rules }
    private var configuration: HTTPCacheConfiguration { context.configuration }

    /// The answer made of a stored response, its own or one that was just freshened.
    func response(
        from served: ServedResponse, _ found: [ResponseStore.Found], source: FetchResponse.Source? = nil,
        originStatus: Int? = nil, cacheStatus: CacheStatus? = nil, now: Instant
    ) -> FetchResponse {
        let entry = found[served.index]
        var head = served.head
        head.status = head.status.withReason
        let status = cacheStatus ?? served.cacheStatus(name: rules.options.cacheName)
        finish(&head.headerFields, status)
        var answer = FetchResponse(
            .objects(head), body: ResponseBody(Self.segments(served.content, entry)),
            source: source ?? (served.stale == nil ? .hit : .stale), storedStatus: entry.response.head.status.code,
            originStatus: originStatus, ageSeconds: served.ageMilliseconds / 1_000, freshSeconds: served.ttlSeconds,
            cacheStatus: configuration.addsCacheStatus ? status : nil, isStored: true)
        if case .none = served.content { answer.unsentMember = entry.member }
        return answer
    }

    private static func segments(_ content: ServedResponse.Content, _ found: ResponseStore.Found) -> [ResponseBody
        .Segment]
    {
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

    /// The answer made of a response from the origin, without its body.
    /// - Parameters:
    ///   - received: what the client gets of it. Lines stay lines, unless their bytes do not tell what belongs to the
    ///     connection.
    ///   - originStatus: the status that came; nil: that of `received`.
    ///   - stored: the policy of what is stored of it; nil if none is.
    func received(
        _ received: HeadForm, _ forwarded: ForwardedRequest, originStatus: Int? = nil, stored: StoredPolicy?,
        now: Instant
    ) -> FetchResponse {
        let originStatus = originStatus ?? received.status.code
        let status = rules.cacheStatus(
            forwarded: forwarded, receivedStatus: originStatus, sentStatus: received.status.code, stored: stored,
            now: now)
        return FetchResponse(
            passedOn(received, status, now: now), body: .empty, source: .network, storedStatus: nil,
            originStatus: originStatus, ageSeconds: nil, freshSeconds: stored == nil ? nil : status.ttlSeconds,
            cacheStatus: configuration.addsCacheStatus ? status : nil, isStored: stored != nil)
    }

    /// A head without what belongs to the connection, with what every answer gets.
    private func passedOn(_ received: HeadForm, _ status: CacheStatus, now: Instant) -> HeadForm {
        if case .lines(var head) = received, head.removeConnectionFields(CacheRules.connectionFields.contains) {
            if !head.contains("date") { head.added[.date] = HTTPDate.format(now) }
            finish(&head.added, status)
            return .lines(head)
        }
        var head = received.response
        head.headerFields = head.headerFields.withoutConnectionFields()
        if !head.headerFields.contains(.date) { head.headerFields[.date] = HTTPDate.format(now) }
        finish(&head.headerFields, status)
        return .objects(head)
    }

    /// The answer made of a response that another request brings; nil where that one cannot answer this request too.
    func joined(_ shared: Load.Shared, _ request: HTTPRequest, _ forwarded: ForwardedRequest) -> FetchResponse? {
        let now = context.now
        let (new, content) = (shared.new, shared.content)
        let served =
            shared.originStatus == 206
            ? rules.serve(arrivingPart: new, contentRange: shared.contentRange, to: request, now: now)
            : rules.serve(arriving: new, to: request, length: content.length, isFollower: true, now: now)
        guard let served else { return nil }
        let body: ResponseBody?
        switch served.content {
        case .none: body = .empty
        case .range(let range): body = content.body(range)
        default: body = content.body()
        }
        guard let body else { return nil }
        var head = served.head
        if served.ageMilliseconds < 1_000, !new.head.headerFields.contains(.age) { head.headerFields[.age] = nil }
        let status = rules.cacheStatus(
            forwarded: forwarded, receivedStatus: shared.originStatus, sentStatus: head.status.code,
            stored: new.policy, isCollapsed: true, now: now)
        finish(&head.headerFields, status)
        return FetchResponse(
            .objects(head), body: body, source: .network, storedStatus: nil, originStatus: shared.originStatus,
            ageSeconds: served.ageMilliseconds / 1_000, freshSeconds: status.ttlSeconds,
            cacheStatus: configuration.addsCacheStatus ? status : nil, isStored: true)
    }

    /// The answer of the cache itself, where it may neither serve nor ask.
    func refusal(_ head: HTTPResponse) -> FetchResponse {
        var head = head
        if let name = configuration.viaName { head.headerFields.appendVia(name) }
        return FetchResponse(
            .objects(head), body: .empty, source: .network, storedStatus: nil, originStatus: nil, ageSeconds: nil,
            freshSeconds: nil, cacheStatus: nil, isStored: false)
    }

    /// Adds what every answer gets.
    func finish(_ fields: inout HTTPFields, _ status: CacheStatus) {
        if let name = configuration.viaName { fields.appendVia(name) }
        if configuration.addsCacheStatus { status.append(to: &fields) }
    }

    // MARK: Without the rules, or without the origin

    /// A stored response for a request, fresh or not, whatever it says about being used stale.
    func serveRegardless(_ request: HTTPRequest, _ found: [ResponseStore.Found], now: Instant) -> ServedResponse? {
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

    /// A complete response, where only the beginning of a newer one is stored.
    func serveWhole(
        _ request: HTTPRequest, _ found: [ResponseStore.Found], now: Instant, isDisconnected: Bool
    ) -> (served: ServedResponse, found: [ResponseStore.Found])? {
        let whole = found.filter { $0.response.body.isComplete }
        guard !whole.isEmpty, whole.count < found.count,
            case .serve(let served) = rules.reuse(
                request, stored: whole.map(\.response), now: now, isDisconnected: isDisconnected)
        else { return nil }
        return (served, whole)
    }

    /// What is answered when the origin failed: something stored, or the error.
    /// - Parameter isAsked: false if it was not asked, because it had just failed.
    func fallback(
        _ pending: LoadRequest, _ error: FetchError, isAsked: Bool = true
    ) throws(FetchError) -> FetchResponse {
        let now = context.now
        var served = rules.failed(pending.forwardedRequest, stored: pending.found.map(\.response), now: now)
        if served == nil, pending.plan.policy.contains(.fallbackToCacheIfLoadFails) {
            served = serveRegardless(pending.subject, pending.found, now: now)
        }
        var found = pending.found
        if served == nil,
            let whole = serveWhole(pending.subject, found, now: now, isDisconnected: true)
        {
            (served, found) = (whole.served, whole.found)
        }
        guard let served else { throw error }
        // Nothing went forward where the origin was not asked: that is a hit (RFC 9211 section 2.1).
        let status =
            isAsked
            ? rules.cacheStatus(
                forwarded: pending.forwardedRequest, receivedStatus: nil, sentStatus: served.head.status.code,
                stored: nil,
                now: now) : nil
        var response = response(from: served, found, source: .fallback, cacheStatus: status, now: now)
        if isAsked { response.originError = error }
        return response
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
