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
    /// The answer of the origin is stored as ever. Looks the store up on the calling thread.
    ///
    /// - Parameters:
    ///   - request: scheme (`http` or `https`), authority, path and fields.
    ///   - options: what this request wants other than the configuration says.
    /// - Returns: what is stored, if anything is, and the refreshed response to come.
    /// - Throws: the errors of a key policy; everything else comes with ``RefreshingResponse/refreshed``.
    public func fetchRefreshing(
        _ request: HTTPRequest, _ options: FetchOptions = FetchOptions()
    ) throws(FetchError) -> RefreshingResponse {
        let stored = Result { () throws(FetchError) in
            try answerWaiting(request, hasContent: false, body: nil, options.readingOnly)
        }
        return try refreshing(request, options, stored)
    }

    /// As the synchronous `fetchRefreshing`; the cooperative pool does not wait.
    ///
    /// - Parameters:
    ///   - request: scheme (`http` or `https`), authority, path and fields.
    ///   - options: what this request wants other than the configuration says.
    /// - Returns: what is stored, if anything is, and the refreshed response to come.
    /// - Throws: the errors of a key policy; everything else comes with ``RefreshingResponse/refreshed``.
    public func fetchRefreshing(
        _ request: HTTPRequest, _ options: FetchOptions = FetchOptions()
    ) async throws(FetchError) -> RefreshingResponse {
        let stored: Result<LocalAnswer, FetchError>
        do {
            stored = .success(try await answer(request, hasContent: false, body: nil, options.readingOnly))
        } catch {
            stored = .failure(error)
        }
        return try refreshing(request, options, stored)
    }

    private func refreshing(
        _ request: HTTPRequest, _ options: FetchOptions, _ stored: Result<LocalAnswer, FetchError>
    ) throws(FetchError) -> RefreshingResponse {
        var cached: FetchResponse?
        switch stored {
        case .success(.response(let response)): cached = options.watched(response)
        case .success(.load): break
        case .failure(let error): if error.code != .notCached { throw error }
        }
        var asking = options
        if asking.policyID == nil {
            asking.policy = asking.policy.intersection([.doNotWrite, .fallbackToCacheIfLoadFails]).union(.askIfModified)
        }
        let task = Task<FetchResponse, any Error> { [asking] in try await fetch(request, body: nil, asking) }
        return RefreshingResponse(cached: cached, refreshed: task)
    }
}

extension FetchOptions {
    /// What is stored, and nothing else.
    fileprivate var readingOnly: FetchOptions {
        var reading = self
        reading.policy = .doNotLoad
        reading.policyID = nil
        return reading
    }
}
