import Larder
import SystemPackage

/// P10: puts a second after ten times the budget was written, against a fresh store that is being filled. Lengths are
/// spread evenly over the logarithm of 100 B ... 1 MiB. The directory is walked all the time: it must never take more
/// than the budget.
enum P10SteadyState: Target {
    static let id = "P10"

    static func run(_ context: TargetContext) throws -> [TargetRow] {
        let budget: Int64 = context.preset == .quick ? 16 << 20 : 128 << 20
        let size = BodySize.wide
        let bodies = Bodies(size, seed: context.seed)
        let worth = Int(budget) / size.mean
        let options = PeerOptions(budgetBytes: budget)
        let path = try context.directory.make("steady")
        defer { FileTree.remove(path) }
        let steady = try LarderPeer(path, options)
        let sampler = BudgetSampler(path, limit: budget)
        // What is put in a round fits a fresh store: 0.7 of the budget.
        let part = worth * 7 / 10
        // Both sides put the same bodies in a round.
        func indices(_ round: Int) -> Range<Int> { worth * 10 + round * part..<worth * 10 + (round + 1) * part }
        let comparison: Comparison
        do {
            let driver = Driver(steady, bodies)
            _ = try driver.put(0..<worth * 10)
            comparison = try Comparison.run(rounds: context.rounds) { round in
                FileTree.syncAll()
                return try driver.put(indices(round)).rate
            } _: { round in
                try context.withPeer(.larder, bodies, options: options) { fresh in
                    FileTree.syncAll()
                    return try fresh.put(indices(round)).rate
                }
            }
        } catch {
            _ = sampler.stop()
            throw error
        }
        let highest = sampler.stop()
        try steady.close()
        let share = Double(highest) / Double(budget)
        return [
            TargetRow(
                id, "puts/s after 10x the budget, \(size)", against: "the fresh store", atLeast: 0.6, comparison),
            TargetRow(
                id: id, measure: "highest disk use meanwhile", against: "the budget", sense: .atMost, target: 1,
                reached: share, unit: "x", rounds: [share],
                detail: "\(ByteCount(highest)) of \(ByteCount(budget)), \(Render.count(sampler.walks)) walks"),
        ]
    }
}
