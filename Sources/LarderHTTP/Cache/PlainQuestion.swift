import HTTPCaching

/// What the answer to a GET or HEAD without content depends on, beyond the URL and the fields that select a variant:
/// the values of fields, each of one line. Valid only inside the call that it is handed to. The request has no
/// precondition of another kind, no `If-Range` and no `Pragma`.
package struct PlainQuestion {
    package var isHead = false
    package var cacheControl: UnsafeRawBufferPointer?
    package var ifNoneMatch: UnsafeRawBufferPointer?
    package var ifModifiedSince: UnsafeRawBufferPointer?
    package var range: UnsafeRawBufferPointer?

    /// A GET that asks for nothing else.
    package init() {}

    /// Whether it is such a GET.
    package var isUnconditional: Bool {
        !isHead && cacheControl == nil && ifNoneMatch == nil && ifModifiedSince == nil && range == nil
    }

    /// As the rules take them.
    var conditions: CacheRules.HitConditions {
        var conditions = CacheRules.HitConditions()
        conditions.cacheControl = cacheControl
        conditions.ifNoneMatch = ifNoneMatch
        conditions.ifModifiedSince = ifModifiedSince
        conditions.range = range
        return conditions
    }
}
