import ArgumentParser
import Foundation

/// `run`: one workload, one peer.
struct RunCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Run one workload on one peer.",
        discussion: "Times of single operations are recorded, which costs 20 ns each.")

    @Option(help: "A workload; 'larder-bench list' names them.") var workload: String
    @Option(help: "A peer.") var peer = PeerKind.larder
    @Option(help: "Length of the bodies: 100, 16KiB, 1MiB, web, wide.") var size = BodySize.fixed(1 << 10)
    @Option(help: "Entries in the store: 1 ... 100,000,000.") var entries = 10_000
    @Option(help: "Threads: 1 ... 256.") var threads = 1
    @Option(help: "The same seed gives the same run. Default: a different one each time.") var seed: UInt64?
    @Flag(help: "Print JSON.") var json = false
    @OptionGroup var work: WorkOptions

    func validate() throws {
        if Workloads.named(workload) == nil {
            let names = Workloads.all.map { $0.name }.joined(separator: ", ")
            throw ValidationError("--workload \(workload): not one of \(names)")
        }
        if !(1...100_000_000).contains(entries) { throw ValidationError("--entries \(entries): 1 ... 100000000") }
        if !(1...256).contains(threads) { throw ValidationError("--threads \(threads): 1 ... 256") }
    }

    func run() throws {
        Interruption.listen()
        guard let workload = Workloads.named(workload) else { return }
        let seed = seed ?? .random(in: 1...UInt64(UInt32.max))
        let result = try WorkDirectory.with(work.parent) { directory in
            let plan = Plan(
                kind: peer, path: try directory.make("store"), size: size, entries: entries, threads: threads,
                seed: seed)
            return try RunResult.measure(workload, plan)
        }
        if json {
            print(try JSONOutput.text(result))
        } else {
            print(result.text + "\nseed                  \(seed)")
        }
    }
}

extension RunResult {
    /// For humans to read.
    var text: String {
        var lines = [
            ("workload", "\(workload), \(peer), \(bodySize), \(Render.count(entries)) entries, threads: \(threads)"),
            ("operations", Render.count(operations)),
            ("rate", "\(Render.rate(rate))/s, \(Render.decimal(byteRate / 1e6, 1)) MB/s"),
        ]
        if let latency {
            lines.append(
                (
                    "latency",
                    "p50 \(Render.time(latency.p50))  p99 \(Render.time(latency.p99))  "
                        + "p99.9 \(Render.time(latency.p999))  max \(Render.time(latency.max))"
                ))
        }
        if let writtenPerByte, let writtenSource {
            lines.append(("written per byte put", "\(Render.decimal(writtenPerByte, 2)): \(writtenSource)"))
        }
        if let anonymousBytes {
            lines.append(("resident (RssAnon)", "\(Render.decimal(Double(anonymousBytes) / 1048576, 1)) MiB"))
        }
        if let indexBytesPerEntry {
            lines.append(("index bytes per entry", Render.decimal(indexBytesPerEntry, 1)))
        }
        return lines.map { $0.0.padding(toLength: 22, withPad: " ", startingAt: 0) + $0.1 }.joined(separator: "\n")
    }
}
