import Foundation
import Synchronization
import SystemPackage

/// The slowest put of many processes that share a store: the load of diskcache's own benchmark, 100,000 operations a
/// process on 100 keys, 90 % gets, 9 % sets, 1 % removals.
struct SetYardstick: Codable {
    static let keys = 100
    static let operations = 100_000

    /// What one process reports, and all together: nanoseconds a put.
    struct Sets: Codable {
        var count: Int
        var median: UInt64
        var p99: UInt64
        var highest: UInt64

        init(_ sets: [UInt64]) {
            let sorted = sets.sorted()
            func at(_ share: Double) -> UInt64 {
                sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
            }
            (count, median, p99, highest) = (sorted.count, at(0.5), at(0.99), sorted.last ?? 0)
        }

        /// The worst of several processes.
        init(worstOf sets: [Sets]) {
            count = sets.reduce(0) { $0 + $1.count }
            median = sets.map(\.median).max() ?? 0
            p99 = sets.map(\.p99).max() ?? 0
            highest = sets.map(\.highest).max() ?? 0
        }
    }

    let processes: Int
    var larder: Sets
    /// Nil: no Python that has diskcache was given.
    var diskcache: Sets?

    static func measure(_ processes: Int, _ directory: WorkDirectory, _ externals: ExternalPeers, seed: UInt64) throws
        -> SetYardstick
    {
        let own = try directory.make("sets-larder")
        let larder = try run(processes) { number in
            try Subprocess.run(
                Subprocess.ownExecutable,
                ["set-worker", "--store", own.string, "--seed", "\(seed &+ UInt64(number))"])
        }
        var result = SetYardstick(processes: processes, larder: larder)
        if let python = externals.python, let scripts = externals.scripts {
            let path = try directory.make("sets-diskcache")
            result.diskcache = try run(processes) { number in
                try Subprocess.run(
                    python,
                    ["\(scripts)/diskcache_sets.py", path.string, "\(keys)", "\(operations)", "\(number)"])
            }
        }
        return result
    }

    private static func run(_ processes: Int, _ start: @escaping @Sendable (Int) throws -> Data) throws -> Sets {
        let answers = Mutex<[Sets]>([])
        try Threads.run(processes) { number in
            let sets = try JSONDecoder().decode(Sets.self, from: start(number))
            answers.withLock { $0.append(sets) }
        }
        return Sets(worstOf: answers.withLock { $0 })
    }
}
