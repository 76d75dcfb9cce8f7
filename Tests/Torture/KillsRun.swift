import Foundation
import Larder
import Locks
import SystemPackage

#if LARDER_FAILPOINTS
    import Failpoints
#endif

/// R1: workers with mixed load are ended by SIGKILL, at random moments and at every step and system call of the engine;
/// then the store is opened and checked, and the next workers continue with it.
///
/// Models the crash of processes. The kernel keeps running, so this says nothing about power loss.
final class KillsRun: Sendable {
    private let options: Options
    private let tally = Mutex(Tally())
    private let directory: String

    struct Tally {
        var cycles = 0
        var kills = 0
        var acknowledged = 0
        var killsAt: [String: Int] = [:]
        var violations: [String] = []
        var entries = 0
    }

    init(_ options: Options) throws {
        self.options = options
        directory = try options.makeDirectory()
    }

    static let calls = [
        "open", "pread", "pwrite", "rename", "unlink", "mkdir", "fstat", "fstatat", "fallocate", "punch", "ftruncate",
        "opendir", "fdatasync", "fsync", "syncfs", "link", "mdb_txn_begin.read", "mdb_txn_begin.write",
        "mdb_txn_commit",
        "mdb_put", "mdb_del", "mdb_cursor_del", "mdb_cursor_get", "mdb_env_sync",
    ]

    /// Calls that a worker makes a few times in the half second it has, instead of some hundred times.
    static let rareCalls: Set = [
        "ftruncate", "link", "fdatasync", "syncfs", "fallocate", "mkdir", "mdb_txn_begin.read",
    ]

    /// True for a step that a process takes once at most.
    static func isOnce(_ point: String) -> Bool {
        ["create", "reclaim", "rebuild", "scrub"].contains { point.hasPrefix($0) }
    }

    static var points: [String] {
        #if LARDER_FAILPOINTS
            Failpoints.steps + calls
        #else
            []
        #endif
    }

    func run() throws -> Bool {
        if Self.points.isEmpty { print("built without failpoints: kills at random moments only") }
        print("kills: --seed \(options.seed), \(options.lanes) stores in \(directory)")
        let start = Date()
        let end = options.deadline
        let lanes = options.lanes
        let group = DispatchGroup()
        for number in 0..<lanes {
            group.enter()
            Thread.detachNewThread { [self] in
                var lane = Lane(self.options, directory: "\(self.directory)/\(number)", number: number)
                while Date() < end, self.mayGoOn() { lane.cycle { change in self.tally.withLock { change(&$0) } } }
                group.leave()
            }
        }
        group.wait()
        return report(Date().timeIntervalSince(start))
    }

    private func mayGoOn() -> Bool {
        tally.withLock { $0.violations.isEmpty && $0.cycles < options.cycles ?? .max }
    }

    private func report(_ seconds: TimeInterval) -> Bool {
        let tally = tally.withLock { $0 }
        print(
            "\(tally.cycles) cycles in \(Int(seconds)) s (\(Int(Double(tally.cycles) / seconds * 60)) a minute), "
                + "\(tally.kills) processes killed, \(tally.acknowledged) durable puts acknowledged, "
                + "\(tally.entries) entries read back")
        print("kills at random moments: \(tally.killsAt["random"] ?? 0)")
        for point in Self.points { print("  \(point): \(tally.killsAt[point] ?? 0)") }
        let unreached = Self.points.filter { tally.killsAt[$0] == nil }
        if !unreached.isEmpty { print("not reached: \(unreached.joined(separator: ", "))") }
        print("violations: \(tally.violations.count)")
        for violation in tally.violations.prefix(50) { print("  \(violation)") }
        if tally.violations.isEmpty {
            if !options.keepsStores { try? FileManager.default.removeItem(atPath: directory) }
        } else {
            print("kept: \(directory)/*/store as it is now, */before as the workers left it. Replay:")
            print("  cachectl verify --store \(directory)/LANE/before")
            print("  tools/torture kills --seed \(options.seed) --cycles \(tally.cycles) --lanes \(options.lanes)")
        }
        // A step that a long run never reaches is not tested, whatever the table says.
        return tally.violations.isEmpty && (unreached.isEmpty || tally.cycles < 5000)
    }
}
