import Larder

/// What all processes have done with a store: `counters` of `stat --json`.
package struct CountersJSON: Encodable {
    let since: String
    let hits: Int
    let misses: Int
    @Nullable var hitRatio: Double?
    let bytesRead: Int64
    let puts: Int
    let bytesWritten: Int64
    let removed: Int
    let displaced: DisplacedJSON
    let commits: Int
    let failedChanges: Int
    let damagedBodies: Int
    let failures: [String: Int]
    let lookupTimes: TimesJSON
    let putTimes: TimesJSON
    let commitTimes: TimesJSON

    struct DisplacedJSON: Encodable {
        let expired: Int
        let leastRecentlyUsed: Int
        let memoryOnlyExpired: Int
        let memoryOnlyLeastRecentlyUsed: Int
    }

    /// Durations in seconds.
    struct TimesJSON: Encodable {
        let count: Int
        let total: Double
        @Nullable var mean: Double?
        @Nullable var median: Double?
        @Nullable var p99: Double?
        /// Empty ones are left out.
        let buckets: [BucketJSON]

        struct BucketJSON: Encodable {
            @Nullable var below: Double?
            let count: Int
        }

        init(_ times: LatencyHistogram) {
            count = times.count
            total = times.total.inSeconds
            buckets = times.buckets.filter { $0.count > 0 }.map {
                BucketJSON(below: $0.end?.inSeconds, count: $0.count)
            }
            mean = times.mean?.inSeconds
            median = times.percentile(0.5)?.inSeconds
            p99 = times.percentile(0.99)?.inSeconds
        }
    }

    init(_ counters: StoreCounters) {
        since = counters.since.description
        hits = counters.hits
        misses = counters.misses
        bytesRead = counters.bytesRead.bytes
        puts = counters.puts
        bytesWritten = counters.bytesWritten.bytes
        removed = counters.removed
        displaced = DisplacedJSON(
            expired: counters.displaced.expired, leastRecentlyUsed: counters.displaced.leastRecentlyUsed,
            memoryOnlyExpired: counters.displaced.memoryOnlyExpired,
            memoryOnlyLeastRecentlyUsed: counters.displaced.memoryOnlyLeastRecentlyUsed)
        commits = counters.commits
        failedChanges = counters.failedChanges
        damagedBodies = counters.damagedBodies
        failures = Dictionary(uniqueKeysWithValues: counters.failures.map { ($0.key.rawValue, $0.value) })
        lookupTimes = TimesJSON(counters.lookupTimes)
        putTimes = TimesJSON(counters.putTimes)
        commitTimes = TimesJSON(counters.commitTimes)
        hitRatio = counters.hitRatio
    }
}
