import Larder
import SystemPackage

/// P7: hits and puts a second in a store with very many entries, beside raw LMDB with one tree. Hits on any key; puts
/// under new keys between the existing ones, removed again after each round. Bodies of 100 bytes.
enum P7Growth: Target {
    static let id = "P7"

    static func run(_ context: TargetContext) throws -> [TargetRow] {
        let grown = try context.grown()
        let load = LargeLoad(context, grown.bodies)
        let larder = try LarderPeer(grown.large, reading: .copied)
        let lmdb = try RawLMDBPeer(grown.lmdb)
        let hitting = try Comparison.run(rounds: context.rounds) {
            try load.hits(larder, grown.largeCount, $0)
        } _: {
            try load.hits(lmdb, grown.largeCount, $0)
        }
        let putting = try Comparison.run(rounds: context.rounds) {
            try load.puts(larder, grown.largeCount, $0)
        } _: {
            try load.puts(lmdb, grown.largeCount, $0)
        }
        try larder.close()
        try lmdb.close()
        let text = "at \(Render.count(grown.largeCount)) entries"
        return [
            TargetRow(id, "hits/s \(text), 100 B", against: "raw LMDB, one tree", atLeast: 0.9, hitting),
            TargetRow(id, "puts/s \(text), 100 B", against: "raw LMDB, one tree", atLeast: 0.8, putting),
        ]
    }
}

/// What is done to stores with very many entries.
struct LargeLoad {
    private let seed: UInt64
    private let bodies: Bodies
    private let gets: Int
    private let puts: Int

    init(_ context: TargetContext, _ bodies: Bodies) {
        let isQuick = context.preset == .quick
        self.init(
            seed: context.seed, bodies, gets: isQuick ? 20_000 : 200_000, puts: isQuick ? 2000 : 20_000)
    }

    init(seed: UInt64, _ bodies: Bodies, gets: Int, puts: Int) {
        self.seed = seed
        self.bodies = bodies
        self.gets = gets
        self.puts = puts
    }

    /// Gets a second of any of `count` entries, which have even numbers.
    func hits(_ peer: any Peer, _ count: Int, _ round: Int) throws -> Double {
        let order = Order.uniform(gets, below: count, seed: seed &+ UInt64(round)).map { $0 * 2 }
        return try Driver(peer, bodies).get(order).rate
    }

    /// Puts a second of entries with odd numbers, which are removed again.
    func puts(_ peer: any Peer, _ count: Int, _ round: Int) throws -> Double {
        let (order, driver) = (newEntries(count, round), Driver(peer, bodies))
        FileTree.syncAll()
        let rate = try driver.put(order).rate
        _ = try driver.remove(order)
        return rate
    }

    /// Bytes that reach the device for each byte of such puts.
    func written(_ peer: any Peer, _ count: Int, _ round: Int, _ device: DeviceWrites) throws -> Double {
        let (order, driver) = (newEntries(count, round), Driver(peer, bodies))
        FileTree.syncAll()
        let before = device.bytes() ?? 0
        let put = try driver.put(order)
        FileTree.syncAll()
        let written = (device.bytes() ?? 0) - before
        _ = try driver.remove(order)
        return Double(written) / Double(max(put.bytes, 1))
    }

    private func newEntries(_ count: Int, _ round: Int) -> [Int] {
        var seen: Set<Int> = []
        return Order.uniform(puts, below: count, seed: seed &+ UInt64(round) &+ 99).map { $0 * 2 + 1 }
            .filter { seen.insert($0).inserted }
    }
}
