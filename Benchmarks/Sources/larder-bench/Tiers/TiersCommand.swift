import ArgumentParser
import Foundation
import Larder
import LarderValues
import SystemPackage

/// `tiers`: what the tiers above and inside the disk cost and save, beside the plain store.
struct TiersCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tiers",
        abstract: "Measure memory tier, decoded values, compression and encryption beside the plain store.")

    @Option(help: "Rounds of each way.") var rounds = 5
    @Option(help: "Seconds a round.") var seconds = 0.4
    @Option(help: "Writes the report here, as Markdown.") var markdown: String?
    @Option(help: "A line for the report: NAME=TEXT. May be repeated.") var note: [String] = []
    @OptionGroup var work: WorkOptions

    func validate() throws {
        if !(1...1000).contains(rounds) { throw ValidationError("--rounds \(rounds): 1 ... 1000") }
        if !(0.001...3600).contains(seconds) { throw ValidationError("--seconds \(seconds): 0.001 ... 3600") }
    }

    func run() throws {
        Interruption.listen()
        let text = try WorkDirectory.with(work.parent) { directory in
            let machine = Machine.read(directory.path, notes: note)
            var sections: [(title: String, rows: [TierRow])] = []
            for (title, pairs) in try TierStores(directory).pairs() {
                Progress.say("\(title) ...")
                sections.append((title, try pairs.map { try $0.measure(rounds: rounds, seconds: seconds) }))
            }
            return TierReport.text(machine, sections)
        }
        if let markdown { try Data(text.utf8).write(to: URL(fileURLWithPath: markdown)) }
        print(text)
    }
}

/// The report as Markdown.
enum TierReport {
    static func text(_ machine: Machine, _ sections: [(title: String, rows: [TierRow])]) -> String {
        var lines = [
            "# Tiers above and inside the disk", "",
            "This file is written by `tools/bench tiers`; do not edit it. Operations a second of one thread, medians of",
            "rounds in turn, and their ratios to the first way. All stores fit the page cache.", "", "| | |",
            "|---|---|",
            "| processor | \(machine.processor), \(machine.cores) cores |", "| system | \(machine.kernel) |",
            "| file system | \(machine.fileSystem) |", "| load before the run | \(Render.decimal(machine.load, 2)) |",
        ]
        for note in machine.notes {
            let parts = note.split(separator: "=", maxSplits: 1).map(String.init)
            if parts.count == 2 { lines.append("| \(parts[0]) | \(parts[1]) |") }
        }
        for (title, rows) in sections {
            lines += ["", "## \(title)", "", "| | | | |", "|---|---|---|---|"] + rows.map(\.markdown)
        }
        return lines.joined(separator: "\n") + "\n"
    }
}
