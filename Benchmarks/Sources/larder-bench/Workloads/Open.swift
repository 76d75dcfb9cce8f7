/// How long does it take to open a store that was closed properly? 20 times; neither the filling nor the closing is
/// timed.
enum Open: Workload {
    static let name = "open"
    static let question = "How long does it take to open a store?"

    static func run(_ plan: Plan) throws -> Tally {
        try plan.withFilledPeer { _ in }
        var tally = Tally.recording
        for _ in 0..<20 {
            let start = Ticks.now()
            let peer = try plan.kind.open(plan.path)
            let elapsed = Ticks.now() - start
            try peer.close()
            tally.operations += 1
            tally.seconds += Double(elapsed) / 1e9
            _ = tally.latency?.record(elapsed)
        }
        return tally
    }
}
