import HTTPTypes

/// The stored response, immediately, and the answer of the origin, later.
public struct RefreshingResponse: Sendable {
    /// The stored response, fresh or not; nil if there was none.
    public let cached: FetchResponse?
    /// The answer after asking the origin. Cancelling it cancels the request.
    public let refreshed: Task<FetchResponse, any Error>
}

extension HTTPCache {
    /// Returns the stored response immediately, fresh or not, and asks the origin in the background; the caller can
    /// await both.
    ///
    /// The answer of the origin is stored as usual. Looks up the store on the calling thread.
    ///
    /// - Parameters:
    ///   - request: scheme (`http` or `https`), authority, path and fields.
    ///   - options: settings of this request that differ from the configuration.
    /// - Returns: the stored response, if there is one, and the refreshed response to come.
    /// - Throws: the errors of a key policy; ``RefreshingResponse/refreshed`` has all other errors.
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
    ///   - options: settings of this request that differ from the configuration.
    /// - Returns: the stored response, if there is one, and the refreshed response to come.
    /// - Throws: the errors of a key policy; ``RefreshingResponse/refreshed`` has all other errors.
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
