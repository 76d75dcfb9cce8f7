import Foundation
import Larder
import SeededData
import SystemPackage

/// R5: processes of every kind on one store with a budget: two that write, one of them killed and started again all the
/// time, readers, `gc` in a loop with and without compaction, and puts that displace. Every hit is verified where it is
/// made; once a minute everything stops for a check.
final class ProcessesRun {
    private let options: Options
    private let directory: String
    private var generator: SeededGenerator
    private var journal = Journal()
    private var damaged: Set<String> = []
    private var violations: [String] = []
    private var isCleared = false
    private var kills = 0
    private var collections = 0
    private var compactions = 0
    private var reads: [Latencies.Phase: [(count: Int, p50: Int, p99: Int, most: Int)]] = [:]
    private var checks = 0

    init(_ options: Options) throws {
        self.options = options
        directory = try options.makeDirectory()
        generator = SeededGenerator(seed: options.seed)
    }

    private var path: String { directory + "/store" }

    func run() throws -> Bool {
        let processes = max(4, options.processes ?? 8)
        print("processes: \(processes), --seed \(options.seed), in \(directory)")
        var configuration = Workload.configuration
        configuration.budget = Budget(bytes: .mebibytes(4))
        try Store(at: FilePath(path), configuration).close()
        let (start, end) = (Date(), options.deadline)
        while Date() < end, violations.isEmpty, checks < options.cycles ?? .max {
            try round(processes, until: min(end, Date().addingTimeInterval(60)))
            // The journal cannot know the order of a clear by one worker and a put by another.
            if isCleared { journal.forgetAll() }
            isCleared = false
            let review = StoreReview(path, journal: journal, damaged: damaged)
            damaged = []
            violations += review.violations
            checks += 1
        }
        report(Date().timeIntervalSince(start))
        return violations.isEmpty
    }

    /// Slots 0 to 2 write, of which 2 is killed again and again; 3 collects; the others read.
    private func round(_ processes: Int, until end: Date) throws {
        var children = try (0..<processes).map { try startWorker($0) }
        while Date() < end, violations.isEmpty {
            usleep(UInt32.random(in: 2_000...60_000, using: &generator))
            for slot in children.indices where slot == 2 || children[slot].hasEnded {
                if slot == 2, generator.oneIn(4) { continue }
                if slot == 2 { kills += children[2].hasEnded ? 0 : 1 }
                children[slot].kill()
                finish(children[slot])
                children[slot] = try startWorker(slot)
            }
        }
        for child in children { child.kill() }
        for child in children { finish(child) }
    }

    private func startWorker(_ slot: Int) throws -> Child {
        let mode = slot < 3 ? "mixed" : slot == 3 ? "collect" : "read"
        return try Child(
            [path, mode, "\(generator.next() >> 1)", "\(slot)", "\(slot < 3 ? 2000 : 1_000_000)"],
            output: "\(directory)/out-\(slot)", environment: ["LARDER_TORTURE_GENTLE": "1"])
    }

    private func finish(_ child: Child) {
        if let complaint = child.wait() { violations.append(complaint) }
        for line in child.lines {
            if line == "C" { isCleared = true }
            if line == "g" { collections += 1 }
            if line == "G" { compactions += 1 }
            let words = line.split(separator: " ").map(String.init)
            let numbers = words.compactMap { Int($0) }
            if words.count == 6, words[0] == "L", numbers.count == 4, let phase = Latencies.Phase(rawValue: words[1]) {
                reads[phase, default: []].append((numbers[0], numbers[1], numbers[2], numbers[3]))
            }
            journal.note(line)
        }
    }

    private static let names: [Latencies.Phase: String] = [
        .quiet: "no gc", .collect: "gc", .compact: "gc --compact",
    ]

    private func report(_ seconds: TimeInterval) {
        print(
            "\(Int(seconds)) s, \(kills) processes killed and started again, \(collections) collections, "
                + "\(compactions) compactions, \(checks) checks, \(journal.acknowledged) durable puts acknowledged")
        for phase in Latencies.Phase.allCases {
            guard let reads = reads[phase] else { continue }
            func median(_ values: [Int]) -> Double { Double(values.sorted()[values.count / 2]) / 1000 }
            print(
                "\(reads.reduce(0) { $0 + $1.count }) reads beside displacement and \(Self.names[phase] ?? ""): "
                    + "p50 \(median(reads.map(\.p50))) us, p99 \(median(reads.map(\.p99))) us "
                    + "(medians of \(reads.count) seconds), longest \(Double(reads.map(\.most).max() ?? 0) / 1000) us")
        }
        print("violations: \(violations.count)")
        for violation in violations.prefix(40) { print("  \(violation)") }
        if violations.isEmpty, !options.keepsStores {
            try? FileManager.default.removeItem(atPath: directory)
        } else {
            print("kept: \(path). Replay: tools/torture processes --seed \(options.seed)")
        }
    }
}
