import Foundation
import Larder
import SystemPackage

/// Workers of the run with many processes that measure what a reader waits, and that collect.
enum Latencies {
    /// Reads in random order until killed; every second and at the end says `L <reads> <p50> <p99> <max>` in nanoseconds, of
    /// that second.
    static func read(_ path: String, _ seed: UInt64, _ operations: Int) throws {
        let store = try Store(at: FilePath(path), Workload.configuration)
        WorkerMain.say("READY")
        var generator = SplitMix(state: seed)
        var times: [UInt64] = []
        var second = DispatchTime.now().uptimeNanoseconds
        for number in 0..<operations {
            let key = Key("s/\(Int.random(in: 0..<40, using: &generator))")
            let start = DispatchTime.now().uptimeNanoseconds
            let entry = try store.get(key)
            let end = DispatchTime.now().uptimeNanoseconds
            times.append(end - start)
            if let entry, let flaw = try Workload.flaw(of: entry, key) { throw Failure(flaw) }
            if end - second > 1_000_000_000 {
                say(&times)
                second = end
            }
            if number % 50 == 0 { usleep(500) }
        }
        say(&times)
        try store.close()
    }

    private static func say(_ times: inout [UInt64]) {
        times.sort()
        guard let most = times.last else { return }
        WorkerMain.say("L \(times.count) \(times[times.count / 2]) \(times[times.count * 99 / 100]) \(most)")
        times.removeAll(keepingCapacity: true)
    }

    /// `gc --compact` in a loop, the store opened anew each time as `cachectl` does. Says `G` before and `g` after each.
    static func collect(_ path: String, _ operations: Int) throws {
        for _ in 0..<operations {
            let store = try Store(at: FilePath(path), Workload.configuration)
            WorkerMain.say("G")
            try store.collect(compact: true)
            WorkerMain.say("g")
            try store.close()
            usleep(20_000)
        }
    }
}
