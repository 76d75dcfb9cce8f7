import Larder
import Metrics

/// The metrics of one store, each made when it is reported for the first time.
struct Instruments {
    private struct Name: Hashable {
        let label: String
        let dimensions: [String]

        init(_ label: String, _ dimensions: [(String, String)]) {
            self.label = label
            self.dimensions = dimensions.flatMap { [$0, $1] }
        }
    }

    private let prefix: String
    private let dimensions: [(String, String)]
    private let factory: any MetricsFactory
    // Kept, as a factory may keep what it knows of a metric with the object.
    private var gauges: [Name: Gauge] = [:]
    private var counters: [Name: Counter] = [:]
    private var sums: [String: FloatingPointCounter] = [:]
    /// How much of each counter was reported.
    private var reported: [Name: Int64] = [:]
    private var since: Timestamp?

    init(prefix: String, dimensions: [(String, String)], factory: any MetricsFactory) {
        self.prefix = prefix
        self.dimensions = dimensions
        self.factory = factory
    }

    // MARK: Sizes

    mutating func report(_ statistics: Statistics) {
        gauge("entries", statistics.entryCount)
        gauge("bodies", statistics.blobCount)
        gauge("files", statistics.fileCount)
        gauge("logical_bytes", statistics.logicalBytes.bytes)
        gauge("stored_bytes", statistics.storedBytes.bytes)
        gauge("compression_gain_bytes", statistics.compressionGain.bytes)
        gauge("allocated_bytes", statistics.allocatedBytes.bytes)
        gauge("index_bytes", statistics.indexBytes.bytes)
        gauge("transient_bytes", statistics.transientBytes.bytes)
        gauge("memory_entries", statistics.memoryEntryCount)
        gauge("memory_bytes", statistics.memoryBytes.bytes)
        gauge("held_values", statistics.memoryTier.count)
        gauge("held_bytes", statistics.memoryTier.bytes.bytes)
        gauge("held_hits", statistics.memoryTier.hits)
        gauge("held_misses", statistics.memoryTier.misses)
        if statistics.budget.bytes != .unlimited { gauge("budget_bytes", statistics.budget.bytes.bytes) }
        for work in StandingFailure.Work.allCases {
            gauge("failing", statistics.failures.contains { $0.work == work } ? 1 : 0, [("work", work.rawValue)])
        }
    }

    private mutating func gauge(_ name: String, _ value: some BinaryInteger, _ more: [(String, String)] = []) {
        let (label, all) = (prefix + name, dimensions + more)
        let gauge = gauges[Name(label, all)] ?? Gauge(label: label, dimensions: all, factory: factory)
        gauges[Name(label, all)] = gauge
        gauge.record(Double(value))
    }

    // MARK: Counters

    mutating func report(_ now: StoreCounters) {
        // Another file of counters begins at 0, like a process that was started again.
        if now.since != since { reported = [:] }
        since = now.since
        count("hits_total", now.hits)
        count("misses_total", now.misses)
        count("read_bytes_total", now.bytesRead.bytes)
        count("puts_total", now.puts)
        count("written_bytes_total", now.bytesWritten.bytes)
        count("removed_total", now.removed)
        let displaced = now.displaced
        count("displaced_total", displaced.expired, [("reason", "expired")])
        count("displaced_total", displaced.leastRecentlyUsed, [("reason", "leastRecentlyUsed")])
        count("displaced_total", displaced.memoryOnlyExpired, [("reason", "memoryOnlyExpired")])
        count("displaced_total", displaced.memoryOnlyLeastRecentlyUsed, [("reason", "memoryOnlyLeastRecentlyUsed")])
        count("commits_total", now.commits)
        count("failed_changes_total", now.failedChanges)
        count("damaged_bodies_total", now.damagedBodies)
        for work in StandingFailure.Work.allCases {
            count("failures_total", now.failures[work] ?? 0, [("work", work.rawValue)])
        }
        time("lookup_seconds", now.lookupTimes)
        time("put_seconds", now.putTimes)
        time("commit_seconds", now.commitTimes)
    }

    private mutating func count(_ name: String, _ now: some BinaryInteger, _ more: [(String, String)] = []) {
        let name = Name(prefix + name, dimensions + more)
        let counter =
            counters[name] ?? Counter(label: name.label, dimensions: dimensions + more, factory: factory)
        counters[name] = counter
        // Also where nothing was added, so that the metric exists.
        counter.increment(by: added(Int64(clamping: now), name))
    }

    /// What has been added to a counter since it was reported last; 0 for a reading that another one has overtaken.
    private mutating func added(_ now: Int64, _ name: Name) -> Int64 {
        let before = reported[name] ?? 0
        guard now > before else { return 0 }
        reported[name] = now
        return now - before
    }

    /// A histogram in the form of Prometheus: cumulative counts with the dimension `le`, their sum and number.
    private mutating func time(_ name: String, _ now: LatencyHistogram) {
        var count = 0
        for bucket in now.buckets {
            count = max(count, count &+ bucket.count)
            self.count(name + "_bucket", count, [("le", bucket.end.map { "\($0.inSeconds)" } ?? "+Inf")])
        }
        self.count(name + "_count", count)
        let label = prefix + name + "_sum"
        let sum = sums[label] ?? FloatingPointCounter(label: label, dimensions: dimensions, factory: factory)
        sums[label] = sum
        let nanoseconds = Int64(min(now.total.inSeconds * 1e9, 9e18))
        sum.increment(by: Double(added(nanoseconds, Name(label, dimensions))) / 1e9)
    }
}

extension Duration {
    fileprivate var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
