import HTTPCaching

/// What the parts of a cache share, and what never changes: its configuration, the rules, the clock.
final class CacheContext: Sendable {
    let configuration: HTTPCacheConfiguration
    let rules: CacheRules

    init(_ configuration: HTTPCacheConfiguration) {
        self.configuration = configuration
        var caching = configuration.caching
        if configuration.cachesQueries { caching.extraMethods.insert(QueryContent.method) }
        rules = CacheRules(caching)
    }

    var now: Instant { Instant(milliseconds: configuration.clock.now().microseconds / 1_000) }
}
