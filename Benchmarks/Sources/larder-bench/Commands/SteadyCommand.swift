import ArgumentParser
import Foundation
import Larder

/// `steady`: a store at its budget beside a fresh one.
struct SteadyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "steady", abstract: "Measure puts at a full budget, beside a fresh store.",
        discussion: "Puts several times the budget first. One line for each mix and peer.")

    @Option(help: "Byte budget, such as 128MiB.") var budget = BudgetArgument(count: .mebibytes(128))
    @Option(help: "Lengths of the bodies: 100, 16KiB, 1MiB, web, wide. Several times: one after the other.")
    var size: [BodySize] = [.wide, .web, .fixed(16 << 10)]
    @Option(help: "Peers, as 'larder-bench list' names them.") var peer: [PeerKind] = [.larder]
    @Option(help: "How many times the budget is put first: 1 ... 100.") var factor = 10
    @Option(help: "Rounds: 1 ... 100.") var rounds = 3
    @Option(help: "The same seed gives the same bodies.") var seed: UInt64?
    @Option(help: "Measure the longest puts and hits of Larder for this many seconds instead: 0.1 ... 3600.")
    var stalls: Double?
    @Flag(help: "Print JSON.") var json = false
    @OptionGroup var work: WorkOptions

    func validate() throws {
        if budget.count < .mebibytes(4) { throw ValidationError("--budget \(budget.count): at least 4MiB") }
        if !(1...100).contains(factor) { throw ValidationError("--factor \(factor): 1 ... 100") }
        if let stalls, !(0.1...3600).contains(stalls) {
            throw ValidationError("--stalls \(stalls): 0.1 ... 3600")
        }
        if stalls != nil, peer != [.larder] { throw ValidationError("--stalls measures Larder only: no --peer") }
        if !(1...100).contains(rounds) { throw ValidationError("--rounds \(rounds): 1 ... 100") }
    }

    func run() throws {
        Interruption.listen()
        let seed = seed ?? .random(in: 1...UInt64(UInt32.max))
        try WorkDirectory.with(work.parent) { directory in
            for size in size {
                if let stalls {
                    let figures = try Stalls(
                        size: size, budgetBytes: budget.count.bytes, factor: factor, seconds: stalls, seed: seed
                    ).run(in: directory)
                    if json {
                        print(try JSONOutput.text(["puts": figures.puts, "hits": figures.hits]))
                    } else {
                        print("\(size), \(budget.count), puts: \(figures.puts.summary)")
                        print("\(size), \(budget.count), hits: \(figures.hits.summary)")
                    }
                    continue
                }
                for kind in peer {
                    let figures = try SteadyState(
                        size: size, budgetBytes: budget.count.bytes, factor: factor, rounds: rounds, seed: seed,
                        kind: kind
                    ).run(in: directory)
                    print(json ? try JSONOutput.text(figures) : figures.line(size, kind, budget.count))
                }
            }
        }
    }
}

extension SteadyState {
    /// Runs in a process of its own: a heap that another peer has grown or cut up changes the figures by half.
    func runAlone(in directory: WorkDirectory) throws -> Figures {
        let output = try Subprocess.run(
            Subprocess.ownExecutable,
            [
                "steady", "--size", size.argument, "--budget", "\(budgetBytes)", "--peer", kind.rawValue, "--factor",
                "\(factor)", "--rounds", "\(rounds)", "--seed", "\(seed)", "--path", directory.path.string, "--json",
            ])
        return try JSONDecoder().decode(Figures.self, from: output)
    }
}

/// A size on the command line: `128MiB`.
struct BudgetArgument: ExpressibleByArgument {
    var count: ByteCount

    init(count: ByteCount) { self.count = count }

    init?(argument: String) {
        guard let count = ByteCount(parsing: argument) else { return nil }
        self.count = count
    }

    var defaultValueDescription: String { "\(count)" }
}

extension SteadyState.Figures {
    fileprivate func line(_ size: BodySize, _ kind: PeerKind, _ budget: ByteCount) -> String {
        let written = deviceBytesPerByte.map { Render.decimal($0, 2) } ?? "-"
        return "\(kind.rawValue), \(size), \(budget): \(Render.rate(Comparison.median(steady)))/s, fresh "
            + "\(Render.rate(Comparison.median(fresh)))/s, \(Render.decimal(ratio, 2)) x; p99.9 \(Render.time(p999)), "
            + "longest \(Render.time(longest)); written \(written) bytes a byte; at most \(ByteCount(highestBytes))"
            + (storedShare.map { ", bodies \(Render.decimal($0, 2)) of the budget" } ?? "")
    }
}

extension Stalls.Figures {
    var summary: String {
        let causes = causes.sorted { $0.value.longest > $1.value.longest }.map {
            "\($0.key) \(Render.count($0.value.count)) (up to \(Render.time($0.value.longest)))"
        }
        return "\(Render.count(operations)), p99.9 \(Render.time(p999)), longest \(Render.time(longest)); over 5 ms: "
            + (causes.isEmpty ? "none" : causes.joined(separator: ", "))
    }
}
