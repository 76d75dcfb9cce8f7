import Larder
import SystemPackage

/// P7: hits and puts a second in a store with very many entries, against one with 10,000. Hits on any key; puts under
/// new keys between the existing ones, removed again after each round. Bodies of 100 bytes.
enum P7Growth: Target {
    static let id = "P7"

    static func run(_ context: TargetContext) throws -> [TargetRow] {
        let grown = try context.grown()
        let large = try LarderPeer(grown.large)
        let small = try LarderPeer(grown.small)
        let gets = context.preset == .quick ? 20_000 : 200_000
        let puts = context.preset == .quick ? 2000 : 10_000
        func hits(_ peer: LarderPeer, _ count: Int, _ round: Int) throws -> Double {
            let order = Order.uniform(gets, below: count, seed: context.seed &+ UInt64(round)).map { $0 * 2 }
            return try Driver(peer, grown.bodies).get(order).rate
        }
        func stores(_ peer: LarderPeer, _ count: Int, _ round: Int) throws -> Double {
            var seen: Set<Int> = []
            let order = Order.uniform(puts, below: count, seed: context.seed &+ UInt64(round) &+ 99).map { $0 * 2 + 1 }
                .filter { seen.insert($0).inserted }
            let driver = Driver(peer, grown.bodies)
            FileTree.syncAll()
            let rate = try driver.put(order).rate
            _ = try driver.remove(order)
            return rate
        }
        let text = "at \(Render.count(grown.largeCount)) entries"
        let hitting = try Comparison.run(rounds: context.rounds) {
            try hits(large, grown.largeCount, $0)
        } _: {
            try hits(small, grown.smallCount, $0)
        }
        let putting = try Comparison.run(rounds: context.rounds) {
            try stores(large, grown.largeCount, $0)
        } _: {
            try stores(small, grown.smallCount, $0)
        }
        try large.close()
        try small.close()
        return [
            TargetRow(id, "hits/s \(text), 100 B", against: "at 10,000 entries", atLeast: 0.6, hitting),
            TargetRow(id, "puts/s \(text), 100 B", against: "at 10,000 entries", atLeast: 0.6, putting),
        ]
    }
}
