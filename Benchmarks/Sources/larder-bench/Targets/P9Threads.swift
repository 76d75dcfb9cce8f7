/// P9: hits a second of two threads, against one. 1,000 hot keys, `get` and `bytes()`.
enum P9Threads: Target {
    static let id = "P9"

    static func run(_ context: TargetContext) throws -> [TargetRow] {
        try [1 << 10, 16 << 10].map { bytes in
            let size = BodySize.fixed(bytes)
            let bodies = Bodies(size, seed: context.seed)
            let gets = context.preset.gets(size) * 2
            return try context.withPeer(.larder, bodies) { one in
                _ = try one.put(0..<1000)
                var two = one
                two.threads = 2
                let order = Order.uniform(gets, below: 1000, seed: context.seed)
                _ = try one.get(order)
                let comparison = try Comparison.run(rounds: context.rounds) { _ in
                    try two.get(order).rate
                } _: { _ in
                    try one.get(order).rate
                }
                return TargetRow(id, "hits/s of 2 threads, \(size)", against: "1 thread", atLeast: 1.8, comparison)
            }
        }
    }
}
