/// P3: durable puts a second of 16 KiB with 64 writers at once, against create + write + fsync + rename by 64 threads.
enum P3DurablePuts: Target {
    static let id = "P3"
    private static let writers = 64

    static func run(_ context: TargetContext) throws -> [TargetRow] {
        let bodies = Bodies(.fixed(16 << 10), seed: context.seed)
        let each = context.preset == .quick ? 5 : 40
        let comparison = try Comparison.run(rounds: context.rounds) { _ in
            try context.putRate(
                .larder, bodies, count: writers * each, threads: writers, isDurable: true)
        } _: { _ in
            try context.putRate(.files, bodies, count: writers * each / 2, threads: writers, isDurable: true)
        }
        return [
            TargetRow(
                id, "durable puts/s, 16 KiB, 64 writers", against: "create+write+fsync+rename, 64 threads", atLeast: 20,
                comparison)
        ]
    }
}
