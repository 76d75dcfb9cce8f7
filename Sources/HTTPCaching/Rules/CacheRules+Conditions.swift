import HTTPTypes

/// The client's own preconditions: RFC 9111 section 4.3.2, RFC 9110 section 13.
extension CacheRules {
    /// Whether a stored response answers the request with 304 (RFC 9111 section 4.3.2).
    ///
    /// `If-None-Match` has precedence over `If-Modified-Since`; without `Last-Modified` the date of the response is
    /// compared. Preconditions apply to responses with a status of 2xx only (RFC 9110 section 13.2.1).
    func isNotModified(_ request: HTTPRequest, facts: RequestFacts, stored: StoredResponse, now: Instant) -> Bool {
        guard facts.hasIfNoneMatch || facts.hasIfModifiedSince, allowsReuse(request.method) else { return false }
        return isNotModified(
            ifNoneMatch: facts.hasIfNoneMatch ? request.headerFields.combined(.ifNoneMatch) : nil,
            ifModifiedSince: facts.hasIfModifiedSince ? request.headerFields.single(.ifModifiedSince) : nil,
            status: stored.head.status.code, tag: stored.entityTag, policy: stored.policy, now: now)
    }

    /// The same, from the values of the fields.
    func isNotModified(
        ifNoneMatch: [UInt8]?, ifModifiedSince: [UInt8]?, status: Int, tag: @autoclosure () -> EntityTag?,
        policy: StoredPolicy, now: Instant
    ) -> Bool {
        guard (200...299).contains(status) else { return false }
        if let ifNoneMatch {
            if FieldBytes.trimmed(ifNoneMatch[...]).elementsEqual([UInt8(ascii: "*")]) { return true }
            guard let tag = tag() else { return false }
            return EntityTag.list(ifNoneMatch).contains { $0.matchesWeakly(tag) }
        }
        guard let ifModifiedSince, let since = HTTPDate.parse(ifModifiedSince, now: now) else { return false }
        // The parsed policy has Date, or the time of the response, for the case without Last-Modified.
        let modified = policy.flags.contains(.hasLastModified) ? policy.lastModified : policy.date
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
