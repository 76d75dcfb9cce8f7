import HTTPTypes
import Larder
import Locks

/// Storing responses that did not come over the cache's transport.
extension HTTPCache {
    /// Stores a response of the program, as if the origin had just sent it in answer to a request: under the rules of
    /// the cache, with the lifetime and tags of the options, and with the usual invalidation.
    ///
    ///     var request = try HTTPCache.request(for: "https://example.org/news")
    ///     let response = HTTPResponse(status: .ok, headerFields: [.cacheControl: "max-age=60"])
    ///     let isStored = try await cache.store(response, body: Array("hello".utf8), for: request)
    ///
    /// - Parameters:
    ///   - response: status and fields, as an origin sends them.
    ///   - body: its content.
    ///   - request: the request that it answers; its fields count for `Vary`.
    ///   - options: as for a fetch; their policy is ignored.
    /// - Returns: false if the rules do not allow storing it, or the store did not accept it.
    /// - Throws: ``FetchError``: a key policy that fails, content that is longer or shorter than `Content-Length` says;
    ///   `LarderError` if the store cannot be read.
    @discardableResult
    public func store(
        _ response: HTTPResponse, body: [UInt8], for request: HTTPRequest, _ options: FetchOptions = FetchOptions()
    ) async throws -> Bool {
        let rest = Mutex<[UInt8]?>(body.isEmpty ? nil : body)
        return try await store(
            response,
            body: TransportBody(length: Int64(body.count)) { () throws(TransportError) in
                rest.withLock { rest in
                    defer { rest = nil }
                    return rest
                }
            }, for: request, options)
    }

    /// As above, with content that arrives piece by piece: bounded memory, whatever its length.
    ///
    /// - Parameters:
    ///   - response: status and fields, as an origin sends them.
    ///   - body: its content. An error ends the call, and the bytes before it may be stored as a part (RFC 9111 section
    ///     3.3).
    ///   - request: the request that it answers; its fields count for `Vary`.
    ///   - options: as for a fetch; their policy is ignored.
    /// - Returns: false if the rules do not allow storing it, or the store did not accept it.
    /// - Throws: ``FetchError``, and `LarderError` if the store cannot be read.
    @discardableResult
    public func store(
        _ response: HTTPResponse, body: TransportBody, for request: HTTPRequest,
        _ options: FetchOptions = FetchOptions()
    ) async throws -> Bool {
        var options = options
        (options.policy, options.policyID, options.isOffline) = (.doNotRead, nil, false)
        options.onProgress = nil
        let began = context.now
        // A client and loads of its own: no place among those to origins is taken, and no other request joins.
        let origin = OriginClient(context, GivenResponse(TransportResponse(head: response, body: body)))
        let loader = loader.beside(origin)
        let question = try questions.question(request, hasContent: false, body: nil, options, isOffline: false)
        guard case .load(let pending) = try await loader.answer(question) else { return false }
        let answer = try await loader.load(pending, body: nil, onInformational: nil)
        for try await _ in answer.body {}
        // It is stored when the last byte is shown, unless the store did not take it.
        guard answer.isStored, let summary = try await stored(request, options) else { return false }
        return summary.isComplete && summary.ageSeconds <= max(0, context.now.milliseconds(since: began)) / 1_000
    }

    /// Answers the one request that it gets with what it was given.
    private final class GivenResponse: Transport {
        private let response: Mutex<TransportResponse?>

        init(_ response: TransportResponse) { self.response = Mutex(response) }

        func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
            let given = response.withLock { response in
                defer { response = nil }
                return response
            }
            guard let given else {
                throw TransportError(.cannotConnect, mayHaveBeenSeen: false, "the response was given once")
            }
            return given
        }
    }
}
