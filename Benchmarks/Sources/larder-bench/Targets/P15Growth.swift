import Larder
import SystemPackage

/// P15: hits and puts a second, and bytes of the index, with ten million entries against one million.
enum P15Growth: Target {
    static let id = "P15"
    private static let smallCount = 1_000_000

    static func run(_ context: TargetContext) throws -> [TargetRow] {
        let grown = try context.grown()
        guard grown.largeCount > smallCount else { return [] }
        let path = try context.directory.make("million")
        defer { FileTree.remove(path) }
        try grown.fill(context, .larder, path, smallCount, plotted: false)
        let load = LargeLoad(context, grown.bodies)
        let large = try LarderPeer(grown.large, reading: .copied)
        let small = try LarderPeer(path, reading: .copied)
        let hitting = try Comparison.run(rounds: context.rounds) {
            try load.hits(large, grown.largeCount, $0)
        } _: {
            try load.hits(small, smallCount, $0)
        }
        let putting = try Comparison.run(rounds: context.rounds) {
            try load.puts(large, grown.largeCount, $0)
        } _: {
            try load.puts(small, smallCount, $0)
        }
        try large.close()
        try small.close()
        let (text, other) = ("at \(Render.count(grown.largeCount)) entries", "at \(Render.count(smallCount)) entries")
        return [
            TargetRow(id, "hits/s \(text), 100 B", against: other, atLeast: 0.6, hitting),
            TargetRow(id, "puts/s \(text), 100 B", against: other, atLeast: 0.6, putting),
        ]
    }
}
