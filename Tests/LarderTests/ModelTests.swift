import Foundation
import Larder
import SystemPackage
import Testing
import TestSupport

/// Random operations on a store and on a model of it that fits one screen; they must never disagree.
///
/// `LARDER_SEED` repeats a run, `LARDER_OPERATIONS` makes it longer.
struct ModelTests {
    /// Entries in the order of use, oldest first, and what they hold. Displacement happens at a flush, when pending
    /// operations are committed, as in the store.
    private struct Model {
        var entries: [Key: (body: [UInt8], isPinned: Bool, expires: Timestamp?)] = [:]
        var order: [Key] = []
        var limit: Int

        mutating func use(_ key: Key) {
            order.removeAll { $0 == key }
            order.append(key)
        }

        mutating func put(_ key: Key, _ body: [UInt8], expires: Timestamp?) {
            entries[key] = (body, entries[key]?.isPinned ?? false, expires)
            use(key)
        }

        mutating func remove(_ key: Key) {
            entries[key] = nil
            order.removeAll { $0 == key }
        }

        func get(_ key: Key, at now: Timestamp) -> [UInt8]? {
            guard let entry = entries[key], entry.expires.map({ $0 > now }) ?? true else { return nil }
            return entry.body
        }

        mutating func displace(at now: Timestamp) {
            while entries.count > limit {
                let free = order.filter { entries[$0]?.isPinned == false }
                let expired = free.compactMap { key in entries[key]?.expires.map { ($0, key) } }
                    .filter { $0.0 <= now }.min { $0.0 < $1.0 }?.1
                guard let victim = expired ?? free.first else { return }
                remove(victim)
            }
        }
    }

    @Test func randomOperationsAgreeWithTheModel() throws {
        let environment = ProcessInfo.processInfo.environment
        let seed = environment["LARDER_SEED"].flatMap(UInt64.init) ?? UInt64.random(in: 0..<1_000_000)
        let operations = environment["LARDER_OPERATIONS"].flatMap(Int.init) ?? 6000
        print("randomOperationsAgreeWithTheModel: LARDER_SEED=\(seed) LARDER_OPERATIONS=\(operations)")
        var generator = SeededGenerator(seed: seed)
        let path = temporaryStorePath()
        defer { removeTree(path) }
        let clock = ModelClock()
        var configuration = Configuration(budget: Budget(entries: 40))
        configuration.clock = clock
        configuration.inlineThreshold = .kibibytes(2)
        configuration.compression = .trial
        // Only a flush commits, so that store and model displace at the same moment.
        configuration.commitDelay = .seconds(3600)
        var store = try Store(at: path, configuration)
        var model = Model(limit: 40)

        for step in 0..<operations {
            let key = Key("http://model.test/\(Int.random(in: 0..<90, using: &generator))")
            clock.advance(.milliseconds(1))
            let now = clock.now()
            switch Int.random(in: 0..<100, using: &generator) {
            case 0..<35:
                let body = randomBody(&generator)
                let isShort = Int.random(in: 0..<4, using: &generator) == 0
                // The microseconds make every expiry unique: of equal ones the store may take either first.
                let lifetime =
                    Duration.milliseconds(Int.random(in: 1...300, using: &generator)) + .microseconds(step % 1000)
                try store.put(body, for: key, PutOptions(lifetime: isShort ? .duration(lifetime) : .never))
                model.put(key, body, expires: isShort ? now + lifetime : nil)
            case 35..<75:
                let found = try store.get(key)?.body.bytes()
                let expected = model.get(key, at: now)
                try #require(found == expected, "seed \(seed), step \(step): \(key)")
                if found != nil { model.use(key) }
            case 75..<83:
                try store.remove(key)
                model.remove(key)
            case 83..<85:
                try store.flush()
                model.displace(at: now)
                // At most half of the entries, or there would be nothing to displace.
                if model.entries.values.count(where: \.isPinned) < 20, try store.pin(key) {
                    model.entries[key]?.isPinned = true
                }
            case 85..<87:
                try store.flush()
                model.displace(at: now)
                if try store.unpin(key) { model.entries[key]?.isPinned = false }
            case 87..<96:
                try store.flush()
                model.displace(at: now)
                try #require(Set(try store.keys()) == Set(model.entries.keys), "seed \(seed), step \(step)")
            case 96..<98:
                try store.close()
                model.displace(at: now)
                store = try Store(at: path, configuration)
            default:
                if Int.random(in: 0..<10, using: &generator) == 0 {
                    try store.clear()
                    model.entries = [:]
                    model.order = []
                }
            }
            if step % 500 == 499 { try expectClean(store, model, path, seed, step) }
            if step % 500 == 499 { model.displace(at: clock.now()) }
        }
        try store.close()
    }

    private func expectClean(_ store: Store, _ model: Model, _ path: FilePath, _ seed: UInt64, _ step: Int) throws {
        let report = try store.check()
        try #require(report.violations.map(\.description) == [], "seed \(seed), step \(step)")
        #expect(try store.statistics().allocatedBytes.bytes == recount(path))
    }

    private func randomBody(_ generator: inout SeededGenerator) -> [UInt8] {
        let length = Int.random(in: 0..<20, using: &generator) == 0 ? 9000 : Int.random(in: 0..<3000, using: &generator)
        // Few seeds, so that bodies repeat and share.
        var body = SeededGenerator(seed: generator.next() % 30 + UInt64(length % 7))
        let bytes = (0..<(length % 5 == 0 ? 2500 : length)).map { _ in UInt8(truncatingIfNeeded: body.next()) }
        // Every third one can be compressed.
        return length % 3 == 0 ? bytes.indices.map { bytes[$0 % 50] } : bytes
    }
}

/// A wall clock that only moves when told to.
private final class ModelClock: StoreClock, @unchecked Sendable {
    // SAFETY: the test moves it on the thread that uses the store; the committer reads it while that waits for a flush.
    private let lock = NSLock()
    private var moment = Timestamp(seconds: 1_700_000_000)
    private var ticks: UInt64 = 0

    func now() -> Timestamp { lock.withLock { moment } }

    func uptime() -> UInt64 { lock.withLock { ticks } }

    func advance(_ duration: Duration) {
        lock.withLock {
            moment = moment + duration
            ticks += 1_000_000
        }
    }
}
