import SeededData

#if os(Linux)
    import Foundation
    import Larder
    import SystemPackage

    /// The budget and the recount on file systems that count blocks in different ways: processes work on a store with a
    /// budget; now and then all of them are stopped, and what the directory takes is compared with the budget. Then
    /// they are killed, and the store is checked, on the file system as it is and after it was mounted again.
    struct FilesystemsRun {
        private let options: Options
        private var generator: SeededGenerator
        private var journal = Journal()

        /// The results for one file system.
        private struct Tally {
            var rounds = 0
            var samples = 0
            /// The largest share of a budget that was taken.
            var most = 0.0
            var entries = 0
            var violations: [String] = []
        }

        private let image = PrivateMounts.root + "/image"
        private let place = PrivateMounts.root + "/fs"
        private var store: String { place + "/store" }

        /// The loads, in turn: operations of every kind, which change the budget to no more than this, and large
        /// bodies.
        private static let loads = [
            (mode: "churn", budget: ByteCount.mebibytes(48), names: 200),
            // Too small for space ahead of a body whose length is not known: XFS takes some then, and gives it back at
            // close(2).
            ("churn", .mebibytes(12), 60), ("mixed", .kibibytes(4500), 0),
        ]

        init(_ options: Options) {
            self.options = options
            generator = SeededGenerator(seed: options.seed)
        }

        mutating func run() throws -> Bool {
            let wanted = FileSystemKind.forBudgets.filter { options.fileSystems?.contains($0.name) ?? true }
            guard !wanted.isEmpty else { throw Failure("file systems: \(FileSystemKind.forBudgets.map(\.name))") }
            print("file systems: --seed \(options.seed)")
            var isClean = true
            for kind in wanted {
                guard kind.isAvailable else {
                    print("\(kind.name): skipped, no \(kind.maker.first ?? "")")
                    continue
                }
                var tally = Tally()
                let end = Date().addingTimeInterval((options.minutes ?? 1e6) * 60 / Double(wanted.count))
                repeat {
                    try round(kind, &tally)
                } while tally.violations.isEmpty && Date() < end && tally.rounds < options.cycles ?? .max
                report(kind, tally)
                isClean = isClean && tally.violations.isEmpty
                fflush(nil)
            }
            return isClean
        }

        /// A new store is worked on for four seconds.
        private mutating func round(_ kind: FileSystemKind, _ tally: inout Tally) throws {
            let load = Self.loads[tally.rounds % Self.loads.count]
            tally.rounds += 1
            journal = Journal()
            try kind.make(at: image)
            try kind.mount(image, at: place)
            defer { PrivateMounts.unmount(place) }
            let isFull = kind.name.hasSuffix("-full")
            var configuration = Workload.configuration
            if !isFull { configuration.budget = Budget(bytes: load.budget) }
            if !kind.maker.isEmpty { try kind.age(place) }
            do { try Store(at: FilePath(store), configuration).close() }
            if isFull { try fill() }
            try work(load.mode, load.names, isFull ? nil : load.budget.bytes, &tally)
            if isFull { unlink(place + "/ballast") }
            review("", &tally)
            // The final block counts are known once everything is written.
            sync()
            review("once written: ", &tally)
            if !kind.maker.isEmpty {
                PrivateMounts.unmount(place)
                try kind.mount(image, at: place)
                review("mounted again: ", &tally)
            }
        }

        /// Leaves 6 MiB free, or what the file system does not give away in steps of 2 MiB.
        private func fill() throws {
            let descriptor = open(place + "/ballast", O_WRONLY | O_CREAT, 0o600)
            defer { close(descriptor) }
            let step = 2 << 20
            var (length, status) = (0, statvfs())
            while statvfs(place, &status) == 0, Int(status.f_bavail) * Int(status.f_frsize) > 3 * step {
                if posix_fallocate(descriptor, off_t(length), off_t(step)) != 0 { return }
                length += step
            }
        }

        private mutating func work(_ mode: String, _ names: Int, _ budget: Int64?, _ tally: inout Tally) throws {
            let modes = [mode, mode, mode, "collect"]
            let children = try modes.indices.map { slot in
                try Child(
                    [
                        store, modes[slot], "\(generator.next() >> 1)", modes[slot] == "churn" ? "\(names)" : "\(slot)",
                        "1000000",
                    ],
                    output: "\(PrivateMounts.root)/out-\(slot)", environment: ["LARDER_TORTURE_GENTLE": "1"])
            }
            for _ in 0..<8 where !children.contains(where: \.hasEnded) {
                usleep(500_000)
                guard let budget else { continue }
                for child in children { kill(child.processIdentifier, SIGSTOP) }
                let before = StoreReview.recount(store)
                sync()
                let most = max(before, StoreReview.recount(store))
                for child in children { kill(child.processIdentifier, SIGCONT) }
                tally.samples += 1
                tally.most = max(tally.most, Double(most) / Double(budget))
                if most > budget {
                    tally.violations.append("\(before) bytes, \(most) once written, of a budget of \(budget)")
                }
            }
            for child in children { child.kill() }
            // On a full disk with copy-on-write, an update of the index can fail half-way: an expected error, which
            // ends a process.
            tally.violations += children.compactMap { $0.wait() }.filter { budget != nil || !$0.contains("mustReopen") }
            let lines = children.flatMap(\.lines)
            for line in lines { journal.note(line) }
            // The journal cannot know the order of a clear by one worker and a put by another.
            if lines.contains("C") { journal.forgetAll() }
        }

        private mutating func review(_ when: String, _ tally: inout Tally) {
            let review = StoreReview(store, journal: journal, isSettling: true)
            tally.entries += review.entryCount
            tally.violations += review.violations.map { when + $0 }
        }

        private func report(_ kind: FileSystemKind, _ tally: Tally) {
            print(
                "\(kind.name): \(tally.rounds) rounds, \(tally.entries) entries read back, at most "
                    + "\(Int((tally.most * 100).rounded(.up))) % of the budget taken at \(tally.samples) moments, "
                    + "violations: \(tally.violations.count)")
            for violation in tally.violations.prefix(12) { print("  \(violation)") }
        }
    }
#endif
