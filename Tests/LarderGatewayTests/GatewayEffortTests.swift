import TestSupport
import Testing

/// What requests cost the gateway, as counts: a change that makes one of its paths allocate, call the system, start
/// tasks, change threads or write more fails here, on any machine. The limits are in `Effort/gateway.txt`.
struct GatewayEffortTests {
    private static var isDebug: Bool {
        #if DEBUG
            true
        #else
            false
        #endif
    }

    @Test(.enabled(if: isDebug, "the limits are those of debug builds"))
    func everyPathCostsWhatTheFileSays() throws {
        let counts = try withDirectory { try EffortCounts(of: "LarderGatewayEffort", [$0.string]) }
        try #require(counts.isComplete)
        var limits = try EffortLimits("gateway.txt")
        // Nothing with a sanitizer; no system calls where ptrace(2) is forbidden. The program has said so.
        let metrics = Set(counts.rows.map(\.row.metric))
        try limits.compare(counts) { counts.skipped.isEmpty || metrics.contains($0.metric) }
    }
}
