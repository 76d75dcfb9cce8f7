import Larder
import SystemPackage

/// The store with very many entries, and a small one with the same bodies. Filled once, used by P6, P7 and P8.
///
/// Bodies have 100 bytes, so that the store is nearly all index. Keys have even numbers and come in random order; odd
/// ones are left for puts between them.
struct GrownStore {
    static let bodySize = 100
    let large: FilePath
    let small: FilePath
    let largeCount: Int
    let smallCount = 10_000
    let bodies: Bodies

    /// Fills both, and a plain LMDB environment for the plot; measures on the way.
    static func fill(_ context: TargetContext) throws -> GrownStore {
        let grown = GrownStore(
            large: try context.directory.make("large"), small: try context.directory.make("small"),
            largeCount: context.preset.manyEntries, bodies: Bodies(.fixed(bodySize), seed: context.seed))
        try grown.fill(context, .larder, grown.small, grown.smallCount, plotted: false)
        context.progress("filling a store with \(Render.count(grown.largeCount)) entries ...")
        try grown.fill(context, .larder, grown.large, grown.largeCount, plotted: true)
        let limit = try context.directory.make("lmdb-large")
        try grown.fill(context, .lmdb, limit, min(grown.largeCount, 1_000_000), plotted: true)
        FileTree.remove(limit)
        return grown
    }

    private func fill(_ context: TargetContext, _ kind: PeerKind, _ path: FilePath, _ count: Int, plotted: Bool) throws
    {
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
