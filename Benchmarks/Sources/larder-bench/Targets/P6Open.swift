import Larder
import SystemPackage

/// P6: the time to open a store with very many entries that was closed properly, against one with 1,000. `Store(at:)`
/// alone is timed.
enum P6Open: Target {
    static let id = "P6"

    static func run(_ context: TargetContext) throws -> [TargetRow] {
        let grown = try context.grown()
        let tiny = try context.directory.make("tiny")
        defer { FileTree.remove(tiny) }
        let peer = try LarderPeer(tiny)
        _ = try Driver(peer, grown.bodies).put(0..<1000)
        try peer.close()
        // Nanoseconds, the median of seven openings a round.
        func open(_ path: FilePath) throws -> Double {
            Comparison.median(
                try (0..<7).map { _ in
                    let start = Ticks.now()
                    let store = try Store(at: path)
                    let elapsed = Ticks.now() - start
                    try store.close()
                    return Double(elapsed)
                })
        }
        _ = try open(tiny)
        _ = try open(grown.large)
        let comparison = try Comparison.run(rounds: context.rounds) { _ in
            try open(grown.large)
        } _: { _ in
            try open(tiny)
        }
        let row = TargetRow(
            id, "open with \(Render.count(grown.largeCount)) entries", against: "open with 1,000 entries", atMost: 2,
            comparison)
        return [row]
    }
}
