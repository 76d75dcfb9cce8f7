import HTTPTypes

/// Validation requests: RFC 9111 sections 4.3.1 and 4.3.2; requests for missing bytes: section 3.3.
extension CacheRules {
    /// Adds the preconditions that validate a stored response, nil when it has no validator or is not a success.
    ///
    /// The entity tags of all candidates are sent, together with the client's own (section 4.3.2), so that a 304 tells
    /// which response is current; `Last-Modified` of the selected one is sent, too (RFC 9110 section 8.8.4). Other
    /// preconditions of the client that these replace are evaluated again when the answer is there.
    func validationRequest(_ request: HTTPRequest, stored: [StoredResponse], candidates: [Int], selected: Int)
        -> HTTPRequest?
    {
        let chosen = stored[selected]
        guard chosen.policy.hasValidator, Self.mayBeNotModified(status: chosen.head.status.code) else { return nil }
        var sent = request
        var tags: [EntityTag] = []
        for index in [selected] + candidates where stored[index].body.isComplete || index == selected {
            guard Self.mayBeNotModified(status: stored[index].head.status.code) else { continue }
            if let tag = stored[index].entityTag, !tags.contains(tag) { tags.append(tag) }
        }
        let clientTags = request.headerFields.combined(.ifNoneMatch).map { EntityTag.list($0) } ?? []
        for tag in clientTags where !tags.contains(tag) { tags.append(tag) }
        if tags.isEmpty || chosen.entityTag == nil && clientTags.isEmpty {
            sent.headerFields.remove(.ifNoneMatch)
        } else {
            let value = Array(tags.map { $0.bytes }.joined(separator: [FieldBytes.comma, 0x20]))
            sent.headerFields[fields: .ifNoneMatch] = [HTTPField(name: .ifNoneMatch, value: value)]
        }
        if let lastModified = chosen.head.headerFields.single(.lastModified),
            chosen.policy.flags.contains(.hasLastModified)
        {
            sent.headerFields[fields: .ifModifiedSince] = [HTTPField(name: .ifModifiedSince, value: lastModified)]
        } else {
            sent.headerFields.remove(.ifModifiedSince)
        }
        return sent
    }

    /// The most gaps of a stored part that are filled; with more the whole representation is fetched.
    static let maximumGaps = 16

    /// A request for the first bytes that a stored part lacks; nil when there are too many gaps, or the answer could
    /// not be used. Several gaps take a strong validator: their answers have to be of one representation.
    func completionRequest(_ request: HTTPRequest, stored: StoredResponse, isFresh: Bool) -> HTTPRequest? {
        guard request.method == .get, case .partial(let available, let total) = stored.body, !available.ranges.isEmpty,
            !stored.policy.flags.contains(.neverCombined),
            stored.policy.hasStrongValidator || (isFresh && options.completesWithoutValidator)
        else { return nil }
        let wanted: String
        if let total {
            let gaps = available.gaps(in: 0..<total)
            guard let first = gaps.first, gaps.count <= (stored.policy.hasStrongValidator ? Self.maximumGaps : 1) else {
                return nil
            }
            wanted = "bytes=\(first.lowerBound)-" + (first.upperBound == total ? "" : "\(first.upperBound - 1)")
        } else {
            // Where the representation ends only its rest will tell.
            guard available.ranges.count == 1, available.ranges[0].lowerBound == 0 else { return nil }
            wanted = "bytes=\(available.ranges[0].upperBound)-"
        }
        var sent = request
        for name: HTTPField.Name in [.ifNoneMatch, .ifModifiedSince, .ifRange] { sent.headerFields.remove(name) }
        sent.headerFields.set(.range, wanted)
        if let validator = stored.strongValidator {
            sent.headerFields[fields: .ifRange] = [HTTPField(name: .ifRange, value: validator)]
        }
        return sent
    }
}
