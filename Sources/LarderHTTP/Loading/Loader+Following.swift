import HTTPCaching
import HTTPTypes

/// Answering a request with what another request brings.
extension Loader {
    /// Waits for another request's answer; nil when this one cannot have it.
    func follow(
        _ leading: Load, _ pending: LoadRequest, isLater: Bool
    ) async throws(FetchError) -> FetchResponse? {
        let arrival: Load.Arrival
        switch await leading.arrival() {
        case .success(let given): arrival = given
        case .failure(let error):
            // It was not the origin that failed: those who waited before left.
            if leading.isGivenUp, !Task.isCancelled { return nil }
            // The origin just failed: asking again at once would only add to its trouble.
            if error.transport != nil {
                return try builder.fallback(pending, error)
            }
            if Task.isCancelled { throw error }
            return nil
        }
        if let shared = arrival.shared {
            return builder.joined(shared, pending.subject, pending.forwardedRequest)
        }
        // It may have found that another process is loading the response: each reads there for itself.
        if arrival.response.source == .network, !isLater, changes.store.isShared,
            case .response(let response)? = try? await arriving(pending)
        {
            return response
        }
        if arrival.response.source == .fallback {
            // It will not fare better than the one that asked.
            let error = arrival.response.originError
            return try? builder.fallback(
                pending, error ?? FetchError(.origin, url: leading.url, "the origin failed"), isAsked: error != nil)
        }
        // Freshened, perhaps: then the store has it now.
        guard let primary = pending.primary, !isLater || arrival.response.source == .revalidated else { return nil }
        let found = await lookup.find(primary, pending.search, for: pending.subject)
        let now = context.now
        let request = isLater ? context.rules.satisfiedByValidation(pending.subject) : pending.subject
        guard case .serve(let served) = context.rules.reuse(request, stored: found.map(\.response), now: now),
            served.stale == nil,
            // Of several responses one was validated; to the others a request that asks for that has to ask itself.
            !isLater || leading.sentTime.map({ found[served.index].response.responseTime >= $0 }) ?? false
        else { return nil }
        let originStatus = arrival.response.originStatus
        let status = context.rules.cacheStatus(
            forwarded: pending.forwardedRequest, receivedStatus: originStatus, sentStatus: served.head.status.code,
            stored: found[served.index].response.policy, isCollapsed: true, now: now)
        return builder.response(
            from: served, found, source: originStatus == 304 ? .revalidated : .hit, originStatus: originStatus,
            cacheStatus: status, now: now)
    }
}
