import HTTPCaching
import HTTPTypes

/// What a request asks of the store, before anything is looked up.
struct Question: Sendable {
    /// The client's request, with what the configuration adds.
    var request: HTTPRequest
    /// The request that the rules see; see ``LoadRequest/subject``.
    var subject: HTTPRequest
    /// Whether it has content.
    var hasContent: Bool
    /// The primary key; nil for a request that nothing is stored for.
    var primary: String?
    /// How this fetch wants it.
    var plan: FetchPlan
    /// Its URL.
    var url: String
    /// What an invalidation since then would have changed.
    var generation: UInt32
    /// Where a response that other queries share is stored; nil for a request that cannot share one.
    var search: SearchScope?
    /// The content that is part of the key.
    var content: [UInt8]?
    /// Whether the request has content that the rules need not know of, as it is part of the key.
    var hadContent = false
    /// The content has to be read before there is a key.
    var wantsContent = false
    /// Whether the answer depends on what is stored.
    var needsStored: Bool

    var reads: Bool { !plan.policy.contains(.doNotRead) }
}
