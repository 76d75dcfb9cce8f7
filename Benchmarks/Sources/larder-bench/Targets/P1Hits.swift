/// P1: warm hits a second, one thread, from the key to the bytes in hand, against open + pread + close of plain files.
///
/// Files are read into a buffer that is reused. Larder is measured in three ways: with `withBody(of:)`, which lends the
/// bytes in place; with `read(_:into:)`, which copies them into a buffer that is reused, as pread(2) does; and with
/// `get` and `bytes()`, which allocates memory for the caller. Copies of 16 KiB and more are limited by memory, on
/// either side.
enum P1Hits: Target {
    static let id = "P1"

    static func run(_ context: TargetContext) throws -> [TargetRow] {
        try rows(context, .fixed(1 << 10), Goals(inPlace: 6, copied: 5, own: 3.5))
            + rows(context, .fixed(16 << 10), Goals(inPlace: 12, copied: 2.2, own: 2))
            + rows(context, .fixed(1 << 20), Goals(inPlace: nil, copied: 0.95, own: 0.95))
    }

    /// What each way of reading should reach; nil: it is not measured.
    private struct Goals {
        var inPlace: Double?
        var copied: Double
        var own: Double
    }

    private static func rows(_ context: TargetContext, _ size: BodySize, _ goals: Goals) throws -> [TargetRow] {
        let bodies = Bodies(size, seed: context.seed)
        let entries = min(context.preset.puts(size), 10_000)
        let gets = context.preset.gets(size)
        return try context.withPeer(.files, bodies) { files in
            try context.withPeer(.larder, bodies) { larder in
                _ = try files.put(0..<entries)
                _ = try larder.put(0..<entries)
                guard let store = (larder.peer as? LarderPeer)?.store else { return [] }
                let lent = Driver(LarderPeer(sharing: store, reading: .inPlace), bodies)
                let copied = Driver(LarderPeer(sharing: store, reading: .copied), bodies)
                for driver in [files, larder, lent, copied] { _ = try driver.get(0..<entries) }
                func rate(_ driver: Driver, _ round: Int) throws -> Double {
                    let order = Order.uniform(gets, below: entries, seed: context.seed &+ UInt64(round))
                    return try driver.get(order).rate
                }
                let ways = [
                    ("withBody", goals.inPlace, lent), ("read(into:)", goals.copied, copied),
                    ("get", goals.own, larder),
                ]
                return try ways.compactMap { name, goal, driver in
                    guard let goal else { return nil }
                    let comparison = try Comparison.run(rounds: context.rounds) {
                        try rate(driver, $0)
                    } _: {
                        try rate(files, $0)
                    }
                    return TargetRow(
                        id, "hits/s, \(size), \(name)", against: "open+pread+close of files", atLeast: goal,
                        comparison)
                }
            }
        }
    }
}
