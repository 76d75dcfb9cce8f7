import Synchronization
import SystemPackage

/// P9: hits a second of two threads, against two processes with a store each, which is what the machine can do: they
/// have no part of the engine in common. 1,000 hot keys, `get` and `bytes()`.
enum P9Threads: Target {
    static let id = "P9"

    static func run(_ context: TargetContext) throws -> [TargetRow] {
        try [1 << 10, 16 << 10].map { bytes in
            let size = BodySize.fixed(bytes)
            let bodies = Bodies(size, seed: context.seed)
            let seconds = context.preset == .quick ? 0.2 : 1
            let paths = [try context.directory.make("one"), try context.directory.make("two")]
            defer { for path in paths { FileTree.remove(path) } }
            for path in paths {
                let peer = try LarderPeer(path)
                _ = try Driver(peer, bodies).put(0..<1000)
                try peer.close()
            }
            let order = Order.uniform(20_000, below: 1000, seed: context.seed)
            return try context.withPeer(.larder, bodies) { driver in
                _ = try driver.put(0..<1000)
                _ = try driver.get(order)
                /// Of threads that share the store.
                func threads(_ count: Int) throws -> Double {
                    let rates = Rates()
                    try Threads.run(count) { _ in
                        let began = Ticks.now()
                        let end = began + UInt64(seconds * 1e9)
                        var hits = 0
                        while Ticks.now() < end { hits += try driver.get(order).operations }
                        rates.add(Double(hits) / (Double(Ticks.now() - began) / 1e9))
                    }
                    return rates.sum
                }
                let one = try threads(1)
                let comparison = try Comparison.run(rounds: context.rounds) { _ in
                    try threads(2)
                } _: { _ in
                    try HitsCommand.measure(paths, length: bytes, seed: context.seed, seconds: seconds)
                }
                var row = TargetRow(
                    id, "hits/s of 2 threads, \(size)", against: "2 processes, a store each", atLeast: 0.95, comparison)
                row.detail += "; 1 thread \(Render.rate(one))"
                return row
            }
        }
    }
}

/// Rates of several threads, added up.
final class Rates: Sendable {
    private let total = Mutex(0.0)

    func add(_ rate: Double) { total.withLock { $0 += rate } }

    var sum: Double { total.withLock { $0 } }
}
