import HTTPTypes

/// What is stored, at once, and what the origin says of it, later.
public struct RefreshingResponse: Sendable {
    /// What was stored, fresh or not; nil for nothing.
    public let cached: FetchResponse?
    /// The answer after asking the origin. Cancelling it cancels the request.
    public let refreshed: Task<FetchResponse, any Error>
}

extension HTTPCache {
    /// Returns what is stored at once, fresh or not, and asks the origin in the background; the caller can await both.
    ///
    /// The answer of the origin is stored as ever. Errors of the first part: those of a key policy; everything else comes
    /// with ``RefreshingResponse/refreshed``.
    public func fetchRefreshing(
        _ request: HTTPRequest, _ options: FetchOptions = FetchOptions()
    ) throws(FetchError) -> RefreshingResponse {
        var reading = options
        reading.policy = .doNotLoad
        reading.policyID = nil
        var cached: FetchResponse?
        do {
            if case .response(let response) = try answer(request, hasContent: false, body: nil, reading) {
                cached = options.watched(response)
            }
        } catch  where error.kind == .notCached {}
        var asking = options
        if asking.policyID == nil {
            asking.policy = asking.policy.intersection([.doNotWrite, .fallbackToCacheIfLoadFails]).union(.askIfModified)
        }
        let task = Task<FetchResponse, any Error> { [asking] in try await fetch(request, body: nil, asking) }
        return RefreshingResponse(cached: cached, refreshed: task)
    }
}
