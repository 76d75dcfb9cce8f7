/// The activity of all processes on a store since `since`: part of `Statistics`.
///
/// The counters are in a small file that the processes share, so they stay when a process ends or is killed. They are
/// not synced: a power loss may lose the latest counts. A store that is opened read-only changes no file, so only its
/// own `statistics()` includes its lookups; the same is true if the file could not be made, which the log reports.
public struct StoreCounters: Sendable, Hashable {
    /// When counting began: store time. Counting begins again, from 0, when the file of the counters was lost or
    /// damaged.
    public var since = Timestamp(microseconds: 0)
    /// Lookups that found an entry: `get` (each key counts), `withBody`, `value`, `body(digest:)`.
    public var hits = 0
    /// Lookups that found no entry, or only one that is hidden: expired, of another application version, damaged.
    public var misses = 0
    /// Bytes of the bodies of the hits, even if the caller did not read them.
    public var bytesRead = ByteCount.zero
    /// Bodies put: `put`, `BodyWriter.commit`, `adopt`, and those in batches. A relaxed put counts when the call
    /// returns.
    public var puts = 0
    /// Bytes of these bodies.
    public var bytesWritten = ByteCount.zero
    /// Entries removed by calls: `remove`, `clear`, batches. Displaced entries are not included.
    public var removed = 0
    /// Entries displaced, by reason.
    public var displaced = Displaced()
    /// Batches that were written to the index.
    public var commits = 0
    /// Puts and removals that could not be committed: the entries concerned stayed as they were.
    public var failedChanges = 0
    /// Bodies whose bytes did not match their digest, or whose file was missing.
    public var damagedBodies = 0
    /// Number of failures of the store's own work, by kind; kinds that never failed are left out.
    public var failures: [StandingFailure.Work: Int] = [:]
    /// Durations of lookups: one in 64 of a thread is measured. `withBody` is not, as it runs code of the caller.
    public var lookupTimes = LatencyHistogram()
    /// Durations of calls of `put`, from the call to its return; with `durable` the commit is included.
    public var putTimes = LatencyHistogram()
    /// Durations of commits, syncs included.
    public var commitTimes = LatencyHistogram()

    /// Entries displaced, by reason.
    public struct Displaced: Sendable, Hashable {
        /// Their lifetime was over.
        public var expired = 0
        /// They were the least recently used ones, and room was needed.
        public var leastRecentlyUsed = 0
        /// Entries of policy `memoryOnly` whose lifetime was over.
        public var memoryOnlyExpired = 0
        /// Entries of policy `memoryOnly` that were the least recently used ones.
        public var memoryOnlyLeastRecentlyUsed = 0

        /// All of them.
        public var total: Int { expired &+ leastRecentlyUsed &+ memoryOnlyExpired &+ memoryOnlyLeastRecentlyUsed }
    }

    /// Hits as a fraction of all lookups: 0 ... 1; nil if there was no lookup.
    public var hitRatio: Double? {
        let lookups = Double(hits) + Double(misses)
        return lookups == 0 ? nil : Double(hits) / lookups
    }

    /// Nothing counted.
    package init() {}
}

/// A histogram of durations: power-of-two buckets of nanoseconds.
public struct LatencyHistogram: Sendable, Hashable {
    /// The durations less than `end`, and not less than the end of the bucket before.
    public struct Bucket: Sendable, Hashable {
        /// The first duration that is too long for it; nil for the last bucket, which has no end.
        public var end: Duration?
        /// Number of durations in it.
        public var count: Int
    }

    /// Sum of the durations.
    public private(set) var total = Duration.zero
    /// From the shortest to the longest durations: the first ends at 256 ns, each other one at twice the end of the one
    /// before.
    public private(set) var buckets: [Bucket] = (0..<CounterLayout.bucketCount).map {
        Bucket(end: CounterLayout.end(ofBucket: $0).map { .nanoseconds(Int64(clamping: $0)) }, count: 0)
    }

