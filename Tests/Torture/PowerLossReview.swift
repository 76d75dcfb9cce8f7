import Larder
import SystemPackage

/// Opens a store after a power loss, does with it what a user would, and checks that everything holds.
struct PowerLossReview {
    /// What is done with the store first. No step may break what another one repairs.
    enum FirstStep: Int, CaseIterable {
        case read, check, repair
    }

    private let path: String
    private let journal: Journal
    /// What is wrong; empty if nothing is.
    private(set) var violations: [String] = []
    /// What a check found that a power loss may leave, by kind.
    private(set) var found: [String: Int] = [:]
    /// Entries that were read back and are right.
    private(set) var entries = 0

    /// - Parameter boot: another boot identity than that of the workers.
    init(_ path: String, journal: Journal, boot: UInt64, first: FirstStep) {
        self.path = path
        self.journal = journal
        do {
            try review(boot, first)
        } catch {
            violations.append("not usable: \(error)")
        }
    }

    private mutating func review(_ boot: UInt64, _ first: FirstStep) throws {
        var configuration = Workload.configuration
        configuration.bootIdentity = boot
        if boot % 2 == 0 { configuration.smallPages = 4 }
        let store = try Store(at: FilePath(path), configuration)
        switch first {
        case .read: break
        case .check: note(try store.check())
        case .repair: note(try store.check(repair: true))
        }
        try look(store, "")
        if first == .read { note(try store.check()) }
        try store.collect()
        _ = try store.check(repair: true)
        violations += try store.check().violations.map { "after gc and repair: \($0)" }
        try look(store, "after gc and repair: ")
        try putAgain(store)
        try store.put([1, 2, 3], for: "after", PutOptions(durability: .durable))
        try store.close()
        let again = try Store(at: FilePath(path), configuration)
        violations += try journal.violations(again).map { "after reopening: \($0)" }
        // What a body takes is known once it is written.
        try again.checkpoint()
        let (reported, counted) = (try again.statistics().allocatedBytes.bytes, StoreReview.recount(path))
        if reported != counted {
            violations.append("after reopening: \(reported) bytes reported, \(counted) counted")
        }
        try again.close()
    }

    /// Bodies that are missing or incomplete, and files without a record, are described in recovery.md. The index is
    /// whole.
    private mutating func note(_ report: CheckReport) {
        for violation in report.violations.map(\.description) {
            let kind = String(violation.prefix(2))
            if ["I1", "I6", "I7", "I8"].contains(kind) {
                found[kind, default: 0] += 1
            } else {
                violations.append(violation)
            }
        }
    }

    /// Durable entries are there, and no entry has a wrong byte.
    private mutating func look(_ store: Store, _ when: String) throws {
        violations += try journal.violations(store).map { when + $0 }
        for key in try store.keys() {
            guard let entry = try store.get(key) else { continue }
            entries += 1
            if let flaw = try Workload.flaw(of: entry, key) { violations.append(when + flaw) }
        }
    }

    /// Puts what entries should have under other keys: a body that is shared then has to be a sound one.
    private mutating func putAgain(_ store: Store) throws {
        for key in try store.keys(.prefix("s/")).prefix(40) {
            guard let attributes = try store.attributes(of: key), attributes.length.bytes > 4096 else { continue }
            for seed: UInt64 in 0..<4 {
                let body = Workload.body(key.description, seed: seed, length: Int(attributes.length.bytes))
                guard Digest.of(body) == attributes.digest else { continue }
                try store.put(body, for: "again", PutOptions(durability: .durable))
                if try store.get("again")?.body.bytes() != body { violations.append("\(key): put again, reads wrong") }
                break
            }
        }
    }
}
