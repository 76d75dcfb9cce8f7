import Foundation
import Larder
import SeededData
import SystemPackage

/// One store of a run with kills, and what is known about it.
struct Lane {
    private let directory: String
    private let workers: Int
    private let number: Int
    private let seed: UInt64
    private var generator: SeededGenerator
    private var points: [String]
    private var journal = Journal()
    private var damaged: Set<String> = []
    /// Cycles of the current store; 0: there is none.
    private var age = 0
    private var count = 0

    init(_ options: Options, directory: String, number: Int) {
        self.directory = directory
        self.number = number
        workers = options.processes ?? 2
        seed = options.seed &* 1000 &+ UInt64(number)
        generator = SeededGenerator(seed: seed)
        // Lanes begin at different points, so that a short run does not see the same ones twice.
        let all = KillsRun.points
        points = Array(
            all[(all.count * number / max(1, options.lanes))...] + all[..<(all.count * number / max(1, options.lanes))])
    }

    private var path: String { directory + "/store" }
    private var copy: String { directory + "/before" }
    /// As `path`, with its index damaged, before any rebuild.
    private var damagedCopy: String { directory + "/damaged" }
    /// The same after a rebuild that was not killed.
    private var twin: String { directory + "/twin" }

    /// Starts workers, ends them, opens the store and checks it.
    mutating func cycle(_ note: ((inout KillsRun.Tally) -> Void) -> Void) {
        count += 1
        do {
            let point = count % 2 == 0 ? nextPoint() : nil
            try prepare(for: point)
            if point == "sweep.restored" { try leaveAnUndoneRemoval() }
            if point?.hasPrefix("rebuild") ?? false { try damageIndex() }
            let children = try start(point)
            let killed = try end(children, at: point)
            var violations = children.compactMap { $0.wait() }
            var acknowledged = -journal.acknowledged
            var isCleared = false
            for child in children {
                for line in child.lines {
                    if line == "C" { isCleared = true }
                    if line.hasPrefix("M ") { damaged.insert(String(line.dropFirst(2))) }
                    journal.note(line)
                }
            }
            // The journal cannot know the order of a clear by one worker and a put by another.
            if isCleared { journal.forgetAll() }
            acknowledged += journal.acknowledged
            // What a rebuild loses with the pages is not known, nor whether it goes back to the commit before; nor what
            // is there of which application version, whose removals are of its own entries only. The next one is a new
            // store.
            if ["rebuild", "reclaim"].contains(where: { point?.hasPrefix($0) ?? false }) {
                (journal, age) = (Journal(), .max - 1)
            }
            let entries = try review(point, &violations)
            let cycle = count
            note { tally in
                tally.cycles += 1
                tally.kills += children.filter(\.wasKilled).count
                tally.acknowledged += acknowledged
                tally.entries += entries
                if let killed { tally.killsAt[killed, default: 0] += 1 }
                tally.violations += violations.map { "lane \(number), cycle \(cycle), \(point ?? "random"): \($0)" }
            }
        } catch {
            note { $0.violations.append("lane \(number), cycle \(count): \(error)") }
        }
    }

    private mutating func nextPoint() -> String? {
        guard !points.isEmpty else { return nil }
        points.append(points.removeFirst())
        return points.last
    }

    /// A store of some age; no store for the steps of its creation.
    private mutating func prepare(for point: String?) throws {
        if age > 40 || point?.hasPrefix("create") ?? false || generator.oneIn(60) {
            try? FileManager.default.removeItem(atPath: directory)
            age = 0
        }
        if age == 0 {
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            journal = Journal()
            damaged = []
            if !(point?.hasPrefix("create") ?? false) {
                var configuration = Workload.configuration
                if generator.oneIn(2) { configuration.budget = Budget(bytes: .mebibytes(4)) }
                try Store(at: FilePath(path), configuration).close()
            }
        }
        age += 1
    }

    /// A file moves back from `trash/` only if a process died between its removal and the commit, so one is made to die
    /// there. It keeps a journal like any other worker.
    private mutating func leaveAnUndoneRemoval() throws {
        let child = try Child(
            [path, "mixed", "\(generator.next() >> 1)", "0", "1000000"], output: "\(directory)/out-undone",
            environment: ["LARDER_FAILPOINTS": "commit.trashed=kill@1", "LARDER_TORTURE_GENTLE": "1"])
        let limit = Date().addingTimeInterval(5)
        while Date() < limit, !child.hasEnded { usleep(500) }
        child.kill()
        if let complaint = child.wait() { throw Failure(complaint) }
        for line in child.lines { journal.note(line) }
    }

    /// Gives a rebuild something to do: overwrites pages with random bytes, or leaves only the first two.
    private mutating func damageIndex() throws {
        let page: UInt64 = 4096
        let data = try FileHandle(forUpdating: URL(fileURLWithPath: path + "/index/data.mdb"))
        defer { try? data.close() }
        let pages = try data.seekToEnd() / page
        if pages < 8 || generator.oneIn(3) {
            try data.truncate(atOffset: 2 * page)
        } else {
            for _ in 0..<6 {
                try data.seek(toOffset: UInt64.random(in: 2..<pages, using: &generator) * page)
                try data.write(
                    contentsOf: Workload.body("", seed: generator.next(), length: Int(page)).prefix(Int(page)))
            }
        }
        try? FileManager.default.removeItem(atPath: damagedCopy)
        try FileManager.default.copyItem(atPath: path, toPath: damagedCopy)
    }

