import HTTPTypes

/// Range requests: RFC 9110 section 14, RFC 9111 section 3.3.
extension CacheRules {
    /// How a `Range` field is answered from a stored response.
    enum RangeAnswer: Hashable {
        /// The field does not apply: send the whole representation.
        case whole
        /// 206 with these ranges of a representation of `total` bytes; nil total when it is unknown.
        case ranges([Range<Int64>], total: Int64?)
        /// 416 for a representation of `total` bytes.
        case unsatisfiable(total: Int64)
        /// Bytes are missing here.
        case missing
        /// A unit that this cache does not understand.
        case otherUnit
    }

    /// Answers a `Range` field (section 14.2). It applies to GET and to stored responses with the status 200 only,
    /// after the other preconditions, and is ignored when it is not valid, repeated, or asks for more ranges than
    /// ``CachingOptions/maximumRanges`` or for more than two that overlap.
    func rangeAnswer(_ request: HTTPRequest, facts: RequestFacts, stored: StoredResponse, now: Instant) -> RangeAnswer {
        let whole: RangeAnswer = stored.body.isComplete ? .whole : .missing
        guard facts.hasRange, request.method == .get, stored.head.status.code == 200 else { return whole }
        guard let value = request.headerFields.single(.range) else { return whole }
        return rangeAnswer(value, body: stored.body) {
            allowsRange(request, facts: facts, stored: stored, now: now)
        }
    }

    /// The same, from the value of the field, for GET and a response with the status 200.
    /// - Parameter isAllowed: what `If-Range` says.
    func rangeAnswer(_ value: [UInt8], body: BodyExtent, isAllowed: () -> Bool = { true }) -> RangeAnswer {
        let whole: RangeAnswer = body.isComplete ? .whole : .missing
        let field: RangeField
        switch RangeField.parse(value) {
        case .otherUnit: return .otherUnit
        case .invalid: return whole
        case .bytes(let parsed): field = parsed
        }
        guard isAllowed(), field.specifications.count <= max(1, options.maximumRanges) else { return whole }
        guard let total = body.total else {
            // Only positions that the request itself states can be found in a part of unknown total length.
            guard let range = field.explicitRange, body.available.contains(range) else { return .missing }
            return .ranges([range], total: nil)
        }
        if field.asksForNothing(of: total) { return whole }
        let ranges = field.resolved(length: total)
        guard !ranges.isEmpty else { return .unsatisfiable(total: total) }
        guard ranges.allSatisfy({ body.available.contains($0) }) else { return .missing }
        guard let merged = Self.merged(ranges, of: body.available) else { return whole }
        return .ranges(merged, total: total)
    }

    /// Section 15.3.7.3: true if two stored parts belong to one representation, so that their bytes may be combined.
    ///
    /// - Parameters:
    ///   - left: one part.
    ///   - right: the other.
    /// - Returns: true only if both have the same strong validator and content coding, and lengths that do not
    ///   contradict each other.
    public func areCombinable(_ left: StoredResponse, _ right: StoredResponse) -> Bool {
        guard left.method == right.method, left.policy.hasStrongValidator, right.policy.hasStrongValidator,
            !left.policy.flags.contains(.neverCombined), !right.policy.flags.contains(.neverCombined),
            left.body.total == nil || right.body.total == nil || left.body.total == right.body.total,
            left.head.headerFields[.contentEncoding] == right.head.headerFields[.contentEncoding]
        else { return false }
        switch (left.entityTag, right.entityTag) {
        case (let tag?, let other?): return tag.matchesStrongly(other)
        case (nil, nil): return left.policy.lastModified == right.policy.lastModified
        default: return false
        }
    }

    /// Section 15.3.7.2: ranges that overlap or lie closer together than the overhead of a part are sent as one; the
    /// order stays. The bytes in between have to be there. Nil when more than two overlap.
    static func merged(_ ranges: [Range<Int64>], of available: ByteRanges) -> [Range<Int64>]? {
        guard ranges.count > 1 else { return ranges }
        var overlaps = 0
        var result: [Range<Int64>] = []
        for range in ranges {
            if ranges.count > 2, result.contains(where: { $0.overlaps(range) }) {
                overlaps += 1
                if overlaps > 2 { return nil }
            }
            let near = result.firstIndex { other in
                other.lowerBound.subtractingSaturating(partOverhead) <= range.upperBound
                    && range.lowerBound <= other.upperBound.addingSaturating(partOverhead)
                    && available.contains(span(other, range))
            }
            if let index = near { result[index] = span(result[index], range) } else { result.append(range) }
        }
        // A range that grew may have reached others.
        return result.count < ranges.count ? merged(result, of: available) : result
    }

    /// The least number of bytes that come before a part.
    private static let partOverhead: Int64 = 80

    private static func span(_ left: Range<Int64>, _ right: Range<Int64>) -> Range<Int64> {
        min(left.lowerBound, right.lowerBound)..<max(left.upperBound, right.upperBound)
    }
}
