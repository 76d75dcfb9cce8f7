import SystemPackage
import Synchronization

/// P16: hits a second while another thread puts 1,000 bodies a second under new keys, against hits alone. Hits on any
/// of 10,000 entries, `read(_:into:)`.
enum P16MixedLoad: Target {
    static let id = "P16"
    private static let entries = 10_000
    private static let pace = 1000

    static func run(_ context: TargetContext) throws -> [TargetRow] {
        try [BodySize.fixed(100), .fixed(1 << 10), .fixed(16 << 10)].map { size in
            let bodies = Bodies(size, seed: context.seed)
            return try context.withPeer(.larderSpan, bodies) { driver in
                _ = try driver.put(0..<entries)
                let order = Order.uniform(context.preset == .quick ? 100_000 : 2_000_000, below: entries, seed: 1)
                _ = try driver.get(order)
                var next = entries
                func mixed() throws -> Double {
                    let rate = Mutex(0.0)
                    let isOver = Atomic<Bool>(false)
                    let first = next
                    try Threads.run(2) { number in
                        if number == 0 {
                            defer { isOver.store(true, ordering: .releasing) }
                            let reached = try driver.get(order).rate
                            rate.withLock { $0 = reached }
                        } else {
                            let origin = Ticks.now()
                            var count = 0
                            while !isOver.load(ordering: .acquiring) {
                                let due = origin + UInt64(count) * 1_000_000_000 / UInt64(pace)
                                while Ticks.now() < due { usleep(50) }
                                try driver.peer.put(bodies.body(first + count), driver.peer.name(first + count))
                                count += 1
                            }
                        }
                    }
                    next += 1_000_000
                    return rate.withLock { $0 }
                }
                let comparison = try Comparison.run(rounds: context.rounds) { _ in
                    try mixed()
                } _: { _ in
                    try driver.get(order).rate
                }
                return TargetRow(
                    id, "hits/s while another thread puts 1,000/s, \(size)", against: "hits alone", atLeast: 0.8,
                    comparison)
            }
        }
    }
}
