import HTTPTypes

/// The time limit of a fetch as a whole.
extension HTTPCache {
    /// Loads what the store could not answer. Returns when the head of the answer is there.
    ///
    /// ``Timeouts/total`` is each caller's own: a load that others wait for too goes on without the caller whose time
    /// is over.
    package func load(
        _ pending: PendingLoad, body: RequestBody?, onInformational: (@Sendable (HTTPResponse) async -> Void)?
    ) async throws(FetchError) -> FetchResponse {
        guard let deadline = pending.plan.deadline else {
            return try await loadUntimed(pending, body: body, onInformational: onInformational)
        }
        let url = Self.url(of: pending.request)
        let error = FetchError(.timedOut, url: url, "the fetch of \(url) took longer than Timeouts.total allows")
        var response = try await deadline.limit(error) { [self] in
            do throws(FetchError) {
                return .success(try await loadUntimed(pending, body: body, onInformational: onInformational))
            } catch {
                return .failure(error)
            }
        }.get()
        if case .live(let pull) = response.body.source {
            response.body = ResponseBody(length: response.body.length) {
                try await deadline.limit(error as any Error) { () async -> Result<[UInt8]?, any Error> in
                    do { return .success(try await pull()) } catch { return .failure(error) }
                }.get()
            }
        }
        return response
    }
}
