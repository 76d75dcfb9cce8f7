/// The yardsticks as Markdown, beside what others report of themselves.
enum YardstickReport {
    static func text(
        _ machine: Machine, _ opens: [OpenYardstick], _ sets: SetYardstick, _ limits: [LimitYardstick]
    ) -> String {
        var lines = [
            "# Yardsticks of the field", "",
            "This file is written by `tools/bench yardsticks`; do not edit it. It states what others report of",
            "themselves, with the source, and what this machine measured. Other machines and other loads: read the",
            "figures as orders of magnitude.", "", "| | |", "|---|---|",
            "| processor | \(machine.processor), \(machine.cores) cores |",
            "| memory | \(Render.decimal(machine.memoryGiB, 0)) GiB |", "| system | \(machine.kernel) |",
            "| file system | \(machine.fileSystem) |", "| load before the run | \(Render.decimal(machine.load, 2)) |",
        ]
        for note in machine.notes {
            let parts = note.split(separator: "=", maxSplits: 1).map(String.init)
            if parts.count == 2 { lines.append("| \(parts[0]) | \(parts[1]) |") }
        }
        lines += ["", "## Opening with very many entries", ""]
        lines += [
            "Bodies of \(OpenYardstick.bodyLength) bytes, all different, put in order of their keys in batches of 16,384.",
            "*Cold*: no page of the index is in memory. *Killed*: cold, and the last process that wrote was killed.",
            "*Killed twice*: two processes in a row, before they had walked over the index: an open waits for that, up to",
            "4 seconds then ([recovery](../recovery.md)). The first hit after a kill waits for a disk that reads the index.",
            "",
            "| | entries | `Store(at:)` warm | to the first hit | cold | to the first hit | killed | to the first hit | killed twice | to the first hit |",
            "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        ]
        for open in opens {
            let times = [open.warm, open.cold, open.killed, open.killedTwice].flatMap { times in
                times.map { [Render.time($0.open), Render.time($0.firstHit)] } ?? ["", ""]
            }
            lines.append("| Larder | \(Render.count(open.entries)) | " + times.joined(separator: " | ") + " |")
        }
        for open in opens {
            lines += [
                "",
                "\(Render.count(open.entries)) entries were put in \(Render.decimal(open.fillSeconds, 0)) s and take "
                    + "\(Render.decimal(Double(open.indexBytes) / 1e9, 2)) GB.",
            ]
        }
        lines += [
            "", "Theirs:", "",
            "- bazel-remote, 8,000,000 files of 1.5 TB on an SSD: an open has to look into each, 20 minutes cold and",
            "  45 s warm, of which 8 bytes of each file were read in a trial ([pull request 386](https://github.com/buchgr/bazel-remote/pull/386)).",
            "- foyer 0.22.3, 50,000,000 entries of 1 byte: 24.35 s to recover ([issue 1295](https://github.com/foyer-rs/foyer/issues/1295)).",
            "", "## The slowest put of \(sets.processes) processes", "",
            "The load of diskcache's own benchmark: \(Render.count(SetYardstick.operations)) operations a process on "
                + "\(SetYardstick.keys) keys, 90 % gets, 9 % puts, 1 % removals. Relaxed puts. The worst process counts.",
            "",
            "| | puts | median | p99 | slowest |", "|---|---:|---:|---:|---:|",
            row("Larder", sets.larder),
        ]
        if let diskcache = sets.diskcache { lines.append(row("Python diskcache, measured here", diskcache)) }
        lines += [
            "", "Theirs: diskcache reports a slowest set of 1.8 s with 8 processes",
            "([benchmarks](https://grantjenks.com/docs/diskcache/cache-benchmarks.html)).",
            "", "## Bytes over the limit", "",
            "A limit of \(mebibytes(LimitYardstick.limit)), and ten times as much put in bodies of 64 KiB. Allocated bytes of all files, "
                + "counted every 20 ms.", "",
            "| | most | at the end |", "|---|---:|---:|",
        ]
        for limit in limits {
            lines.append("| \(limit.name) | \(mebibytes(limit.highestBytes)) | \(mebibytes(limit.finalBytes)) |")
        }
        lines += [
            "",
            "Theirs: nginx's `max_size` is kept by a cache manager that runs now and then, so \"the amount of data can",
            "temporarily exceed\" it ([guide](https://docs.nginx.com/nginx/admin-guide/content-cache/content-caching/));",
            "npm's cache has no limit ([issue 7006](https://github.com/npm/cli/issues/7006)).", "",
        ]
        return lines.joined(separator: "\n")
    }

    private static func row(_ name: String, _ sets: SetYardstick.Sets) -> String {
        "| \(name) | \(Render.count(sets.count)) | \(Render.time(sets.median)) | \(Render.time(sets.p99)) | "
            + "\(Render.time(sets.highest)) |"
    }

    private static func mebibytes(_ bytes: Int64) -> String { Render.decimal(Double(bytes) / 1_048_576, 1) + " MiB" }
}
