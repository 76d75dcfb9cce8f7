import SystemPackage

/// P5: the 99th percentile of a put's time while each put displaces at a full budget, against a store with room to
/// spare. 16 KiB, one thread: as fast as it can, and at a steady rate, where a put that waits is not hidden by those
/// that then come later.
enum P5PutLatency: Target {
    static let id = "P5"
    private static let pace = 2000

    static func run(_ context: TargetContext) throws -> [TargetRow] {
        let bodies = Bodies(.fixed(16 << 10), seed: context.seed)
        let budget: Int64 = context.preset == .quick ? 64 << 20 : 512 << 20
        let capacity = Int(budget) / (16 << 10)
        let roomPath = try context.directory.make("room")
        let fullPath = try context.directory.make("full")
        defer {
            FileTree.remove(roomPath)
            FileTree.remove(fullPath)
        }
        let full = try LarderPeer(fullPath, PeerOptions(budgetBytes: budget))
        let room = try LarderPeer(roomPath)
        _ = try Driver(full, bodies).put(0..<capacity * 3 / 2)
        _ = try Driver(room, bodies).put(0..<capacity / 4)
        var next = capacity * 2
        let count = context.preset == .quick ? 2000 : 6000
        func p99(_ peer: LarderPeer, _ name: String, pace: Int?, count: Int) throws -> Double {
            FileTree.syncAll()
            let samples = try PacedPuts.run(peer, bodies, next..<next + count, pace: pace)
            next += count
            context.curves.add(samples, series: name, pace: pace)
            return Double(samples.percentile(99))
        }
        var rows: [TargetRow] = []
        for (text, pace, count) in [("at full speed", nil, count), ("at \(Self.pace)/s", Self.pace, count / 2)] {
            let comparison = try Comparison.run(rounds: context.rounds) { _ in
                try p99(full, "full budget", pace: pace, count: count)
            } _: { _ in
                try p99(room, "room to spare", pace: pace, count: count)
            }
            rows.append(
                TargetRow(
                    id, "put p99 at a full budget, 16 KiB, \(text)", against: "put p99 with room to spare", atMost: 2,
                    comparison))
        }
        try full.close()
        try room.close()
        return rows
    }
}
