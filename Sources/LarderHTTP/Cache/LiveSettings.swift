import Locks

/// What of a configuration can change while the cache is in use.
struct LiveSettings: Sendable {
    var defaultPolicy: CachePolicy
    var defaultPolicyID: Int?
    var respectsCacheControl: Bool
    var defaultLifetimeSeconds: Int64

    init(_ configuration: HTTPCacheConfiguration) {
        defaultPolicy = configuration.defaultPolicy
        defaultPolicyID = configuration.defaultPolicyID
        respectsCacheControl = configuration.respectsCacheControl
        defaultLifetimeSeconds = configuration.defaultLifetimeSeconds
    }

    /// Whether a fresh response is used without asking anything else, unless a request says otherwise.
    var isPlain: Bool { defaultPolicy == .askIfModifiedWhenStale && defaultPolicyID == nil }
}

/// Settings that hold for the requests that begin after a change.
extension HTTPCache {
    /// The meaning of ``CachePolicy/useDefault``. Begins as ``HTTPCacheConfiguration/defaultPolicy``.
    public var defaultPolicy: CachePolicy {
        get { context.live.withLock { $0.defaultPolicy } }
        set { change { $0.defaultPolicy = newValue } }
    }

    /// The number of the registered policy for fetches that name neither a policy nor a number; nil: ``defaultPolicy``.
    /// Begins as ``HTTPCacheConfiguration/defaultPolicyID``.
    public var defaultPolicyID: Int? {
        get { context.live.withLock { $0.defaultPolicyID } }
        set { change { $0.defaultPolicyID = newValue } }
    }

    /// False stores responses to GET even if they have `no-store`, `private` or no directive at all. Begins as
    /// ``HTTPCacheConfiguration/respectsCacheControl``.
    public var respectsCacheControl: Bool {
        get { context.live.withLock { $0.respectsCacheControl } }
        set { change { $0.respectsCacheControl = newValue } }
    }

    /// The freshness in seconds of a response that is stored against its will and has no lifetime of its own; 0 or
    /// more. Begins as ``HTTPCacheConfiguration/defaultLifetimeSeconds``.
    public var defaultLifetimeSeconds: Int64 {
        get { context.live.withLock { $0.defaultLifetimeSeconds } }
        set { change { $0.defaultLifetimeSeconds = newValue } }
    }

    private func change(_ body: (inout LiveSettings) -> Void) {
        context.live.withLock { live in
            body(&live)
            // Inside: two changes at once must not become visible in another order.
            context.isPlain.store(live.isPlain, ordering: .relaxed)
        }
    }
}
