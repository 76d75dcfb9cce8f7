/// P2: puts a second, one thread, relaxed, SHA-256 included, against create + write + rename of plain files. Into an
/// empty store each round; the store's last commit, synced, is in its time.
enum P2Puts: Target {
    static let id = "P2"

    static func run(_ context: TargetContext) throws -> [TargetRow] {
        try [(1 << 10, 5.0), (16 << 10, 4.0), (1 << 20, 0.75)].map { (bytes: Int, target: Double) in
            let size = BodySize.fixed(bytes)
            let count = context.preset.puts(size)
            let comparison = try Comparison.run(rounds: context.rounds) { round in
                try context.putRate(.larder, Bodies(size, seed: context.seed &+ UInt64(round)), count: count)
            } _: { round in
                try context.putRate(.files, Bodies(size, seed: context.seed &+ UInt64(round)), count: count)
            }
            return TargetRow(
                id, "puts/s, \(size)", against: "create+write+rename of files", atLeast: target, comparison)
        }
    }
}
