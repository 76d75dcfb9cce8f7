import SystemPackage

/// P11: misses on a trace of real requests, by object, when the store displaces in its own order, against libCacheSim
/// 0.3.5 with LRU.
///
/// The trace is not part of the repository: `cloudphysics-io.oracleGeneral.bin` of libCacheSim, given with `--trace`.
/// For other traces, and for the one that is made where none is given, exact LRU, computed here, replaces the
/// simulator. The store is in memory: this is about order, not about a disk, and every request is a commit.
enum P11Replay: Target {
    static let id = "P11"
    /// 1, 5, 10 and 20% of the trace's footprint, in bytes, and the simulator's miss ratio by object.
    private static let known = [
        (20_297_697, 0.8339), (101_488_486, 0.8229), (202_976_972, 0.8097), (405_953_945, 0.7333),
    ]
    private static let knownRequests = 113_872

    static func run(_ context: TargetContext) throws -> [TargetRow] {
        let trace = try context.trace.map { try TraceFile($0) } ?? .made(seed: context.seed)
        let isKnown = trace.requests.count == knownRequests
        let capacities = isKnown ? known.map { $0.0 } : [1, 5, 10, 20].map { trace.footprint * $0 / 100 }
        let name = context.trace == nil ? "a made trace" : "a trace"
        let memory: FilePath = "/dev/shm"
        guard memory.withPlatformString({ access($0, W_OK) }) == 0 else {
            throw BenchError("no /dev/shm: 'larder-bench trace --path DIR' replays on a disk, in hours")
        }
        return try capacities.suffix(context.preset == .quick ? 1 : capacities.count).map { capacity in
            let replay = TraceReplay(trace: trace, capacity: capacity)
            let simulated = isKnown ? known.first { $0.0 == capacity }?.1 : nil
            let expected = simulated ?? replay.exact().byObject
            let ratio = try WorkDirectory.with(memory) { try replay.run($0.make("trace")).byObject }
            return TargetRow(
                id: id, measure: "miss ratio on \(name), \(Render.count(capacity)) bytes",
                against: isKnown ? "libCacheSim 0.3.5, LRU" : "exact LRU", sense: .atMost, target: 0.001,
                reached: abs(ratio - expected), unit: " off",
                detail: "\(Render.decimal(ratio, 4)) to \(Render.decimal(expected, 4))")
        }
    }
}
