import HTTPCaching
import Locks

/// What the parts of a cache share: its configuration, the rules, the clock, and what of the configuration may change.
final class CacheContext: Sendable {
    let configuration: HTTPCacheConfiguration
    let rules: CacheRules
    /// Read once a request, by the plan of it.
    let live: Mutex<LiveSettings>
    /// ``LiveSettings/isPlain``, for hits that make no plan.
    let isPlain: Atomic<Bool>

    init(_ configuration: HTTPCacheConfiguration) {
        self.configuration = configuration
        let settings = LiveSettings(configuration)
        live = Mutex(settings)
        isPlain = Atomic(settings.isPlain)
        var caching = configuration.caching
        if configuration.cachesQueries { caching.extraMethods.insert(QueryContent.method) }
        rules = CacheRules(caching)
    }

    var now: Instant { Instant(milliseconds: configuration.clock.now().microseconds / 1_000) }
}
