import Foundation
import Larder
import SystemPackage

/// Opens a store after its processes ended and checks that everything holds.
struct StoreReview {
    /// What is wrong; empty if nothing is.
    private(set) var violations: [String] = []
    private(set) var entryCount = 0

    /// - Parameter damaged: digests of bodies that were damaged on purpose.
    /// - Parameter isCollecting: `gc` first: for a store that may have orphans.
    /// - Parameter isSettling: a checkpoint before sizes are compared: for a file system that knows what a file takes
    ///   only once it is written.
    init(
        _ path: String, journal: Journal, damaged: Set<String> = [], isCollecting: Bool = false,
        isSettling: Bool = false,
        _ change: (inout Configuration) -> Void = { _ in }
    ) {
        do {
            var configuration = Workload.configuration
            change(&configuration)
            let store = try Store(at: FilePath(path), configuration)
            if isCollecting { try store.collect() }
            if !damaged.isEmpty {
                // Found and repaired; everything else has to be sound.
                let report = try store.check(repair: true)
                violations += report.violations.map(\.description).filter { text in
                    !damaged.contains { text.contains($0) } && !text.hasPrefix("I2") && !text.hasPrefix("I8")
                }
            }
            violations += try store.check().violations.map(\.description)
            violations += try journal.violations(store)
            try readAll(store)
            if isSettling { try store.checkpoint() }
            let reported = try store.statistics().allocatedBytes.bytes
            let counted = Self.recount(path)
            if reported != counted { violations.append("\(reported) bytes reported, \(counted) counted") }
            let budget = try store.statistics().budget.bytes
            if budget != .unlimited, counted > budget.bytes {
                violations.append("\(counted) bytes taken of a budget of \(budget.bytes)")
            }
            try store.close()
        } catch {
            violations.append("not usable: \(error)")
        }
    }

    private mutating func readAll(_ store: Store) throws {
        for key in try store.keys() {
            guard let entry = try store.get(key) else { continue }
            entryCount += 1
            if let wrong = try Workload.flaw(of: entry, key) { violations.append(wrong) }
        }
    }

    /// `st_blocks` x 512 of every regular file.
    static func recount(_ path: String) -> Int64 {
        var sum: Int64 = 0
        guard let walk = FileManager.default.subpaths(atPath: path) else { return 0 }
        for name in walk {
            var status = stat()
            if lstat(path + "/" + name, &status) == 0, status.st_mode & S_IFMT == S_IFREG {
                sum += Int64(status.st_blocks) * 512
            }
        }
        return sum
    }
}
