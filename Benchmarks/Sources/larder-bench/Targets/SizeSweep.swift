/// For the plot: rates of puts and hits against the length of bodies, every peer in each round, medians.
enum SizeSweep {
    static func run(_ context: TargetContext) throws {
        let kinds: [PeerKind] = [.larder, .larderSpan, .files, .sqlite, .directory, .lmdb]
        let sizes = context.preset == .quick ? [BodySize.fixed(1 << 10), .fixed(64 << 10)] : BodySize.standard
        let rounds = context.preset == .quick ? 1 : 3
        for size in sizes {
            let bodies = Bodies(size, seed: context.seed)
            // Few in a quick run: the directory cache writes 3,000 files a second.
            let puts = min(max((24 << 20) / size.mean, 24), context.preset == .quick ? 500 : 8000)
            let gets = min(context.preset.gets(size) / 4, context.preset == .quick ? 2000 : 40_000)
            var putRates: [PeerKind: [Double]] = [:]
            var getRates: [PeerKind: [Double]] = [:]
            for round in 0..<rounds {
                for kind in kinds {
                    try Interruption.check()
                    try context.withPeer(kind, bodies) { driver in
                        FileTree.syncAll()
                        putRates[kind, default: []].append(try driver.put(0..<puts).rate)
                        let order = Order.uniform(gets, below: puts, seed: context.seed &+ UInt64(round))
                        getRates[kind, default: []].append(try driver.get(order).rate)
                    }
                }
            }
            for kind in kinds {
                for (operation, rates) in [("put", putRates), ("hit", getRates)] {
                    context.curves.sizes.append(
                        Curves.SizePoint(
                            peer: kind.rawValue, operation: operation, bodyBytes: size.mean, bodySize: size.description,
                            rate: Comparison.median(rates[kind] ?? [])))
                }
            }
        }
    }
}
