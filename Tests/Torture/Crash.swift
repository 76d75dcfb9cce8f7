import Foundation
import SeededData

/// One power loss and what is found after it.
struct Crash {
    struct Outcome {
        var violations: [String] = []
        var found: [String: Int] = [:]
        var promised = 0
        var entries = 0
        /// There was a second loss while the first was recovered from.
        var isTwice = false
    }

    private let recording: Recording
    private let root: UInt64
    private let moment: Int
    private let isHarsh: Bool
    private let ignoresSyncs: Bool
    private let seed: UInt64
    private let path: String
    private let recorder: String

    init(
        _ recording: Recording, _ root: UInt64, at moment: Int, isHarsh: Bool, ignoresSyncs: Bool, seed: UInt64,
        path: String, recorder: String
    ) {
        self.recorder = recorder
        self.ignoresSyncs = ignoresSyncs
        self.recording = recording
        self.root = root
        self.moment = moment
        self.isHarsh = isHarsh
        self.seed = seed
        self.path = path
    }

    func check() throws -> Outcome {
        for name in [path, path + "-before", path + "-first", path + "-log"] {
            try? FileManager.default.removeItem(atPath: name)
        }
        var model = DiskModel(recording, crashAt: moment, isHarsh: isHarsh, ignoresSyncs: ignoresSyncs, seed: seed)
        try model.build(root, at: path)
        var journal = Journal()
        note(recording, moment, &journal)
        var outcome = Outcome()
        // With `--ignore-syncs` one loss is enough to find something.
        if seed % 4 == 0, !ignoresSyncs { try loseAgain(&journal, &outcome) }
        try FileManager.default.copyItem(atPath: path, toPath: path + "-before")
        outcome.promised = journal.promised
        if !outcome.violations.isEmpty { return outcome }
        let steps = PowerLossReview.FirstStep.allCases
        let first = steps[Int(seed >> 8 & 0xFFFF) % steps.count]
        let review = PowerLossReview(path, journal: journal, boot: (seed | 1) &+ 2, first: first)
        outcome.violations += review.violations.map { "\(first) first: \($0)" }
        outcome.found = review.found
        outcome.entries = review.entries
        return outcome
    }

    /// Records what was promised before the crash.
    private func note(_ recording: Recording, _ moment: Int, _ journal: inout Journal) {
        var text = ""
        for operation in recording.operations[..<moment] where operation.kind == .said {
            text += String(decoding: recording.bytes[operation.data], as: UTF8.self)
        }
        for line in text.split(separator: "\n") { journal.noteInOrder(line) }
        journal.endWorkers()
    }

    /// A worker opens the store, recovers and continues, and the power fails again at some moment of that run. What
    /// survived the first loss is on disk.
    private func loseAgain(_ journal: inout Journal, _ outcome: inout Outcome) throws {
        var generator = SeededGenerator(seed: seed ^ 0x7A11)
        let image = try DiskImage(path)
        try FileManager.default.copyItem(atPath: path, toPath: path + "-first")
        let child = try Child(
            [path, "recover", "\(seed | 1)", "0", "\(Int.random(in: 0...40, using: &generator))"],
            output: path + "-out",
            environment: [
                "LD_PRELOAD": recorder, "LARDER_RECORD": path + "-log", "LARDER_TORTURE_GENTLE": "1",
            ])
        outcome.isTwice = true
        if let complaint = child.wait() { return outcome.violations.append("while recovering: \(complaint)") }
        let recording = try Recording(path + "-log")
        let count = recording.operations.count
        // Most operations that only a recovery makes are at its beginning.
        let end = generator.oneIn(2) ? count : min(count, 200)
        let moment = Int.random(in: 0...end, using: &generator)
        try FileManager.default.removeItem(atPath: path)
        var model = DiskModel(
            recording, crashAt: moment, isHarsh: isHarsh, ignoresSyncs: ignoresSyncs, seed: generator.next(),
            base: image)
        try model.build(image.root, at: path)
        note(recording, moment, &journal)
    }
}
