import Failpoints
import Foundation
import Larder
import Locks
import SystemPackage

/// Disks that refuse everything for a while under an open store that is above its high watermark: calls fail with typed
/// errors, each kind of work is reported once, the process does not spin, and everything works again when the disk
/// does.
enum LastingFaults {
    static let modes = ["lasting-io", "lasting-read-only", "lasting-full-disk"]

    /// The share of one processor that the process may use meanwhile.
    private static let processorShare = 0.2

    private final class Told: Sendable {
        let failing = Mutex<[StandingFailure.Work: Int]>([:])

        func note(_ event: StoreEvent) {
            if case .failing(let work, _) = event { failing.withLock { $0[work, default: 0] += 1 } }
        }
    }

    static func run(_ mode: String, _ path: String, seconds: Int) throws {
        let told = Told()
        var configuration = Workload.configuration
        configuration.budget = Budget(bytes: .mebibytes(16))
        configuration.watermarks = Configuration.Watermarks(high: 0.3, low: 0.1)
        configuration.observer = { told.note($0) }
        let store = try Store(at: FilePath(path), configuration)
        try store.put([1, 2, 3], for: "kept", PutOptions(isPinned: true, durability: .durable))
        for number in 0..<1500 {
            try store.put(Workload.body("b\(number)", seed: 1, length: 3900), for: Key("b\(number)"))
        }
        try store.flush()
        let lift = try fault(mode, path)
        let began = (Date(), processorTime())
        var tries = 0
        while Date().timeIntervalSince(began.0) < Double(seconds) {
            tries += 1
            let body = Workload.body("l\(tries)", seed: 2, length: tries % 2 == 0 ? 3000 : 50_000)
            do {
                try store.put(body, for: Key("l\(tries)"), PutOptions(durability: .durable))
                // On a full disk there may be room in the file for one more.
                if mode != "lasting-full-disk" { throw Failure("a durable put went through") }
            } catch let error as LarderError where error.code == .io || error.code == .noSpace {
            }
            guard try store.get("kept")?.body.bytes() == [1, 2, 3] else { throw Failure("a hit is lost") }
            usleep(200_000)
        }
        let share = (processorTime() - began.1) / Date().timeIntervalSince(began.0)
        let counts = told.failing.withLock { $0 }
        WorkerMain.say(
            "\(mode): \(tries) puts in \(seconds) s, \(Int(share * 1000)) ms of processor a second, reported \(counts)")
        if share > processorShare { throw Failure("\(share) of a processor was used") }
        if mode != "lasting-full-disk", counts[.commit] == nil { throw Failure("no failure was reported") }
        // A cause may change once, from a put that finds no room to one that cannot be written.
        if let often = counts.first(where: { $0.value > 3 }) {
            throw Failure("reported \(often.key) \(often.value) times")
        }
        try lift()
        try review(store)
    }

    /// Begins the fault; returns what ends it.
    private static func fault(_ mode: String, _ path: String) throws -> () throws -> Void {
        if mode == "lasting-full-disk" {
            let ballast = path + "-ballast"
            let file = open(ballast, O_WRONLY | O_CREAT, 0o600)
            var size = 1 << 20
            let zeros = [UInt8](repeating: 0, count: size)
            while size >= 512 { if write(file, zeros, size) <= 0 { size /= 2 } }
            close(file)
            return { unlink(ballast) }
        }
        let code = mode == "lasting-io" ? "EIO" : "EROFS"
        let calls = [
            "mdb_txn_commit", "mdb_env_sync", "pwrite", "fdatasync", "fsync", "syncfs", "rename", "unlink", "fallocate",
            "punch",
        ]
        #if LARDER_FAILPOINTS
            let rules = FaultRule.list(calls.map { "\($0)=\(code)" }.joined(separator: ";"))
            let scope = FaultScope(under: path, rules ?? [])
            return { withExtendedLifetime(scope) { scope.lift() } }
        #else
            throw Failure("needs a build with failpoints: \(code) of \(calls)")
        #endif
    }

    private static func processorTime() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Puts work immediately; work that is retried by itself is done within its longest pause.
    private static func review(_ store: Store) throws {
        try store.put([4, 5], for: "after", PutOptions(durability: .durable))
        let deadline = Date().addingTimeInterval(60)
        while try !store.statistics().failures.isEmpty {
            if Date() > deadline { throw Failure("still fails: \(try store.statistics().failures)") }
            usleep(100_000)
        }
        let path = store.path
        for opened in [store, nil] {
            let store = try opened ?? Store(at: path, Workload.configuration)
            guard try store.get("kept") != nil, try store.get("after") != nil else { throw Failure("an entry is lost") }
            let report = try store.check()
            if !report.isClean { throw Failure(report.violations.map(\.description).joined(separator: "; ")) }
            let (reported, counted) = (try store.statistics().allocatedBytes.bytes, StoreReview.recount(path.string))
            if reported != counted { throw Failure("\(reported) bytes reported, \(counted) counted") }
            _ = try? store.flush()
            try store.close()
        }
    }
}
