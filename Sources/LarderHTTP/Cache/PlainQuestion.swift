import HTTPCaching

/// What the answer to a GET or HEAD without content depends on, beyond the URL and the fields that select a variant.
/// Valid only inside the call that it is handed to. The request has no precondition of another kind, no `If-Range` and
/// no `Pragma`.
package struct PlainQuestion {
    package typealias Conditions = CacheRules.HitConditions

    package let isHead: Bool
    let conditions: Conditions
    /// The most bytes that the caller sends out of a part.
    let longestPart: Int64

    /// By default a GET that asks for nothing else.
    package init(
        isHead: Bool = false, _ conditions: Conditions = Conditions(), longestPart: Int64 = .max
    ) {
        self.isHead = isHead
        self.conditions = conditions
        self.longestPart = longestPart
    }

    /// Whether it is such a GET.
    package var isUnconditional: Bool { !isHead && conditions.isEmpty }
}
