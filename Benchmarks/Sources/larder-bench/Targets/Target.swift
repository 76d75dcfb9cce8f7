/// A performance target of the project.
protocol Target: Sendable {
    /// `P1`.
    static var id: String { get }
    /// Measures it. Several rows if it has several sizes or cases.
    static func run(_ context: TargetContext) throws -> [TargetRow]
}

/// All of them, in order.
enum Targets {
    static let all: [any Target.Type] = [
        P1Hits.self, P2Puts.self, P3DurablePuts.self, P4Displacement.self, P5PutLatency.self, P6Open.self,
        P7Growth.self, P8Footprint.self, P9Threads.self, P10SteadyState.self, P11Replay.self, P12Peers.self,
        P13Stalls.self,
        P15Growth.self, P16MixedLoad.self, P17ManyStores.self, P18DeviceWrites.self,
    ]

    /// Runs those whose id is in `ids` (nil: all). A failure becomes a row of the table; an interruption ends the run.
    static func run(_ context: TargetContext, only ids: Set<String>?) throws -> [TargetRow] {
        var rows: [TargetRow] = []
        for target in all where ids?.contains(target.id) ?? true {
            context.progress("\(target.id) ...")
            let start = Ticks.now()
            let before = rows.count
            do {
                rows += try target.run(context)
            } catch {
                try Interruption.check()
                rows.append(
                    TargetRow(
                        id: target.id, measure: "not measured", against: "", sense: .atLeast, target: 0, unit: "",
                        detail: "\(error)"))
            }
            // So that a long run that is interrupted has printed some results.
            for row in rows[before...] { context.progress("  " + TargetTable.line(row)) }
            context.progress("\(target.id) took \(Render.decimal(Double(Ticks.now() - start) / 1e9, 1)) s")
        }
        return rows
    }
}
