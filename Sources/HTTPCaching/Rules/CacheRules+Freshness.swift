import HTTPTypes

/// Freshness: RFC 9111 sections 4.2 (without 4.2.4), RFC 9213 section 2.2.
extension CacheRules {
    /// The directives that apply to a response: those of the first valid targeted field on the target list (RFC 9213
    /// section 2.2), otherwise those of `Cache-Control`.
    ///
    /// - Parameter response: as received, or as stored.
    /// - Returns: the parsed directives; none if there is no such field.
    public func directives(of response: HTTPResponse) -> ResponseDirectives { control(of: response).directives }

    /// The directives that apply, and whether they come from a targeted field, which replaces `Cache-Control` and
    /// `Expires`.
    typealias Control = (directives: ResponseDirectives, isTargeted: Bool)

    func control(of response: HTTPResponse) -> Control {
        if !options.targetedFields.isEmpty,
            let targeted = TargetedField.directives(in: response.headerFields, targets: options.targetedFields)
        {
            return (targeted, true)
        }
        return (
            response.headerFields.combined(.cacheControl).map { ResponseDirectives($0) } ?? ResponseDirectives(), false
        )
    }

    /// Parses the policy of a response from its fields.
    ///
    /// - Parameters:
    ///   - response: as received.
    ///   - requestTime: when the request was sent.
    ///   - responseTime: when the head was received.
    /// - Returns: freshness lifetime, initial age (RFC 9111 sections 4.2.1 and 4.2.3) and flags; store it with the
    ///   response.
    public func policy(for response: HTTPResponse, requestTime: Instant, responseTime: Instant) -> StoredPolicy {
        policy(for: response, control(of: response), requestTime: requestTime, responseTime: responseTime)
    }

    /// As above, with the directives of the response.
    func policy(
        for response: HTTPResponse, _ control: Control, requestTime: Instant, responseTime: Instant
    ) -> StoredPolicy {
        let fields = response.headerFields
        let (directives, isTargeted) = control
        let date = fields.single(.date).flatMap { HTTPDate.parse($0, now: responseTime) }
        let lastModified = fields.single(.lastModified).flatMap { HTTPDate.parse($0, now: responseTime) }
        let entityTag = fields.single(.eTag).flatMap { EntityTag($0) }
        let lifetime = lifetime(
            of: response, directives: directives, isTargeted: isTargeted, date: date, lastModified: lastModified,
            responseTime: responseTime)

        var flags: StoredPolicy.Flags = []
        if directives.noCache == .unqualified { flags.insert(.noCache) }
        if prohibitsStale(directives) { flags.insert(.staleProhibited) }
        if directives.immutable { flags.insert(.immutable) }
        if directives.noTransform { flags.insert(.noTransform) }
        if let entityTag { flags.formUnion(entityTag.isWeak ? [.hasEntityTag, .weakEntityTag] : [.hasEntityTag]) }
        if date != nil { flags.insert(.hasDate) }
        if let lastModified {
            flags.insert(.hasLastModified)
            // A missing Date is added with the time of the response (RFC 9110 section 6.6.1), and counts like one that
            // came.
            if (date ?? responseTime).milliseconds(since: lastModified) >= 60_000 { flags.insert(.strongLastModified) }
        }
        return StoredPolicy(
            flags: flags, lifetimeSource: lifetime.source, lifetimeMilliseconds: lifetime.milliseconds,
            initialAgeMilliseconds: initialAge(
                of: fields, date: date, requestTime: requestTime, responseTime: responseTime),
            responseTime: responseTime, date: date ?? responseTime,
            lastModified: lastModified ?? Instant(milliseconds: 0),
            staleWhileRevalidateSeconds: directives.staleWhileRevalidate.seconds ?? -1,
            // A limit that cannot be read counts as 0.
            staleIfErrorSeconds: directives.staleIfError.isPresent ? directives.staleIfError.seconds ?? 0 : -1,
            fingerprint: fingerprint)
    }

