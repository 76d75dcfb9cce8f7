import ArgumentParser
import Foundation
import SystemPackage

/// `yardsticks`: the figures by which others are known, measured here.
struct YardsticksCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "yardsticks", abstract: "Measure the figures by which other caches are known.",
        discussion:
            "8,000,000 entries take about 4 GB of disk and some minutes, 50,000,000 take 24 GB and half an hour.")

    @Option(help: "Entries to open a store with. May be repeated. Default: 8000000.") var entries: [Int] = []
    @Option(help: "Processes that share a store: 1 ... 64.") var processes = 8
    @Option(help: "Writes the report here, as Markdown.") var markdown: String?
    @Option(help: "A line for the report: NAME=TEXT. May be repeated.") var note: [String] = []
    @Option(help: "A Python that has diskcache.") var python: String?
    @Option(help: "The directory of the peers' scripts.") var peers: String?
    @Option(help: "The same seed gives the same keys and bodies.") var seed: UInt64?
    @OptionGroup var work: WorkOptions

    func validate() throws {
        if let wrong = entries.first(where: { !(1_000...1_000_000_000).contains($0) }) {
            throw ValidationError("--entries \(wrong): 1000 ... 1000000000")
        }
        if !(1...64).contains(processes) { throw ValidationError("--processes \(processes): 1 ... 64") }
    }

    func run() throws {
        Interruption.listen()
        let seed = seed ?? .random(in: 1...UInt64(UInt32.max))
        let text = try WorkDirectory.with(work.parent) { directory in
            let machine = Machine.read(directory.path, notes: note)
            let externals = ExternalPeers(python: python, scripts: peers)
            Progress.say("\(processes) processes ...")
            let sets = try SetYardstick.measure(processes, directory, externals, seed: seed)
            Progress.say("bytes over the limit ...")
            let limits = try LimitYardstick.measure(directory, seed: seed)
            let opens = try (entries.isEmpty ? [8_000_000] : entries).map { count in
                Progress.say("opening with \(Render.count(count)) entries ...")
                let path = try directory.make("open")
                defer { FileTree.remove(path) }
                return try OpenYardstick.measure(count, path, seed: seed)
            }
            return YardstickReport.text(machine, opens, sets, limits)
        }
        if let markdown { try Data(text.utf8).write(to: URL(fileURLWithPath: markdown)) }
        print(text)
    }
}
