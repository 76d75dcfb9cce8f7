import Foundation
import Larder
import SeededData
import SystemPackage

/// R2: the writes of one worker or several are recorded, LMDB's included; the disk as it may be after a power loss at
/// many moments is made up, with another boot id, and opened and checked.
struct PowerLossRun {
    private let options: Options
    private let directory: String
    private let recorder: String

    init(_ options: Options) throws {
        self.options = options
        recorder =
            URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
            .appendingPathComponent("librecorder.so").path
        guard FileManager.default.fileExists(atPath: recorder) else {
            throw Failure("\(recorder) is missing: run tools/torture power-loss")
        }
        directory = try options.makeDirectory()
    }

    func run() throws -> Bool {
        print("power loss: --seed \(options.seed), in \(directory)")
        var generator = SeededGenerator(seed: options.seed)
        let (start, end) = (Date(), options.deadline)
        var (recordings, cycles, harsh, twice, operations, promised, afterwards) = (0, 0, 0, 0, 0, 0, 0)
        var kinds: [String: Int] = [:]
        var violations: [String] = []
        while Date() < end, cycles < options.cycles ?? .max, violations.isEmpty {
            let (recording, root) = try record(generator.next() >> 1, &generator)
            recordings += 1
            operations += recording.operations.count
            for _ in 0..<25 where violations.isEmpty && cycles < options.cycles ?? .max && Date() < end {
                let moment = moment(recording, &generator)
                let isHarsh = generator.oneIn(2)
                let seed = generator.next()
                cycles += 1
                harsh += isHarsh ? 1 : 0
                let crash = Crash(
                    recording, root, at: moment, isHarsh: isHarsh, ignoresSyncs: options.ignoresSyncs, seed: seed,
                    path: directory + "/disk", recorder: recorder)
                let outcome = try crash.check()
                twice += outcome.isTwice ? 1 : 0
                violations += outcome.violations.map {
                    "recording \(recordings), operation \(moment), \(isHarsh ? "harsh" : "journal"), seed \(seed): \($0)"
                }
                promised += outcome.promised
                afterwards += outcome.entries
                for (kind, count) in outcome.found { kinds[kind, default: 0] += count }
            }
        }
        let seconds = Date().timeIntervalSince(start)
        print(
            "\(cycles) crashes (\(harsh) in the harsh model, \(twice) with a second one during recovery) of \(recordings) recordings in \(Int(seconds)) s "
                + "(\(Int(Double(cycles) / seconds * 60)) a minute); \(operations) operations recorded, "
                + "\(promised) durable entries looked for, \(afterwards) entries read back")
        print("found and repaired, as documented: \(kinds.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" })")
        print("violations: \(violations.count)")
        for violation in violations.prefix(40) { print("  \(violation)") }
        if violations.isEmpty, !options.keepsStores {
            try? FileManager.default.removeItem(atPath: directory)
        } else {
            print(
                "kept: \(directory)/log, and */disk-before as it was made up. Replay: tools/torture power-loss --seed \(options.seed)"
            )
        }
        return violations.isEmpty
    }

    /// Runs a worker on an empty directory; returns what it did and the inode of the directory.
    private func record(_ seed: UInt64, _ generator: inout SeededGenerator) throws -> (Recording, UInt64) {
        let store = directory + "/store"
        try? FileManager.default.removeItem(atPath: store)
        try? FileManager.default.removeItem(atPath: directory + "/log")
        guard mkdir(store, 0o700) == 0 else { throw Failure("mkdir \(store): \(errno)") }
        var status = stat()
        stat(store, &status)
        let environment = [
            "LD_PRELOAD": recorder, "LARDER_RECORD": directory + "/log", "LARDER_TORTURE_GENTLE": "1",
            "LARDER_TORTURE_BUDGET": generator.oneIn(2) ? "1" : "0",
        ]
        // Several processes write one log. A call of one and its record may stand on two sides of a record of another,
        // where nothing but the engine's locks kept them apart.
        let processes = generator.oneIn(2) ? 1 : 3
        let children = try (0..<processes).map { slot in
            let operations = Int.random(in: 20...250, using: &generator)
            return try Child(
                [store, "mixed", "\(seed &+ UInt64(slot))", "\(slot)", "\(operations)"],
                output: "\(directory)/out-\(slot)", environment: environment)
        }
        if let complaint = children.compactMap({ $0.wait() }).first { throw Failure(complaint) }
        return (try Recording(directory + "/log"), UInt64(status.st_ino))
    }

    /// A moment at random, or one beside a sync, a change of names or an acknowledgement.
    private func moment(_ recording: Recording, _ generator: inout SeededGenerator) -> Int {
        let count = recording.operations.count
        let any = Int.random(in: 0...count, using: &generator)
        if generator.oneIn(2) { return any }
        let next = recording.operations[any...].firstIndex { operation in
            switch operation.kind {
            case .sync, .syncAll, .rename, .unlink, .said: true
            case .write: operation.offset < 8192
            default: false
            }
        }
        return min(count, max(0, (next ?? any) + Int.random(in: 0...2, using: &generator)))
    }
}
