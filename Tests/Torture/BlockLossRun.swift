import SeededData

#if os(Linux)
    import Foundation

    /// Power loss below real file systems: processes work on a store, the disk below logs writes and flushes, and the
    /// disk as it may be after a power loss at many moments is mounted, opened and checked. Every other time the
    /// processes continue with it.
    struct BlockLossRun {
        private let options: Options
        private var generator: SeededGenerator
        private var kept: String?

        /// The results for one file system.
        private struct Tally {
            var recordings = 0
            var points = 0
            var repairedFirst = 0
            var promised = 0
            var entries = 0
            var found: [String: Int] = [:]
            var violations: [String] = []
            /// For each kind of control: files looked for, and lost.
            var controls: [String: (files: Int, lost: Int)] = [:]
        }

        /// The promises that hold at a moment.
        private struct Promises {
            var store = Journal()
            var controls = Dictionary(uniqueKeysWithValues: Control.kinds.map { ($0, Journal()) })

            mutating func note(_ line: Substring) {
                guard let kind = Control.kinds.first(where: { line.hasPrefix($0) }) else {
                    return store.noteInOrder(line)
                }
                controls[kind]?.note(line.dropFirst(kind.count + 1))
            }
        }

        init(_ options: Options) {
            self.options = options
            generator = SeededGenerator(seed: options.seed)
        }

        private let fresh = PrivateMounts.root + "/fresh"
        private let base = PrivateMounts.root + "/base"
        private let image = PrivateMounts.root + "/image"
        private let place = PrivateMounts.root + "/fs"

        mutating func run() throws -> Bool {
            let wanted = FileSystemKind.forPowerLoss.filter {
                options.fileSystems?.contains($0.name) ?? ($0.name != "ext4-writeback")
            }
            guard !wanted.isEmpty else { throw Failure("file systems: \(FileSystemKind.forPowerLoss.map(\.name))") }
            print("power loss below file systems: --seed \(options.seed)")
            var isClean = true
            for kind in wanted {
                guard kind.isAvailable else {
                    print("\(kind.name): skipped, no \(kind.maker[0])")
                    continue
                }
                var tally = Tally()
                let start = Date()
                let end = start.addingTimeInterval((options.minutes ?? 1e6) * 60 / Double(wanted.count))
                let most = options.cycles.map { max(1, $0 / wanted.count) } ?? .max
                try work(kind, until: end, most, &tally)
                isClean = report(kind, tally, Date().timeIntervalSince(start)) && isClean
                fflush(nil)
            }
            if let kept { print("kept: \(kept). See docs/testing.md for how to look at it.") }
            return isClean
        }

        private mutating func work(_ kind: FileSystemKind, until end: Date, _ most: Int, _ tally: inout Tally) throws {
            try kind.make(at: fresh)
            try kind.mount(fresh, at: place)
            do {
                defer { PrivateMounts.unmount(place) }
                try kind.age(place)
            }
            var promises: Promises?
            while tally.violations.isEmpty, tally.points < most, Date() < end {
                // The processes continue with what the last power loss left, or begin with an empty disk.
                if promises == nil || generator.oneIn(2) {
                    try BlockImage(fresh).save(to: base)
                    promises = Promises()
                } else if rename(image + "-next", base) != 0 {
                    throw Failure("rename: \(errno)")
                }
                let before = try BlockImage(base)
                let log = try record(kind, &tally)
                tally.recordings += 1
                promises = try lose(kind, before, log, promises ?? Promises(), until: end, most, &tally)
            }
        }

        /// Processes work for a while. Returns what the disk received until they were killed.
        private mutating func record(_ kind: FileSystemKind, _ tally: inout Tally) throws -> BlockLog {
            let disk = try BlockDisk(base, kind)
            // If the whole store is synced all the time, few relaxed bodies are at risk.
            let isLazy = generator.oneIn(2)
            let environment = [
                "LARDER_TORTURE_LAZY": isLazy ? "1" : "0",
                "LARDER_TORTURE_GENTLE": "1", "LARDER_TORTURE_BUDGET": generator.oneIn(2) ? "1" : "0",
                "LARDER_TORTURE_BOOT": "\(generator.next() | 1)",
            ]
            let modes = ["mixed", "mixed", "mixed", "churn", "control"] + (isLazy ? [] : ["collect"])
            let children = try modes.indices.map { slot in
                try Child(
                    [
                        "\(place)/\(modes[slot] == "control" ? "control" : "store")", modes[slot],
                        // The fourth number of `churn` is how many keys it has.
                        "\(generator.next() >> 1)", modes[slot] == "churn" ? "30" : "\(slot)", "1000000",
                    ],
                    output: disk.said, errors: "\(PrivateMounts.root)/err-\(slot)", environment: environment)
            }
            let limit = Date().addingTimeInterval(Double.random(in: 1...3, using: &generator))
            while Date() < limit, !children.contains(where: \.hasEnded) { usleep(20_000) }
            let length = disk.length
            for child in children { child.kill() }
            let complaints = children.compactMap { $0.wait() }
            let log = try disk.end(at: length)
            let said = log.records.filter { $0.kind == .said }.flatMap { log.lines($0) }
            tally.violations += said.filter { $0.hasPrefix("BAD") }.map { "a worker: \($0)" } + complaints
            return log
        }

        /// The power fails at moments of a recording. Returns what holds at the last of them, whose disk is kept.
        private mutating func lose(
            _ kind: FileSystemKind, _ stable: BlockImage, _ log: BlockLog, _ before: Promises, until end: Date,
            _ most: Int, _ tally: inout Tally
        ) throws -> Promises {
            var promises = before
            var (noted, applied, flushed) = (0, 0, 0)
            let moments = (0..<25).map { _ in moment(log) }.sorted()
            for (number, moment) in moments.enumerated() {
                for record in log.records[noted..<moment] {
                    if record.kind == .said { for line in log.lines(record) { promises.note(line) } }
                    if record.kind == .flush { flushed = noted }
                    noted += 1
                }
                for record in log.records[applied..<max(applied, flushed)] where record.kind == .write {
                    stable.apply(record, of: log)
                }
                applied = max(applied, flushed)
                let isLast = number == moments.count - 1
                if !isLast, !tally.violations.isEmpty || tally.points >= most || Date() >= end { break }
                let seed = generator.next()
                let share = [0, 10, 50, 90, 100].randomElement(using: &generator) ?? 50
                let save = { (path: String) in
                    try stable.save(
                        to: path, adding: log.records[applied..<moment], of: log, share: share, sector: kind.sector,
                        seed: seed)
                }
                try save(image)
                if isLast { try save(image + "-next") }
                let count = tally.violations.count
                inspect(kind, promises, seed, &tally)
                if tally.violations.count > count { try keep(kind, promises, tally.violations[count...], save) }
            }
            promises.store.endWorkers()
            return promises
        }

        /// A moment at random, or right after something was acknowledged.
        private mutating func moment(_ log: BlockLog) -> Int {
            let any = Int.random(in: 0...log.records.count, using: &generator)
            if generator.oneIn(2) { return any }
            return log.records[any...].firstIndex { $0.kind == .said }.map { $0 + 1 } ?? any
        }

        /// Mounts the image and checks it, in a separate process.
        private mutating func inspect(
            _ kind: FileSystemKind, _ promises: Promises, _ seed: UInt64, _ tally: inout Tally
        ) {
            tally.points += 1
            let first = PowerLossReview.FirstStep.allCases.randomElement(using: &generator) ?? .read
            tally.repairedFirst += first == .repair ? 1 : 0
            tally.promised += promises.store.promised
            do {
                try kind.mount(image, at: place)
                defer { PrivateMounts.unmount(place) }
                for (name, journal) in promises.controls {
                    let lost = Control.losses("\(place)/control", journal)
                    tally.controls[name, default: (0, 0)].files += journal.promised
                    tally.controls[name, default: (0, 0)].lost += lost
                }
                let journal = PrivateMounts.root + "/journal"
                try promises.store.lines.write(toFile: journal, atomically: false, encoding: .utf8)
                let child = try Child(
                    ["\(place)/store", "inspect", "\(seed | 1)", "\(first.rawValue)", "0"],
                    output: PrivateMounts.root + "/inspect", environment: ["LARDER_TORTURE_JOURNAL": journal])
                var violations = child.wait().map { [$0] } ?? []
                for line in child.lines {
                    let words = line.split(separator: " ")
                    if line.hasPrefix("V ") { violations.append(String(line.dropFirst(2))) }
                    if line.hasPrefix("F "), words.count == 3 {
                        tally.found[String(words[1]), default: 0] += Int(words[2]) ?? 0
                    }
                    if line.hasPrefix("N "), words.count == 2 { tally.entries += Int(words[1]) ?? 0 }
                }
                tally.violations += violations.map { "recording \(tally.recordings), \(first) first: \($0)" }
            } catch {
                tally.violations.append("\(error)")
            }
        }

        /// Keeps the disk as it was built, and what was promised and found.
        private mutating func keep(
            _ kind: FileSystemKind, _ promises: Promises, _ violations: ArraySlice<String>,
            _ save: (String) throws -> Void
        ) throws {
            let directory = try kept ?? options.makeDirectory()
            kept = directory
            try save("\(directory)/\(kind.name).image")
            let text = violations.joined(separator: "\n") + "\n\n" + promises.store.lines + "\n"
            try text.write(toFile: "\(directory)/\(kind.name).found", atomically: false, encoding: .utf8)
        }

        private func report(_ kind: FileSystemKind, _ tally: Tally, _ seconds: TimeInterval) -> Bool {
            let (safe, hasty) = (tally.controls["safe"] ?? (0, 0), tally.controls["hasty"] ?? (0, 0))
            print(
                "\(kind.name): \(tally.points) crash points of \(tally.recordings) recordings in \(Int(seconds)) s "
                    + "(\(tally.repairedFirst) repaired first), \(tally.promised) durable entries looked for, "
                    + "\(tally.entries) entries read back, violations: \(tally.violations.count); control: "
                    + "\(hasty.lost) of \(hasty.files) lost without sync, \(safe.lost) of \(safe.files) with sync")
            let found = tally.found.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
            print("  found and repaired, as documented: \(found.joined(separator: ", "))")
            for violation in tally.violations.prefix(40) { print("  \(violation)") }
            if safe.lost > 0 { print("  control: synced files were lost: the file system or this test is wrong") }
            if hasty.lost == 0 { print("  control: no file was lost without sync: this run shows nothing") }
            return tally.violations.isEmpty && safe.lost == 0 && hasty.lost > 0
        }
    }
#endif
