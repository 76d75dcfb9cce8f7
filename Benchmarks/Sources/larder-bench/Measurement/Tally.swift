import Histogram

/// The result of a timed piece of a run.
struct Tally: Sendable {
    /// Operations done.
    var operations = 0
    /// Wall time, from the first start to the last end of all threads.
    var seconds = 0.0
    /// Bytes of bodies put or read.
    var bytes = 0
    /// Gets that found nothing.
    var misses = 0
    /// Time of each operation, in nanoseconds; nil if it was not recorded.
    var latency: Histogram<UInt64>?

    /// Operations a second.
    var rate: Double { Double(operations) / max(seconds, 1e-9) }

    /// A tally with a histogram to record in: 1 ns to 10 minutes, three digits.
    static var recording: Tally {
        var tally = Tally()
        tally.latency = Histogram<UInt64>(
            highestTrackableValue: 600_000_000_000, numberOfSignificantValueDigits: .three)
        return tally
    }

    /// One after the other: times add up.
    mutating func append(_ other: Tally) {
        seconds += other.seconds
        merge(other)
    }

    /// At the same time: the caller sets the time.
    mutating func merge(_ other: Tally) {
        operations += other.operations
        bytes += other.bytes
        misses += other.misses
        if let recorded = other.latency {
            if latency == nil { latency = recorded } else { latency?.add(recorded) }
        }
    }
}

/// Latencies of a run, in nanoseconds.
struct Percentiles: Codable, Sendable {
    var p50: UInt64
    var p99: UInt64
    var p999: UInt64
    var max: UInt64

    init?(_ tally: Tally) {
        guard let latency = tally.latency, latency.totalCount > 0 else { return nil }
        p50 = latency.valueAtPercentile(50)
        p99 = latency.valueAtPercentile(99)
        p999 = latency.valueAtPercentile(99.9)
        max = latency.max
    }
}
