import Larder

/// P4: victims displaced a second, 16 KiB, everything synced before, against unlink of synced plain files.
///
/// Two cases: an entry budget that is lowered, after which the space is free for other bodies of the store; and a byte
/// budget that is lowered, after which the file system has the space back, as after unlink(2).
enum P4Displacement: Target {
    static let id = "P4"

    static func run(_ context: TargetContext) throws -> [TargetRow] {
        let bodies = Bodies(.fixed(16 << 10), seed: context.seed)
        let count = context.preset == .quick ? 500 : 4000
        func unlinks(_: Int) throws -> Double {
            try context.withPeer(.files, bodies) { driver in
                let part = 0..<count / 2
                _ = try driver.put(part)
                FileTree.syncAll()
                return try driver.remove(part).rate
            }
        }
        func victims(_ budget: Budget, of count: Int) throws -> Double {
            try context.withPeer(.larder, bodies) { driver in
                guard let store = (driver.peer as? LarderPeer)?.store else { return 0 }
                _ = try driver.put(0..<count)
                FileTree.syncAll()
                let seconds = try Ticks.seconds { try store.setBudget(budget) }
                return Double(try store.statistics().displacedCount) / seconds
            }
        }
        let byCount = try Comparison.run(rounds: context.rounds) { _ in
            try victims(Budget(entries: count / 10), of: count)
        } _: {
            try unlinks($0)
        }
        let byBytes = try Comparison.run(rounds: context.rounds) { _ in
            // Fewer: holes are punched at a few hundred a second on some disks.
            let fewer = max(400, count / 4)
            return try victims(Budget(bytes: ByteCount(fewer * (16 << 10) / 4)), of: fewer)
        } _: {
            try unlinks($0)
        }
        return [
            TargetRow(id, "victims/s, 16 KiB, entry budget", against: "unlink of synced files", atLeast: 20, byCount),
            TargetRow(
                id, "victims/s, 16 KiB, byte budget, space given back", against: "unlink of synced files", atLeast: 6,
                byBytes),
        ]
    }
}
