import HTTPCaching
import HTTPTypes
import Larder

/// What the options of a fetch and the configuration of the cache come to.
struct FetchPlan: Sendable {
    var policy: CachePolicy
    var user: (any ReusePolicy)?
    var secondsToCache: Int64?
    var respectsCacheControl: Bool
    var defaultLifetimeSeconds: Int64
    var storagePolicy: StoragePolicy
    var keyPolicy: KeyPolicy
    var isOffline: Bool
    var tags: [String]
    var timeouts: Timeouts
    /// When ``Timeouts/total`` has passed.
    var deadline: Deadline?
    var priority: FetchPriority

    init(
        _ options: FetchOptions, _ context: CacheContext, isOffline: Bool, url: String
    ) throws(FetchError) {
        let (configuration, live) = (context.configuration, context.live.withLock { $0 })
        policy = options.policy == .useDefault ? live.defaultPolicy : options.policy
        if let id = options.policyID ?? (options.policy == .useDefault ? live.defaultPolicyID : nil) {
            switch configuration.registry.entry(id) {
            case nil:
                throw FetchError(.unknownPolicy, url: url, "no policy is registered under \(id), asked for with \(url)")
            case .set(let set): policy = set.union(policy.intersection([.fallbackToCacheIfLoadFails]))
            case .user(let given): user = given
            }
        }
        secondsToCache = options.secondsToCache ?? configuration.secondsToCache
        respectsCacheControl = options.respectsCacheControl ?? live.respectsCacheControl
        defaultLifetimeSeconds = live.defaultLifetimeSeconds
        storagePolicy = options.storagePolicy ?? configuration.storagePolicy
        keyPolicy = options.keyPolicy ?? configuration.keyPolicy
        self.isOffline = options.isOffline || isOffline
        tags = options.tags
        timeouts = options.timeouts ?? configuration.timeouts
        deadline = timeouts.total.map { Deadline(after: $0) }
        priority = options.priority
    }

    /// Gives a new response the lifetime that was asked for.
    func adjust(_ policy: inout StoredPolicy) {
        if let secondsToCache { policy.override(lifetimeSeconds: secondsToCache) }
    }
}
