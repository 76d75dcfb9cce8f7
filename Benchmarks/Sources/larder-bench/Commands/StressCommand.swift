import ArgumentParser
import Larder

/// `stress`: is every byte right, every invariant kept and the budget held under load?
struct StressCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stress", abstract: "Run mixed load at a full budget; check every byte and every invariant.",
        discussion: "Exits 1 if anything was violated, and prints what on standard error.")

    @Option(help: "How long, in minutes.") var minutes = 1.0
    @Option(help: "Threads: 1 ... 64.") var threads = 4
    @Option(help: "Byte budget, such as 64MiB.", transform: Self.parse) var budget = ByteCount.mebibytes(64)
    @Option(help: "Length of the bodies: 100, 16KiB, 1MiB, web, wide.") var size = BodySize.wide
    @Option(help: "The same seed gives the same keys and bodies, but not the same order of threads.") var seed: UInt64?
    @OptionGroup var work: WorkOptions

    private static func parse(_ text: String) throws -> ByteCount {
        guard let count = ByteCount(parsing: text) else {
            throw ValidationError("'\(text)' is not a size: write 64MiB")
        }
        return count
    }

    func validate() throws {
        if !(minutes > 0 && minutes <= 10_000) {
            throw ValidationError("--minutes \(minutes): more than 0, up to 10000")
        }
        if !(1...64).contains(threads) { throw ValidationError("--threads \(threads): 1 ... 64") }
        if budget < .mebibytes(4) { throw ValidationError("--budget \(budget): at least 4MiB") }
    }

    func run() throws {
        Interruption.listen()
        let seed = seed ?? .random(in: 1...UInt64(UInt32.max))
        Progress.say("seed \(seed)")
        let violations = try WorkDirectory.with(work.parent) { directory in
            try StressTest(
                minutes: minutes, threads: threads, budgetBytes: budget.bytes, size: size, seed: seed,
                report: { Progress.say($0) }
            ).run(in: directory)
        }
        for violation in violations { Progress.say("violation: \(violation)") }
        guard violations.isEmpty else { throw ExitCode(1) }
        print("no violation")
    }
}
