import Foundation
import Larder
import SeededData
import Locks
import SystemPackage

/// A process that works on a store until it has done its operations or is killed.
enum WorkerMain {
    static func run(_ arguments: [String]) -> Int32 {
        guard arguments.count == 5, let seed = UInt64(arguments[2]), let slot = Int(arguments[3]),
            let operations = Int(arguments[4])
        else { return 64 }
        do {
            switch arguments[1] {
            case "mixed": try mixed(arguments[0], seed, slot, operations)
            case "recover": try recover(arguments[0], seed, slot, operations)
            case "inspect": try inspect(arguments[0], seed, slot)
            case "churn": try Churn.work(arguments[0], seed, operations, names: slot)
            case "control": try Control.work(arguments[0], operations)
            case "rebuild": say("R \(try Store.rebuildIndex(at: FilePath(arguments[0]), Workload.configuration))")
            case "read": try Latencies.read(arguments[0], seed, operations)
            case "collect": try Latencies.collect(arguments[0], operations)
            case let mode where LastingFaults.modes.contains(mode):
                try LastingFaults.run(mode, arguments[0], seconds: operations)
            default: try Limits.run(arguments[1], arguments[0])
            }
            say("OK")
            return 0
        } catch {
            say("BAD \(error)")
            return 1
        }
    }

    /// One write(2) for each line: a line is there in whole or, if the process dies while writing, without its end.
    @Sendable static func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = bytes.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
    }

    /// After a power loss, with another boot identity: opens the store, continues with it, and does what is advised
    /// then.
    private static func recover(_ path: String, _ boot: UInt64, _ slot: Int, _ operations: Int) throws {
        var configuration = Workload.configuration
        configuration.bootIdentity = boot
        if boot % 2 == 0 { configuration.smallPages = 4 }
        let store = try Store(at: FilePath(path), configuration)
        say("READY")
        let work = Workload(store, path: path, slot: slot, seed: boot, says: say)
        work.isGentle = true
        for _ in 0..<operations { try attempt { try work.step() } }
        try attempt { try store.collect() }
        _ = try store.check(repair: true)
        try attempt { try store.close() }
    }

    /// After a power loss, with another boot identity: what `PowerLossReview` finds, in lines.
    private static func inspect(_ path: String, _ boot: UInt64, _ first: Int) throws {
        let file = ProcessInfo.processInfo.environment["LARDER_TORTURE_JOURNAL"] ?? ""
        let journal = Journal(lines: try String(contentsOfFile: file, encoding: .utf8))
        let step = PowerLossReview.FirstStep(rawValue: first) ?? .read
        let review = PowerLossReview(path, journal: journal, boot: boot, first: step)
        for violation in review.violations { say("V \(violation.replacing("\n", with: " "))") }
        for (kind, count) in review.found { say("F \(kind) \(count)") }
        say("N \(review.entries)")
    }

    /// A thread that does everything, and one that puts and reads at the same time.
    private static func mixed(_ path: String, _ seed: UInt64, _ slot: Int, _ operations: Int) throws {
        let environment = ProcessInfo.processInfo.environment
        let store = try Store(at: FilePath(path), Workload.configuration(of: environment))
        say("READY")
        let failure = Mutex<(any Error)?>(nil)
        let isOver = Atomic<Bool>(false)
        let done = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            var generator = SeededGenerator(seed: seed ^ 0x5EED)
            while !isOver.load(ordering: .relaxed) {
                let name = "s/\(Int.random(in: 0..<40, using: &generator))"
                do {
                    try attempt {
                        if generator.oneIn(3) {
                            try store.put(
                                Workload.body(
                                    name, seed: generator.next() % 4, length: generator.oneIn(4) ? 8000 : 300),
                                for: Key(name))
                        } else if let entry = try store.get(Key(name)),
                            let flaw = try Workload.flaw(of: entry, Key(name))
                        {
                            throw Failure(flaw)
                        }
                    }
                } catch {
                    failure.withLock { $0 = $0 ?? error }
                    break
                }
            }
            done.signal()
        }
        let work = Workload(store, path: path, slot: slot, seed: seed, says: say)
        work.isGentle = environment["LARDER_TORTURE_GENTLE"] == "1"
        work.isLazy = environment["LARDER_TORTURE_LAZY"] == "1"
        for _ in 0..<operations {
            if let error = failure.withLock({ $0 }) { throw error }
            try attempt { try work.step() }
        }
        isOver.store(true, ordering: .relaxed)
        done.wait()
        if let error = failure.withLock({ $0 }) { throw error }
        try attempt { try store.close() }
    }

    /// Rules of this process other than `kill` make operations fail.
    private static let isFaulty =
        ProcessInfo.processInfo.environment["LARDER_TORTURE_FAULTY"] != nil

    /// Pins and other writers may leave no room for a moment: that is an expected error, not a failure. So is a
    /// directory that another worker's `clear` emptied of what this one adopts.
    static func attempt(_ body: () throws -> Void) throws {
        do {
            try body()
        } catch let error as LarderError where error.code == .noSpace || error.code == .tooLarge {
        } catch let error as LarderError where isFaulty && error.code == .io {
        }
    }
}
