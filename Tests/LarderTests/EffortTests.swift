import Larder
import TestSupport
import Testing

/// What operations cost, as counts: a change that makes the hot path allocate, call the system or write more fails
/// here, on any machine. The limits are in `Effort/engine.txt`.
struct EffortTests {
    @Test func operationsCostWhatTheFileSays() throws {
        let counts = try withDirectory { directory in
            let path = directory.appending("store")
            let counts = try EffortCounts(of: "LarderEffort", [path.string])
            try finish(try Store(at: path, .testing()))
            return counts
        }
        try #require(counts.isComplete)
        var limits = try EffortLimits("engine.txt")
        // Each of these is counted where the system has the means: see LarderEffort.
        let metrics = Set(counts.rows.map(\.row.metric))
        try limits.compare(counts) { metrics.contains($0.metric) }
    }
}
