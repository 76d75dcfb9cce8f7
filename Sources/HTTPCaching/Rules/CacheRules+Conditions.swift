import HTTPTypes

/// The client's own preconditions: RFC 9111 section 4.3.2, RFC 9110 section 13.
extension CacheRules {
    /// Whether a stored response answers the request with 304 (RFC 9111 section 4.3.2).
    ///
    /// `If-None-Match` has precedence over `If-Modified-Since`; without `Last-Modified` the date of the response is
    /// compared. Preconditions apply to responses with a status of 2xx only (RFC 9110 section 13.2.1).
    func isNotModified(_ request: HTTPRequest, facts: RequestFacts, stored: StoredResponse, now: Instant) -> Bool {
        guard facts.hasIfNoneMatch || facts.hasIfModifiedSince, (200...299).contains(stored.head.status.code),
            allowsReuse(request.method)
        else { return false }
        if facts.hasIfNoneMatch {
            guard let value = request.headerFields.combined(.ifNoneMatch) else { return false }
            if FieldBytes.trimmed(value[...]).elementsEqual([UInt8(ascii: "*")]) { return true }
            guard let tag = stored.entityTag else { return false }
            return EntityTag.list(value).contains { $0.matchesWeakly(tag) }
        }
        guard let value = request.headerFields.single(.ifModifiedSince), let since = HTTPDate.parse(value, now: now)
        else { return false }
        // The parsed policy has Date, or the time of the response, for the case without Last-Modified.
        let modified = stored.policy.flags.contains(.hasLastModified) ? stored.policy.lastModified : stored.policy.date
        return modified.seconds <= since.seconds
    }

    /// Whether `If-Range` allows a range of a stored response (RFC 9110 section 13.1.5): there is none, or it names
    /// the stored response's strong entity tag or exactly its strong modification date.
    func allowsRange(_ request: HTTPRequest, facts: RequestFacts, stored: StoredResponse, now: Instant) -> Bool {
        guard facts.hasIfRange else { return true }
        guard let value = request.headerFields.single(.ifRange) else { return false }
        if let tag = EntityTag(value) { return stored.entityTag.map { $0.matchesStrongly(tag) } ?? false }
        guard let date = HTTPDate.parse(value, now: now), stored.policy.flags.contains(.strongLastModified) else {
            return false
        }
        return stored.policy.lastModified.seconds == date.seconds
    }
}
