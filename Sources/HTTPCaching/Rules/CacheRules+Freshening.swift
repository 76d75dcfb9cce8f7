import HTTPTypes

/// Freshening stored responses: RFC 9111 sections 3.2, 4.3.4 and 4.3.5.
extension CacheRules {
    /// A stored response with the fields of a newer one.
    func freshened(_ stored: StoredResponse, by response: HTTPResponse, requestTime: Instant, responseTime: Instant)
        -> StoredResponse
    {
        var result = stored
        result.head.headerFields = updatedFields(of: stored, from: response, responseTime: responseTime)
        result.requestTime = requestTime
        result.responseTime = responseTime
        result.policy = policy(for: result.head, requestTime: requestTime, responseTime: responseTime)
        if stored.policy.flags.contains(.neverCombined) { result.policy.flags.insert(.neverCombined) }
        result.isInvalidated = false
        return result
    }

    /// Whether an update nominates request fields that did not select the stored response (RFC 9111 section 4.1).
    ///
    /// What the request that brought the stored response had in those fields is not known, so the response cannot be
    /// kept for requests that may differ in them. The client that asked now may have it: the update answers its
    /// request.
    ///
    /// The same holds for an update with another `No-Vary-Search` than the stored response: what it may answer is
    /// decided by where it is stored.
    func nominatesMore(_ response: HTTPResponse, than stored: StoredResponse) -> Bool {
        if response.headerFields.contains(.noVarySearch), URLVariation(of: response) != URLVariation(of: stored.head) {
            return true
        }
        guard let vary = response.headerFields.combined(.vary) else { return false }
        guard let named = SelectingFields(vary: vary, request: HTTPFields()) else { return true }
        let known = Set(stored.selecting.fields.map(\.name))
        return !named.fields.allSatisfy { known.contains($0.name) }
    }

    /// Which stored responses a 304 identifies for an update.
    enum Identified: Equatable {
        case these([Int])
        /// One that the client set; nothing stored here is current.
        case clients
        case nothing
    }

    /// Section 4.3.4: the candidates with the same strong validator, otherwise the most recent one with the same weak
    /// validators, otherwise without any validator the one that was asked about.
    ///
    /// A 304 stands for a 200 (RFC 9110 section 15.4.5), so it is not about a stored 404 or redirect.
    func identify(
        _ response: HTTPResponse, forwardedRequest: ForwardedRequest, stored: [StoredResponse], responseTime: Instant
    )
        -> Identified
    {
        let known = forwardedRequest.candidates.filter { stored.indices.contains($0) }
        let candidates = known.filter { Self.mayBeNotModified(status: stored[$0].head.status.code) }
        if candidates.isEmpty { return .clients }
        let clientTags = forwardedRequest.request.headerFields.combined(.ifNoneMatch).map { EntityTag.list($0) } ?? []
        let tag = response.headerFields.single(.eTag).flatMap { EntityTag($0) }
        if let tag, !tag.isWeak {
            let matching = candidates.filter { stored[$0].entityTag.map { $0.matchesStrongly(tag) } ?? false }
            if !matching.isEmpty { return .these(matching) }
            // A weak tag here and a strong one there say the same of equivalent content, but only a client's list may
            // be compared that way.
            return clientTags.contains { $0.matchesWeakly(tag) } ? .clients : .nothing
        }
        let modified = response.headerFields.single(.lastModified).flatMap { HTTPDate.parse($0, now: responseTime) }
        if tag != nil || modified != nil {
            let matching = candidates.filter { index in
                let sameTag = tag.map { tag in stored[index].entityTag.map { $0.matchesWeakly(tag) } ?? false } ?? true
                let sameDate = modified.map {
                    stored[index].policy.flags.contains(.hasLastModified) && stored[index].policy.lastModified == $0
                }
                return sameTag && (sameDate ?? true || tag != nil)
            }
            if let index = select(matching, stored: stored) { return .these([index]) }
            if let tag, clientTags.contains(where: { $0.matchesWeakly(tag) }) { return .clients }
            return forwardedRequest.purpose == .validate ? .nothing : .clients
        }
        if forwardedRequest.purpose == .validate, let selected = forwardedRequest.selected,
            candidates.contains(selected)
        {
            // The question was about the selected response and, where the client has tags of its own, about those:
            // only equal ones leave no doubt.
            let tags = candidates.compactMap { stored[$0].entityTag }
            let isUnambiguous =
                clientTags.allSatisfy { tag in tags.contains { $0.matchesWeakly(tag) } }
                && Set(tags.map(\.opaque)).count <= 1
            return isUnambiguous ? .these([selected]) : .nothing
        }
        if known.count == 1, !stored[candidates[0]].policy.hasValidator { return .these(candidates) }
        return .clients
    }

    /// Whether a 304 can stand for a stored response with this status, and its validators be sent to ask for one.
    static func mayBeNotModified(status: Int) -> Bool { (200...299).contains(status) }

    /// Section 4.3.5: whether a 200 response to HEAD describes a stored response: the validators it has agree, and so
    /// does the length.
    func describes(_ response: HTTPResponse, _ stored: StoredResponse, responseTime: Instant) -> Bool {
        if let value = response.headerFields.combined(.eTag), stored.head.headerFields.combined(.eTag) != value {
            return false
        }
        if let value = response.headerFields.single(.lastModified),
            stored.policy.flags.contains(.hasLastModified)
                ? HTTPDate.parse(value, now: responseTime) != stored.policy.lastModified : true
        {
            return false
        }
        if let value = response.headerFields.single(.contentLength) {
            guard let length = FieldBytes.number(value, ceiling: .max / 16) else { return false }
            return stored.body.total == nil || stored.body.total == length
        }
        return true
    }
}
