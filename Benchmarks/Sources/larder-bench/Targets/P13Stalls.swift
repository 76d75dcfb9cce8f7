import SystemPackage

/// P13: the longest put and hit, and the 99.9th percentile, of two threads that put and two that read, in a full store.
/// Bodies of all sizes and of 16 KiB. The detail says by what those over 5 ms were held up. Linux.
enum P13Stalls: Target {
    static let id = "P13"

    static func run(_ context: TargetContext) throws -> [TargetRow] {
        let seconds = context.preset == .quick ? 2 : 15
        return try [BodySize.wide, .fixed(16 << 10)].flatMap { size in
            let figures = try Stalls(
                size: size, budgetBytes: 128 << 20, factor: 2, seconds: Double(seconds), seed: context.seed
            ).run(in: context.directory)
            return [("put", figures.puts), ("hit", figures.hits)].flatMap { name, figures in
                func row(_ what: String, _ target: Double, _ nanoseconds: UInt64, _ detail: String) -> TargetRow {
                    TargetRow(
                        id: id, measure: "\(what) \(name), full store, 2 + 2 threads, \(size)", against: "",
                        sense: .atMost, target: target, reached: Double(nanoseconds) / 1e6, unit: " ms", detail: detail)
                }
                return [
                    row("longest", 50, figures.longest, figures.summary),
                    row("p99.9", 5, figures.p999, "of \(Render.count(figures.operations))"),
                ]
            }
        }
    }
}
