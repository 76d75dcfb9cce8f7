import ArgumentParser
import Foundation
import SystemPackage

/// `targets`: measures the project's performance targets and prints their table.
struct TargetsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "targets", abstract: "Measure the performance targets and print their table.",
        discussion: """
            The exit code is 0 whether or not the targets are met: a figure is not a test. 'tools/bench' passes the \
            options that name peers in other languages, and makes the plots.
            """)

    @Option(help: "How much: quick, standard, full.") var preset = Preset.standard
    @Option(help: "Only these targets, such as P1,P6. Default: all.") var only: String?
    @Option(help: "Writes the raw figures here, as JSON.") var json: String?
    @Option(help: "Writes the report here, as Markdown.") var markdown: String?
    @Flag(help: "Lets the report link to plots, which plot.py has to draw.") var plots = false
    @Option(help: "A line for the report: NAME=TEXT. May be repeated.") var note: [String] = []
    @Option(help: "A Python that has diskcache.") var python: String?
    @Option(help: "A Node.") var node: String?
    @Option(help: "The directory of npm's cacache.") var cacache: String?
    @Option(help: "The directory of the peers' scripts.") var peers: String?
    @Option(help: "A trace in libCacheSim's format, for P11.") var trace: String?
    @Option(help: "The same seed gives the same bodies and orders.") var seed: UInt64?
    @OptionGroup var work: WorkOptions

    func validate() throws {
        let known = Targets.all.map { $0.id }
        for id in ids ?? [] where !known.contains(id) {
            throw ValidationError("--only \(id): not one of \(known.joined(separator: ", "))")
        }
    }

    private var ids: Set<String>? { only.map { Set($0.split(separator: ",").map(String.init)) } }

    func run() throws {
        Interruption.listen()
        let seed = seed ?? .random(in: 1...UInt64(UInt32.max))
        let start = Ticks.now()
        let report = try WorkDirectory.with(work.parent) { directory in
            let machine = Machine.read(directory.path, notes: note)
            let externals = ExternalPeers(python: python, node: node, cacache: cacache, scripts: peers)
            let context = TargetContext(directory, preset, seed: seed, externals: externals, trace: trace)
            let rows = try Targets.run(context, only: ids)
            if ids == nil {
                context.progress("rates by body size ...")
                try SizeSweep.run(context)
            }
            return Report(
                preset: preset, machine: machine, seed: seed, seconds: Double(Ticks.now() - start) / 1e9, rows: rows,
                curves: context.curves)
        }
        if let json { try Data(JSONOutput.text(report).utf8).write(to: URL(fileURLWithPath: json)) }
        if let markdown {
            try Data(MarkdownReport.text(report, hasPlots: plots).utf8).write(to: URL(fileURLWithPath: markdown))
        }
        print(TargetTable.text(report.rows))
        print("\n" + TargetTable.summary(report.rows))
    }
}
