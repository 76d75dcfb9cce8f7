import HTTPTypes

/// The answers that need no request and no response as objects: decided on the policy of a stored response and on the
/// values of some fields. Made of the same rules as ``CacheRules/reuse(_:hasContent:stored:now:isDisconnected:)``.
extension CacheRules {
    /// What a request says of the answer that it wants: the values of fields, each of one line. Valid only inside the
    /// call that it is handed to.
    package struct HitConditions {
        package var cacheControl: UnsafeRawBufferPointer?
        package var ifNoneMatch: UnsafeRawBufferPointer?
        package var ifModifiedSince: UnsafeRawBufferPointer?
        package var range: UnsafeRawBufferPointer?

        /// None.
        package init() {}

        /// Whether it says none of that.
        package var isEmpty: Bool { cacheControl == nil && range == nil && !hasPreconditions }

        fileprivate var hasPreconditions: Bool { ifNoneMatch != nil || ifModifiedSince != nil }
    }

    /// What is sent of a stored response.
    package enum HitAnswer: Hashable {
        /// All of it, or its head to HEAD.
        case whole
        /// 304.
        case notModified
        /// 206.
        case range(Range<Int64>)
    }

    /// Decides on GET and HEAD with the selected response, which is fresh and complete.
    ///
    /// - Parameters:
    ///   - conditions: the request has no others, no `If-Range`, no `Pragma`, and no content.
    ///   - status: of the response.
    ///   - length: of its body, in bytes.
    ///   - tag: its `ETag`, if it has exactly one.
    /// - Returns: nil if the answer is another one: then call
    ///   ``CacheRules/reuse(_:hasContent:stored:now:isDisconnected:)``.
    package func hit(
        _ conditions: HitConditions, isHead: Bool, policy: StoredPolicy, status: Int, length: Int64,
        tag: UnsafeRawBufferPointer?, now: Instant
    ) -> HitAnswer? {
        if let value = conditions.cacheControl, options.honorsRequestDirectives,
            !isAcceptable(policy, request: RequestDirectives(Array(value)), now: now)
        {
            return nil
        }
        if conditions.hasPreconditions, isNotModified(conditions, policy: policy, status: status, tag: tag, now: now) {
            return .notModified
        }
        guard !isHead, status == 200, let range = conditions.range else { return .whole }
        switch rangeAnswer(Array(range), body: .complete(length: length)) {
        case .whole: return .whole
        case .ranges(let ranges, _) where ranges.count == 1: return .range(ranges[0])
        case .ranges, .unsatisfiable, .missing, .otherUnit: return nil
        }
    }

    private func isNotModified(
        _ conditions: HitConditions, policy: StoredPolicy, status: Int, tag: UnsafeRawBufferPointer?, now: Instant
    ) -> Bool {
        // Most clients send the tag that they got. That takes no copies.
        if let value = conditions.ifNoneMatch, let tag, (200...299).contains(status), EntityTag.isSame(value, tag) {
            return true
        }
        return isNotModified(
            ifNoneMatch: conditions.ifNoneMatch.map { Array($0) },
            ifModifiedSince: conditions.ifModifiedSince.map { Array($0) }, status: status,
            tag: tag.flatMap { EntityTag($0) }, policy: policy, now: now)
    }

    /// Whether a field of a stored response is left out of an answer, or replaced in it.
    ///
    /// - Parameters:
    ///   - name: as it is stored.
    ///   - hasTag: whether the stored response has an `ETag` field.
    package static func leavesOut(_ name: UnsafeRawBufferPointer, of answer: HitAnswer, hasTag: Bool) -> Bool {
        func isNamed(_ other: StaticString) -> Bool {
            for index in 0..<name.count where name[index] | 0x20 != other.utf8Start[index] { return false }
            return true
        }
        // No other is as long as one of these.
        guard (12...16).contains(name.count) else { return false }
        var isNotModified = false
        if case .notModified = answer { isNotModified = true }
        return switch (answer, name.count) {
        case (.whole, _): false
        case (_, 13) where isNamed("content-range"), (_, 14) where isNamed("content-length"): true
        // As `missingFromNotModified`.
        case (_, 12): isNotModified && isNamed("content-type")
        case (_, 13): isNotModified && hasTag && isNamed("last-modified")
        case (_, 16): isNotModified && (isNamed("content-encoding") || isNamed("content-language"))
        default: false
        }
    }

    /// The value of `Content-Range` (RFC 9110 section 14.4).
    package static func contentRange(_ range: Range<Int64>, of total: Int64) -> String {
        ContentRange(range: range, completeLength: total).fieldValue
    }
}
