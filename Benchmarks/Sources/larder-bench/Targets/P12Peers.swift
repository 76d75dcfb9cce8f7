import SystemPackage

/// P12: hits and puts of 1 KiB and 16 KiB against npm cacache, Python diskcache, Foundation's URLCache and SQLite
/// blobs: ahead of all on every row. Peers far slower than the rest do fewer operations in a round.
enum P12Peers: Target {
    static let id = "P12"

    /// A peer's rates in one round.
    private struct Rates {
        var put: Double
        var get: Double
    }

    private struct Contender {
        let name: String
        let run: (BodySize, Int) throws -> Rates
    }

    static func run(_ context: TargetContext) throws -> [TargetRow] {
        let contenders = self.contenders(context)
        var rows: [TargetRow] = []
        for size in [BodySize.fixed(1 << 10), .fixed(16 << 10)] {
            for contender in contenders.known {
                var puts = Comparison()
                var gets = Comparison()
                for round in 0..<context.rounds {
                    try Interruption.check()
                    // Which peer comes first changes with each round.
                    let first = round % 2 == 0 ? try larder(context, size, round) : nil
                    let peer = try contender.run(size, round)
                    let own = try first ?? larder(context, size, round)
                    puts.append(own.put, peer.put)
                    gets.append(own.get, peer.get)
                }
                rows.append(TargetRow(id, "puts/s, \(size)", against: contender.name, atLeast: 1, puts))
                rows.append(TargetRow(id, "hits/s, \(size)", against: contender.name, atLeast: 1, gets))
            }
        }
        rows += contenders.missing.map {
            TargetRow(
                id: id, measure: "hits/s and puts/s", against: String($0.prefix { $0 != ":" }), sense: .atLeast,
                target: 1,
                unit: "x", detail: "skipped: \($0)")
        }
        return rows
    }

    private static func contenders(_ context: TargetContext) -> (known: [Contender], missing: [String]) {
        // Operations of the slowest peers in a round.
        let few = context.preset == .quick ? 10 : 100
        func local(_ name: String, _ kind: PeerKind, count: @escaping (BodySize) -> Int) -> Contender {
            Contender(name: name) { size, round in
                try rates(context, kind, size, puts: count(size), gets: max(count(size), few * 5), round)
            }
        }
        let (externals, missing) = context.externals.available
        let known =
            [
                local("SQLite blobs (GRDB)", .sqlite) { context.preset.puts($0) / 2 },
                local("Foundation URLCache", .urlcache) { _ in few },
            ]
            + externals.map { peer in
                Contender(name: peer.name) { size, _ in
                    guard case .fixed(let bytes) = size else { throw BenchError("peers take bodies of one length") }
                    let path = try context.directory.make("external")
                    defer { FileTree.remove(path) }
                    FileTree.syncAll()
                    let answer = try peer.run(path, bytes, peer.name.hasPrefix("npm") ? few * 3 : few * 20)
                    return Rates(put: answer.put, get: answer.get)
                }
            }
        return (known, missing)
    }

    private static func larder(_ context: TargetContext, _ size: BodySize, _ round: Int) throws -> Rates {
        let puts = context.preset.puts(size)
        return try rates(context, .larder, size, puts: puts, gets: context.preset.gets(size), round)
    }

    private static func rates(
        _ context: TargetContext, _ kind: PeerKind, _ size: BodySize, puts: Int, gets: Int, _ round: Int
    ) throws -> Rates {
        let bodies = Bodies(size, seed: context.seed &+ UInt64(round))
        return try context.withPeer(kind, bodies) { driver in
            FileTree.syncAll()
            let put = try driver.put(0..<puts).rate
            let order = Order.uniform(gets, below: puts, seed: context.seed &+ UInt64(round))
            return Rates(put: put, get: try driver.get(order).rate)
        }
    }
}
