import Foundation
import Larder
import SeededData
import SystemPackage

/// Workers of the run with many processes: those that measure how long readers wait, and those that collect.
enum Latencies {
    /// What the collector does at a moment, in turn, so that its effects on readers can be separated. All processes of
    /// a machine share the clock.
    enum Phase: String, CaseIterable {
        /// Nothing: writers and displacement only.
        case quiet
        /// `gc` in a loop.
        case collect
        /// `gc --compact` in a loop.
        case compact

        private static let seconds: UInt64 = 5

        static var now: Phase {
            let turn = DispatchTime.now().uptimeNanoseconds / (seconds * 1_000_000_000)
            return allCases[Int(turn % UInt64(allCases.count))]
        }
    }

    /// Reads in random order until killed; every second and at the end prints `L <phase> <reads> <p50> <p99> <max>` in
    /// nanoseconds, of that second. Seconds in which the phase changes are left out.
    static func read(_ path: String, _ seed: UInt64, _ operations: Int) throws {
        let store = try Store(at: FilePath(path), Workload.configuration)
        WorkerMain.say("READY")
        var generator = SeededGenerator(seed: seed)
        var times: [UInt64] = []
        var second = DispatchTime.now().uptimeNanoseconds
        var phase = Phase.now
        for number in 0..<operations {
            let key = Key("s/\(Int.random(in: 0..<40, using: &generator))")
            let start = DispatchTime.now().uptimeNanoseconds
            let entry = try store.get(key)
            let end = DispatchTime.now().uptimeNanoseconds
            times.append(end - start)
            if let entry, let flaw = try Workload.flaw(of: entry, key) { throw Failure(flaw) }
            if end - second > 1_000_000_000 {
                say(&times, phase)
                second = end
                phase = .now
            }
            if number % 50 == 0 { usleep(500) }
        }
        say(&times, phase)
        try store.close()
    }

    private static func say(_ times: inout [UInt64], _ phase: Phase) {
        defer { times.removeAll(keepingCapacity: true) }
        guard phase == .now else { return }
        times.sort()
        guard let most = times.last else { return }
        WorkerMain.say(
            "L \(phase) \(times.count) \(times[times.count / 2]) \(times[times.count * 99 / 100]) \(most)")
    }

    /// Collects in a loop as the phase says, and opens the store again each time, as `cachectl` does. Prints `g` after
    /// each `gc`, `G` after each with compaction.
    static func collect(_ path: String, _ operations: Int) throws {
        for _ in 0..<operations {
            let phase = Phase.now
            if phase != .quiet {
                let store = try Store(
                    at: FilePath(path), Workload.configuration(of: ProcessInfo.processInfo.environment))
                try WorkerMain.attempt { try store.collect(compact: phase == .compact) }
                WorkerMain.say(phase == .compact ? "G" : "g")
                try store.close()
            }
            usleep(20_000)
        }
    }
}
