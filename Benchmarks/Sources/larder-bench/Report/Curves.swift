/// What the plots show.
struct Curves: Codable, Sendable {
    /// Rate against body size.
    struct SizePoint: Codable, Sendable {
        var peer: String
        var operation: String
        /// The mean of a mix, which the plot leaves out.
        var bodyBytes: Int
        /// `1 KiB`.
        var bodySize: String
        /// Median over the rounds, operations a second.
        var rate: Double
    }

    /// Rate and latency against entries.
    struct GrowthPoint: Codable, Sendable {
        var peer: String
        var entries: Int
        /// Puts a second from the previous point to this one.
        var putRate: Double
        /// Random hits a second.
        var getRate: Double
        /// Of random hits, nanoseconds.
        var getP99: UInt64
    }

    /// Time of puts in a tenth of a second.
    struct LatencyWindow: Codable, Sendable {
        var series: String
        /// Seconds of puts before it.
        var time: Double
        /// Nanoseconds.
        var p50: UInt64
        var p99: UInt64
        var max: UInt64
    }

    var sizes: [SizePoint] = []
    var growth: [GrowthPoint] = []
    var displacement: [LatencyWindow] = []

    /// Adds puts cut into windows of 100 ms, after those that the series already has. The time between two rounds is
    /// left out. Only puts at full speed are plotted.
    mutating func add(_ samples: Samples, series: String, pace: Int?) {
        guard pace == nil, let origin = samples.starts.first else { return }
        let offset = displacement.last { $0.series == series }.map { $0.time + 0.1 } ?? 0
        var windows: [UInt64: Samples] = [:]
        for (start, duration) in zip(samples.starts, samples.durations) {
            windows[(start &- origin) / 100_000_000, default: Samples()].durations.append(duration)
        }
        for (window, part) in windows.sorted(by: { $0.key < $1.key }) {
            displacement.append(
                LatencyWindow(
                    series: series, time: offset + Double(window) / 10, p50: part.percentile(50),
                    p99: part.percentile(99),
                    max: part.percentile(100)))
        }
    }
}
