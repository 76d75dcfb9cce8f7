import Foundation

/// `docs/benchmarks.md`.
enum MarkdownReport {
    static func text(_ report: Report, hasPlots: Bool) -> String {
        func plot(_ text: String, _ file: String) -> String { hasPlots ? "![\(text)](benchmarks/\(file).svg)\n\n" : "" }
        return """
            # Benchmarks

            This file is written by `tools/bench`; do not edit it. The first lines of each file in
            `Benchmarks/Sources/larder-bench/Targets` say what the target measures; `larder-bench list` lists the
            workloads and the peers. For the store behind HTTP, compared with nginx and Varnish, see
            [benchmarks/gateway.md](benchmarks/gateway.md), for memory, compression and encryption beside the plain store
            [benchmarks/tiers.md](benchmarks/tiers.md), and for the figures by which other caches are known
            [benchmarks/yardsticks.md](benchmarks/yardsticks.md). What limits the rows that are not met, what was tried, and
            what was measured by hand is in [benchmarks/left.md](benchmarks/left.md).

            \(machine(report))

            Every ratio is the median of \(report.preset.rounds) rounds, in each of which both sides
            are measured on the same disk, in turn.
            Bodies are incompressible and all different; they and the keys are made before the clock starts. Larder's
            puts include the SHA-256 of the body and the last commit, which is synced; plain files are not synced
            unless the row says so. Hits are warm. Latencies are those of single calls. npm's cacache checks the digest
            of every body it reads; Larder's default is to check on writing and after an unclean shutdown.

            ## Targets

            \(TargetTable.summary(report.rows)).

            \(TargetTable.markdown(report.rows))

            \(spread(report))
            ## Rate against body size

            \(plot("Puts and hits a second against body size", "rate-by-size"))\
            \(sizes(report, "put", "Puts a second"))

            \(sizes(report, "hit", "Hits a second"))

            ## Rate and latency against entries

            Bodies of 100 bytes, keys in random order: puts from one point to the next, then hits on any key.

            \(plot("Puts and hits a second, and the 99th percentile of hits, against entries", "rate-by-entries"))\
            ## Latency during displacement

            One thread puts bodies of 16 KiB as fast as it can. Each point is a window of a tenth of a second; rounds
            alternate between a store with a full budget and one with room to spare.

            \(plot("Latency of puts over time", "displacement"))
            """
    }

    private static func machine(_ report: Report) -> String {
        let machine = report.machine
        let lines =
            [
                ("processor", "\(machine.processor), \(machine.cores) cores"),
                ("memory", "\(Render.decimal(machine.memoryGiB, 0)) GiB"),
                ("system", machine.kernel),
                ("file system", machine.fileSystem),
                ("load before the run", Render.decimal(machine.load, 2)),
                ("run", "\(report.preset.rawValue), \(Render.decimal(report.seconds, 0)) s, seed \(report.seed)"),
            ]
            + machine.notes.map { note in
                let parts = note.split(separator: "=", maxSplits: 1).map(String.init)
                return (parts[0], parts.count > 1 ? parts[1] : "")
            }
        return "| | |\n|---|---|\n" + lines.map { "| \($0.0) | \($0.1) |" }.joined(separator: "\n")
    }

    /// The rates of the plot as a table: a line for each length, a column for each peer.
    private static func sizes(_ report: Report, _ operation: String, _ title: String) -> String {
        let points = report.curves.sizes.filter { $0.operation == operation }
        if points.isEmpty { return "" }
        var peers: [String] = []
        var sizes: [String] = []
        for point in points {
            if !peers.contains(point.peer) { peers.append(point.peer) }
            if !sizes.contains(point.bodySize) { sizes.append(point.bodySize) }
        }
        let lines = sizes.map { size in
            let rates = peers.map { peer in
                points.first { $0.peer == peer && $0.bodySize == size }.map { Render.rate($0.rate) } ?? ""
            }
            return "| \(size) | \(rates.joined(separator: " | ")) |"
        }
        return """
            | \(title) | \(peers.joined(separator: " | ")) |
            |---|\(peers.map { _ in "---:|" }.joined())
            \(lines.joined(separator: "\n"))
            """
    }

    /// How far the rounds of each row lie apart.
    private static func spread(_ report: Report) -> String {
        let rows = report.rows.filter { $0.rounds.count > 1 }
        if rows.isEmpty { return "" }
        let lines = rows.map { row in
            let rounds = row.rounds.map { Render.decimal($0, 2) }.joined(separator: ", ")
            return "| \(row.id) | \(row.measure) | \(row.against) | \(rounds) |"
        }
        return """
            <details><summary>Ratios by round</summary>

            | | measure | against | rounds |
            |---|---|---|---|
            \(lines.joined(separator: "\n"))

            </details>


            """
    }
}