    /// A stored response with a policy made under the options of these rules.
    func current(_ stored: StoredResponse) -> StoredResponse {
        guard stored.policy.fingerprint != fingerprint, stored.policy.lifetimeSource != .override else { return stored }
        var result = stored
        result.policy = policy(for: stored.head, requestTime: stored.requestTime, responseTime: stored.responseTime)
        result.policy.flags.formUnion(stored.policy.flags.intersection(.neverCombined))
        return result
    }

    /// Section 4.2.1, calculating the freshness lifetime: the first of `s-maxage` in a shared cache, `max-age`,
    /// `Expires` minus `Date`, heuristics. Of repeated information the first counts; invalid information gives a
    /// lifetime of 0.
    func lifetime(
        of response: HTTPResponse, directives: ResponseDirectives, isTargeted: Bool, date: Instant?,
        lastModified: Instant?,
        responseTime: Instant
    ) -> (source: StoredPolicy.LifetimeSource, milliseconds: Int64) {
        if isShared && directives.sMaxage.isPresent {
            return directives.sMaxage.seconds.map { (.sMaxage, $0.secondsAsMilliseconds) } ?? (.invalid, 0)
        }
        if directives.maxAge.isPresent {
            return directives.maxAge.seconds.map { (.maxAge, $0.secondsAsMilliseconds) } ?? (.invalid, 0)
        }
        if !isTargeted, let expires = response.headerFields.lines(.expires).first {
            // A cache must take an invalid date, especially "0", as a time in the past (section 5.3). Without a valid
            // Date the time of the response stands in for it (RFC 9110 section 6.6.1).
            guard let expires = HTTPDate.parse(expires, now: responseTime) else { return (.invalid, 0) }
            return (.expires, max(0, expires.milliseconds(since: date ?? responseTime)))
        }
        return heuristicLifetime(
            of: response, directives: directives, from: date ?? responseTime, lastModified: lastModified)
    }

    /// Section 4.2.2, heuristic freshness: a part of the time since the last modification, for a status code that
    /// allows it or a response marked `public`.
    func heuristicLifetime(
        of response: HTTPResponse, directives: ResponseDirectives, from date: Instant, lastModified: Instant?
    ) -> (source: StoredPolicy.LifetimeSource, milliseconds: Int64) {
        let isAllowed = Self.isHeuristicallyCacheable(status: response.status.code) || directives.isPublic
        let setsCookie =
            isShared && options.setCookie != .ignore && !directives.isPublic
            && response.headerFields.contains(.setCookie)
        if let seconds = options.lifetimesByStatus[response.status.code], understands(status: response.status.code),
            !setsCookie, directives.noCache == .absent
        {
            return (.heuristic, max(0, seconds).secondsAsMilliseconds)
        }
        guard isAllowed, !setsCookie, let lastModified, options.heuristicPercent > 0 else { return (.none, 0) }
        let sinceModified = max(0, date.milliseconds(since: lastModified))
        let part = sinceModified / 100 * min(100, options.heuristicPercent)
        return (.heuristic, min(part, max(0, options.heuristicCeilingSeconds).secondsAsMilliseconds))
    }

    /// Section 4.2.3, calculating age: `corrected_initial_age` in milliseconds.
    func initialAge(of fields: HTTPFields, date: Instant?, requestTime: Instant, responseTime: Instant) -> Int64 {
        let ageValue = Self.age(in: fields) ?? 0
        let responseDelay = max(0, responseTime.milliseconds(since: requestTime))
        let correctedAge = ageValue.secondsAsMilliseconds.addingSaturating(responseDelay)
        guard !options.trustsAge, let date else { return correctedAge }
        // Date counts whole seconds, and so does its comparison: otherwise every response would arrive half a second
        // old.
        let apparentAge = max(0, Instant(seconds: responseTime.seconds).milliseconds(since: date))
        return max(apparentAge, correctedAge)
    }

    /// Section 5.1: the first member of `Age` in seconds; nil when it is missing or not a number.
    static func age(in fields: HTTPFields) -> Int64? {
        guard let line = fields.lines(.age).first else { return nil }
        let first = line.prefix { $0 != FieldBytes.comma }
        return DeltaSeconds.parse(FieldBytes.trimmed(first))
    }
}
