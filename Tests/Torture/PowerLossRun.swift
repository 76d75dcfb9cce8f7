import Foundation
import Larder
import SystemPackage

/// R2: the writes of a worker are recorded, LMDB's included; the disk as it may be after a power loss at many moments is made
/// up, with another boot id, and opened and checked.
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
        var generator = SplitMix(state: options.seed)
        let (start, end) = (Date(), options.deadline)
        var (recordings, cycles, harsh, operations, promised, afterwards) = (0, 0, 0, 0, 0, 0)
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
                    path: directory + "/disk")
                let outcome = try crash.check()
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
            "\(cycles) crashes (\(harsh) in the harsh model) of \(recordings) recordings in \(Int(seconds)) s "
                + "(\(Int(Double(cycles) / seconds * 60)) a minute); \(operations) operations recorded, "
                + "\(promised) durable entries looked for, \(afterwards) entries read back")
        print("found and mended, as documented: \(kinds.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" })")
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
    private func record(_ seed: UInt64, _ generator: inout SplitMix) throws -> (Recording, UInt64) {
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
        let operations = Int.random(in: 20...250, using: &generator)
        let child = try Child(
            [store, "mixed", "\(seed)", "0", "\(operations)"], output: directory + "/out", environment: environment)
        if let complaint = child.wait() { throw Failure(complaint) }
        return (try Recording(directory + "/log"), UInt64(status.st_ino))
    }

    /// A moment at random, or one beside a sync, a change of names or an acknowledgement.
    private func moment(_ recording: Recording, _ generator: inout SplitMix) -> Int {
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

/// One power loss and what is found after it.
struct Crash {
    struct Outcome {
        var violations: [String] = []
        var found: [String: Int] = [:]
        var promised = 0
        var entries = 0
    }

    private let recording: Recording
    private let root: UInt64
    private let moment: Int
    private let isHarsh: Bool
    private let ignoresSyncs: Bool
    private let seed: UInt64
    private let path: String

    init(
        _ recording: Recording, _ root: UInt64, at moment: Int, isHarsh: Bool, ignoresSyncs: Bool, seed: UInt64,
        path: String
    ) {
        self.ignoresSyncs = ignoresSyncs
        self.recording = recording
        self.root = root
        self.moment = moment
        self.isHarsh = isHarsh
        self.seed = seed
        self.path = path
    }

    func check() throws -> Outcome {
        for name in [path, path + "-before"] { try? FileManager.default.removeItem(atPath: name) }
        var model = DiskModel(recording, crashAt: moment, isHarsh: isHarsh, ignoresSyncs: ignoresSyncs, seed: seed)
        try model.build(root, at: path)
        try FileManager.default.copyItem(atPath: path, toPath: path + "-before")
        let journal = journal()
        var outcome = Outcome()
        outcome.promised = journal.allowed.values.filter { !$0.contains(nil) }.count
        do {
            try inspect(journal, &outcome)
        } catch {
            outcome.violations.append("not usable: \(error)")
        }
        return outcome
    }

    /// What was promised before the crash. A removal is promised by no sync.
    private func journal() -> Journal {
        var journal = Journal()
        var text = ""
        for operation in recording.operations[..<moment] where operation.kind == .said {
            text += String(decoding: recording.bytes[operation.data], as: UTF8.self)
        }
        for line in text.split(separator: "\n") where !line.hasPrefix("Y") { journal.note(line) }
        return journal
    }

    private func inspect(_ journal: Journal, _ outcome: inout Outcome) throws {
        var configuration = Workload.configuration
        configuration.bootIdentity = seed | 1
        let store = try Store(at: FilePath(path), configuration)
        outcome.violations += try journal.violations(store)
        for key in try store.keys() {
            guard let entry = try store.get(key) else { continue }
            outcome.entries += 1
            if let flaw = try Workload.flaw(of: entry, key) { outcome.violations.append(flaw) }
        }
        // Bodies that are gone or incomplete, and files without a record, are what recovery.md tells of. The index is whole.
        for violation in try store.check().violations.map(\.description) {
            let kind = String(violation.prefix(2))
            if ["I1", "I6", "I7", "I8"].contains(kind) {
                outcome.found[kind, default: 0] += 1
            } else {
                outcome.violations.append(violation)
            }
        }
        try store.collect()
        _ = try store.check(repair: true)
        outcome.violations += try store.check().violations.map { "after gc and repair: \($0)" }
        outcome.violations += try journal.violations(store).map { "after gc and repair: \($0)" }
        try store.put([1, 2, 3], for: "after", PutOptions(durability: .durable))
        try store.close()
        let again = try Store(at: FilePath(path), configuration)
        outcome.violations += try journal.violations(again).map { "after reopening: \($0)" }
        if try again.statistics().allocatedBytes.bytes != StoreReview.recount(path) {
            outcome.violations.append("allocated bytes differ from a recount")
        }
        try again.close()
    }
}
