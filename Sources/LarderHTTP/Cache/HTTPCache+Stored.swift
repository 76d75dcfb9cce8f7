import HTTPCaching
import HTTPTypes
import Larder
import SystemPackage

/// Asking what is stored, and changing it, without a fetch.
extension HTTPCache {
    /// The key under which the response to a request is stored, or the list of its variants, as the key policy makes it
    /// from the request. For the key of the variant that a request selects see `stored(_:body:_:)`.
    ///
    /// - Parameters:
    ///   - request: as for ``fetch(_:body:_:onInformational:)``.
    ///   - body: its content, if the key policy or the method (QUERY) makes it part of the key.
    ///   - options: their key policy counts.
    /// - Returns: nil for a request for which nothing is stored.
    /// - Throws: ``FetchError/Code/policyFailed``, ``FetchError/Code/unknownPolicy``.
    public func key(
        of request: HTTPRequest, body: [UInt8]? = nil, _ options: FetchOptions = FetchOptions()
    ) throws(FetchError) -> Key? {
        try question(request, body, options).primary.map { Key($0) }
    }

    /// The response that a request selects, fresh or stale, complete or not; nil if none is stored. This counts neither
    /// as a hit nor as an access, and makes no connection. Waits for the disk on the calling thread.
    ///
    ///     let stored = try cache.stored(HTTPCache.request(for: url))
    ///     if let stored, stored.isFresh { try store.pin(stored.key) }
    ///
    /// - Parameters:
    ///   - request: as for ``fetch(_:body:_:onInformational:)``.
    ///   - body: its content, if that is part of the key.
    ///   - options: their key policy counts.
    /// - Returns: a summary of it, including ``ResponseSummary/key``.
    /// - Throws: ``FetchError/Code/policyFailed``, ``FetchError/Code/unknownPolicy``; the errors of
    ///   `Store.get(_:includingExpired:)`.
    public func stored(
        _ request: HTTPRequest, body: [UInt8]? = nil, _ options: FetchOptions = FetchOptions()
    ) throws -> ResponseSummary? {
        try find(request, body, options).flatMap {
            ResponseSummary(metadata: $0.metadata, key: $0.key, now: context.now)
        }
    }

    /// As the synchronous form; the cooperative pool does not wait.
    public func stored(
        _ request: HTTPRequest, body: [UInt8]? = nil, _ options: FetchOptions = FetchOptions()
    ) async throws -> ResponseSummary? {
        try await store.performShort { [self] in try stored(request, body: body, options) }
    }

    /// The content of the response that a request selects, fresh or stale; nil if none is stored completely. This
    /// counts neither as a hit nor as an access, and makes no connection. For its file use `Body.withFileRange(_:)`.
    /// Waits for the disk on the calling thread.
    ///
    /// - Parameters:
    ///   - request: as for ``fetch(_:body:_:onInformational:)``.
    ///   - body: its content, if that is part of the key.
    ///   - options: their key policy counts.
    /// - Throws: as `stored(_:body:_:)`.
    public func storedBody(
        _ request: HTTPRequest, body: [UInt8]? = nil, _ options: FetchOptions = FetchOptions()
    ) throws -> Body? {
        // Parts that are the whole are joined a moment after the last of them has come.
        guard let found = try find(request, body, options), found.own.isComplete else { return nil }
        return found.entry.body
    }

    /// Changes how long the stored response that a request selects is fresh, until it is validated or replaced. Its
    /// `Cache-Control` stays as it is, and its age keeps counting: other caches rely on these.
    ///
    /// - Parameters:
    ///   - duration: from now on. Zero or less: it has to be validated before it is used again.
    ///   - request: as for ``fetch(_:body:_:onInformational:)``.
    ///   - body: its content, if that is part of the key.
    ///   - options: their key policy counts.
    /// - Returns: false if none is stored, or if other callers keep replacing it.
    /// - Throws: as `stored(_:body:_:)`, and `LarderError` if the store cannot be written.
    @discardableResult
    public func setFreshness(
        _ duration: Duration, of request: HTTPRequest, body: [UInt8]? = nil, _ options: FetchOptions = FetchOptions()
    ) async throws -> Bool {
        try await setFreshness(duration) { [self] in try find(request, body, options) }
    }

    /// As above, for the response under the key of a single entry.
    package func setFreshness(_ duration: Duration, ofKey key: Key) async throws -> Bool {
        let responses = changes.responses
        return try await setFreshness(duration) { try responses.findOne(key) { try responses.store.peek($0) } }
    }

    private func setFreshness(
        _ duration: Duration, _ find: @escaping @Sendable () throws -> ResponseStore.Found?
    ) async throws -> Bool {
        // Another process may replace it meanwhile: then that one is meant.
        for _ in 0..<8 {
            guard let found = try await store.performShort(find) else { return false }
            if try await changes.responses.setFreshness(duration, of: found, at: context.now) { return true }
        }
        return false
    }

    private func find(
        _ request: HTTPRequest, _ body: [UInt8]?, _ options: FetchOptions
    ) throws -> ResponseStore.Found? {
        let question = try question(request, body, options)
        guard let primary = question.primary else { return nil }
        let responses = changes.responses
        var found = try responses.peek(primary, for: question.subject.headerFields)
        if found.isEmpty, let scope = question.search {
            for variation in try responses.peekVariations(scope) where found.isEmpty {
                found = try responses.peek(scope.primary(variation), for: question.subject.headerFields)
            }
        }
        return context.rules.position(selectedBy: question.subject, stored: found.map(\.response)).map { found[$0] }
    }

    private func question(
        _ request: HTTPRequest, _ body: [UInt8]?, _ options: FetchOptions
    ) throws(FetchError) -> Question {
        let content = body.map { RequestBody($0) }
        let first = try question(request, hasContent: body != nil, body: content, options)
        guard first.wantsContent else { return first }
        return try questions.question(first, content: content ?? RequestBody([]))
    }
}

extension ResponseStore.Found {
    /// The record as a summary reads it, with the bytes of all entries in it.
    fileprivate var metadata: [UInt8] { StoredRecord(response, parts: parts.map(\.part)).encoded }
}

extension ResponseStore {
    /// Makes a stored response fresh for a time, whatever its fields say; false if it was replaced or removed
    /// meanwhile.
    func setFreshness(_ duration: Duration, of found: Found, at now: Instant) async throws -> Bool {
        var response = found.response
        response.isInvalidated = duration <= .zero
        if duration > .zero { response.policy.setFreshness(milliseconds: duration.wholeMilliseconds, from: now) }
        return try await update(found, to: response, tags: found.entry.attributes.tags)
    }
}

extension Duration {
    /// Rounded up; saturates.
    fileprivate var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        let (milliseconds, isBeyond) = seconds.multipliedReportingOverflow(by: 1_000)
        if isBeyond { return seconds < 0 ? .min : .max }
        let rest = (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
        return milliseconds.addingReportingOverflow(rest).overflow ? .max : milliseconds + rest
    }
}
