import Larder
import SystemPackage

/// The store with very many entries, and raw LMDB with the same. Filled once, used by P6, P7, P8, P15 and P18.
///
/// Bodies have 100 bytes, so that the store is nearly all index. Keys have even numbers and come in random order; odd
/// ones are left for puts between them.
struct GrownStore {
    static let bodySize = 100
    let large: FilePath
    let lmdb: FilePath
    let largeCount: Int
    let bodies: Bodies

    /// Fills both; measures on the way.
    static func fill(_ context: TargetContext) throws -> GrownStore {
        let grown = GrownStore(
            large: try context.directory.make("large"), lmdb: try context.directory.make("lmdb-large"),
            largeCount: context.preset.manyEntries, bodies: Bodies(.fixed(bodySize), seed: context.seed))
        context.progress("filling a store with \(Render.count(grown.largeCount)) entries ...")
        try grown.fill(context, .larder, grown.large, grown.largeCount, plotted: true)
        context.progress("filling raw LMDB with as many ...")
        try grown.fill(context, .lmdb, grown.lmdb, grown.largeCount, plotted: true)
        return grown
    }

    func fill(_ context: TargetContext, _ kind: PeerKind, _ path: FilePath, _ count: Int, plotted: Bool) throws {
        let peer = try kind.open(path)
        let driver = Driver(peer, bodies)
        let order = Order.shuffled(0..<count, seed: context.seed).map { $0 * 2 }
        var filled = 0
        for point in [10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, Int.max] {
            let next = min(point, count)
            guard next > filled else { break }
            let puts = try driver.put(order[filled..<next])
            filled = next
            if plotted {
                var reading = driver
                reading.recordsLatency = true
                let sample = Order.uniform(50_000, below: filled, seed: context.seed).map { order[$0] }
                let gets = try reading.get(sample)
                context.curves.growth.append(
                    Curves.GrowthPoint(
                        peer: kind.rawValue, entries: filled, putRate: puts.rate, getRate: gets.rate,
                        getP99: Percentiles(gets)?.p99 ?? 0))
            }
        }
        try peer.close()
    }
}