    /// Nothing measured.
    package init() {}

    init(sum: UInt64, counts: [UInt64]) {
        total = .nanoseconds(Int64(clamping: sum))
        for (bucket, count) in zip(buckets.indices, counts) { buckets[bucket].count = Int(clamping: count) }
    }

    /// Number of durations measured.
    public var count: Int { buckets.reduce(0) { Int(clamping: Int64($0).addingSaturated($1.count)) } }

    /// The mean; nil if nothing was measured.
    public var mean: Duration? { count == 0 ? nil : total / count }

    /// A duration that `fraction` of the measured ones did not exceed. It is the end of the bucket in which that
    /// fraction is reached, so at most twice the true value.
    /// - Parameter fraction: 0 ... 1, such as 0.99.
    /// - Returns: nil if nothing was measured, or if it is in the last bucket.
    public func percentile(_ fraction: Double) -> Duration? {
        let wanted = max(1, (Double(count) * min(max(fraction, 0), 1)).rounded(.up))
        var seen = 0.0
        for bucket in buckets {
            seen += Double(bucket.count)
            if seen >= wanted { return bucket.end }
        }
        return nil
    }
}

extension Int64 {
    fileprivate func addingSaturated(_ other: Int) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(Int64(other))
        return overflow ? .max : sum
    }
}

extension StoreCounters {
    /// The sums over the areas of a file, whatever it holds.
    init(_ words: [UInt64]) {
        func sum(_ word: Int) -> UInt64 {
            (0..<CounterLayout.areaCount).reduce(0) { $0 &+ words[CounterLayout.area($1) + word] }
        }
        func lanes(_ lane: CounterLayout.Lane) -> UInt64 {
            (0..<CounterLayout.laneCount).reduce(0) { $0 &+ sum($1 * CounterLayout.laneWords + lane.rawValue) }
        }
        func count(_ scalar: CounterLayout.Scalar) -> Int {
            Int(clamping: sum(CounterLayout.scalarsAt + scalar.rawValue))
        }
        func times(_ timing: CounterLayout.Timing) -> LatencyHistogram {
            let first = CounterLayout.timing(timing)
            return LatencyHistogram(
                sum: sum(first), counts: (0..<CounterLayout.bucketCount).map { sum(first + 1 + $0) })
        }
        since = Timestamp(microseconds: Int64(bitPattern: words[CounterLayout.sinceWord]))
        hits = Int(clamping: lanes(.hits) &+ lanes(.otherHits))
        misses = Int(clamping: lanes(.misses))
        bytesRead = ByteCount(Int64(clamping: lanes(.bytesRead) &+ lanes(.otherBytesRead)))
        puts = count(.puts)
        bytesWritten = ByteCount(Int64(count(.bytesWritten)))
        removed = count(.removed)
        displaced = Displaced(
            expired: count(.displacedExpired), leastRecentlyUsed: count(.displacedLeastRecentlyUsed),
            memoryOnlyExpired: count(.evictedExpired), memoryOnlyLeastRecentlyUsed: count(.evictedLeastRecentlyUsed))
        commits = count(.commits)
        failedChanges = count(.failedChanges)
        damagedBodies = count(.damagedBodies)
        for work in StandingFailure.Work.allCases where count(work.scalar) > 0 { failures[work] = count(work.scalar) }
        lookupTimes = times(.lookup)
        putTimes = times(.put)
        commitTimes = times(.commit)
    }
}

extension StandingFailure.Work {
    /// Where its failures are counted.
    var scalar: CounterLayout.Scalar {
        switch self {
        case .commit: .commitFailures
        case .publication: .publicationFailures
        case .touches: .touchFailures
        case .displacement: .displacementFailures
        case .expiry: .expiryFailures
        case .checkpoint: .checkpointFailures
        case .leases: .leaseFailures
        }
    }
}