    /// A rebuild that continues after a kill keeps as much as one that was not killed.
    private func rebuildAgain() throws -> String? {
        try? FileManager.default.removeItem(atPath: twin)
        try FileManager.default.copyItem(atPath: damagedCopy, toPath: twin)
        let expected = try Self.keptAfterRebuild(of: twin)
        let kept = try Self.keptAfterRebuild(of: path)
        if kept == expected { return nil }
        return "a rebuild keeps \(expected) entries, and \(kept) after a kill"
    }

    /// Entries that readers see. Those of sessions that have ended are swept some time after an open.
    private static func keptAfterRebuild(of path: String) throws -> Int {
        _ = try Store.rebuildIndex(at: FilePath(path), Workload.configuration)
        let store = try Store(at: FilePath(path), Workload.configuration)
        let count = try store.keys().count
        try store.close()
        return count
    }

    private mutating func start(_ point: String?) throws -> [Child] {
        var children: [Child] = []
        let mode = point?.hasPrefix("rebuild") ?? false ? "rebuild" : "mixed"
        let isScrub = point?.hasPrefix("scrub") ?? false
        // The first worker to open the store sweeps, or scrubs: it has to be the one that is killed then.
        for slot in 0..<(mode == "rebuild" || point == "sweep.restored" || isScrub ? 1 : workers) {
            var environment: [String: String] = [:]
            // As after a new start of the machine, which makes the files written lately suspect.
            if isScrub { environment["LARDER_TORTURE_BOOT"] = "\(UInt64.random(in: 2...(1 << 60), using: &generator))" }
            // For steps that need a large index: a walk behind the open, a closing note that is relied on.
            if generator.oneIn(2) { environment["LARDER_TORTURE_PAGES"] = "4" }
            if point == "syncfs" { environment["LARDER_TORTURE_SYNCFS"] = "1" }
            if point == "reclaim.before" {
                environment["LARDER_TORTURE_VERSION"] = "\(Int.random(in: 0..<3, using: &generator))"
            }
            if slot == 0, let point {
                let hit = [1, 1, 1, 2, 3, 5, 8, 20].randomElement(using: &generator) ?? 1
                if point == "restore.before" {
                    environment["LARDER_FAILPOINTS"] = "mdb_txn_commit=EIO@\(8 + hit * 3)+;restore.before=kill@1"
                    environment["LARDER_TORTURE_FAULTY"] = "1"
                } else {
                    let number =
                        if KillsRun.isOnce(point) {
                            1
                        } else if KillsRun.rareCalls.contains(point) {
                            Int.random(in: 1...3, using: &generator)
                        } else if KillsRun.calls.contains(point) {
                            Int.random(in: 1...400, using: &generator)
                        } else {
                            hit
                        }
                    environment["LARDER_FAILPOINTS"] = "\(point)=kill@\(number)"
                }
            }
            let isClosing = point?.hasPrefix("close") ?? generator.oneIn(4)
            let operations = isClosing ? Int.random(in: 5...60, using: &generator) : 1_000_000
            children.append(
                try Child(
                    [path, mode, "\(generator.next() >> 1)", "\(slot)", "\(operations)"],
                    output: "\(directory)/out-\(slot)", environment: environment))
        }
        return children
    }

    /// Waits for the step, or a random while, and kills all that live. Returns what the first kill was at.
    private mutating func end(_ children: [Child], at point: String?) throws -> String? {
        let patience = Date().addingTimeInterval(20)
        if let point {
            // A step that is not reached soon is not reached in this state of the store.
            let limit = Date().addingTimeInterval(
                point.hasPrefix("rebuild") ? 20 : KillsRun.rareCalls.contains(point) ? 2 : 0.5)
            while Date() < limit, !children[0].hasEnded { usleep(500) }
            let killed = children[0].wasKilled
            for child in children { child.kill() }
            return killed ? point : nil
        }
        while Date() < patience, !children.allSatisfy({ $0.isReady || $0.hasEnded }) { usleep(500) }
        let most: UInt32 = generator.oneIn(3) ? 120_000 : 25_000
        usleep(UInt32.random(in: 0...most, using: &generator))
        for child in children { child.kill() }
        return "random"
    }

    /// Every third time the next workers find the store as the last ones left it.
    private mutating func review(_ point: String?, _ violations: inout [String]) throws -> Int {
        let isRebuilt = point?.hasPrefix("rebuild") ?? false
        let needsUncleanEnd = ["sweep", "scrub"].contains { points.first?.hasPrefix($0) ?? false }
        if violations.isEmpty, !isRebuilt, needsUncleanEnd || generator.oneIn(3) { return 0 }
        // The worker that should create the store was killed before it had a directory.
        if !FileManager.default.fileExists(atPath: path) { return 0 }
        try? FileManager.default.removeItem(atPath: copy)
        try FileManager.default.copyItem(atPath: path, toPath: copy)
        if isRebuilt, let complaint = try rebuildAgain() { violations.append(complaint) }
        let isLarge = generator.oneIn(2)
        let review = StoreReview(path, journal: journal, damaged: damaged, isCollecting: isRebuilt) {
            if isLarge { $0.smallPages = 4 }
        }
        damaged = []
        violations += review.violations
        return review.entryCount
    }
}
