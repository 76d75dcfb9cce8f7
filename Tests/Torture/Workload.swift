import Foundation
import Larder
import SeededData
import SystemPackage

/// The work of a worker on a store: random operations of every kind until it has made enough of them or is killed.
///
/// Bodies name their key in their first bytes, so that a body under another key is noticed even if it is whole.
final class Workload: @unchecked Sendable {
    // SAFETY: one thread uses an object; threads of a worker have one each.
    let store: Store
    let path: String
    /// Keys of durable entries are a slot's own: one process at a time writes them.
    let slot: Int
    /// Damages nothing on purpose.
    var isGentle = false
    /// Leaves it to the store to decide when everything is synced.
    var isLazy = false
    private var generator: SeededGenerator
    private let says: @Sendable (String) -> Void

    init(_ store: Store, path: String, slot: Int, seed: UInt64, says: @escaping @Sendable (String) -> Void) {
        self.store = store
        self.path = path
        self.slot = slot
        generator = SeededGenerator(seed: seed)
        self.says = says
    }

    static var configuration: Configuration {
        var configuration = Configuration()
        configuration.commitDelay = .milliseconds(2)
        configuration.compression = .trial
        configuration.inlineThreshold = .kibibytes(4)
        configuration.logger.logLevel = .critical
        if ProcessInfo.processInfo.environment["LARDER_TEST_ENCRYPTION"] != nil {
            configuration.encryption = try? EncryptionKey(bytes: 0..<32)
        }
        return configuration
    }

    /// With what the process that started a worker wants changed.
    static func configuration(of environment: [String: String]) -> Configuration {
        var configuration = configuration
        if environment["LARDER_TORTURE_BUDGET"] == "1" { configuration.budget = Budget(bytes: .mebibytes(4)) }
        if let boot = environment["LARDER_TORTURE_BOOT"].flatMap({ UInt64($0) }) { configuration.bootIdentity = boot }
        configuration.version = environment["LARDER_TORTURE_VERSION"]
        if environment["LARDER_TORTURE_PAGES"] != nil { configuration.smallPages = 4 }
        if environment["LARDER_TORTURE_SYNCFS"] != nil { configuration.syncedSingly = 0 }
        return configuration
    }

    // MARK: Bodies

    static func body(_ key: String, seed: UInt64, length: Int) -> [UInt8] {
        var generator = SeededGenerator(seed: seed)
        var body = Array((key + "\n").utf8)
        body.reserveCapacity(length + 8)
        // A fourth of the bodies can be compressed, which some file systems do.
        let isRegular = seed % 4 == 3
        var word = generator.next()
        while body.count < length {
            withUnsafeBytes(of: word) { body += $0 }
            if !isRegular { word = generator.next() }
        }
        return body
    }

    /// What is wrong with a body; nil if nothing is.
    static func flaw(of entry: Entry, _ key: Key) throws -> String? {
        let bytes = try entry.body.bytes()
        if Digest.of(bytes) != entry.digest { return "\(key): the bytes do not match the digest" }
        let name = Array((key.description + "\n").utf8)
        return bytes.starts(with: name) ? nil : "\(key): the body of another key"
    }

    private func length() -> Int {
        switch Int.random(in: 0..<10, using: &generator) {
        case 0..<5: Int.random(in: 10...2000, using: &generator)
        case 5..<8: Int.random(in: 2000...9000, using: &generator)
        case 8: Int.random(in: 9000...40_000, using: &generator)
        // Above 1 MiB, where space is allocated ahead.
        default: generator.oneIn(8) ? 1_100_000 : Int.random(in: 20_000...60_000, using: &generator)
        }
    }

    private func body(_ key: String) -> [UInt8] {
        Self.body(key, seed: generator.next() % 4, length: length())
    }

    // MARK: Operations

    /// One operation. Throws `Failure` for what must not be.
    func step() throws {
        let name = "s/\(Int.random(in: 0..<40, using: &generator))"
        let key = Key(name)
        switch Int.random(in: 0..<200, using: &generator) {
        case 0..<45: try store.put(body(name), for: key, options())
        case 45..<80: try look(key)
        case 80..<115: try durablePut()
        case 115..<122: try durableRemoval()
        case 122..<135: try stream(name)
        case 135..<150: try store.remove(key)
        case 150..<155: try adopt(name)
        case 155: try store.pin(key)
        case 156..<158: try store.unpin(key)
        case 158: try store.pin(tag: "t1")
        case 159..<161: try store.unpin(tag: "t1")
        case 161..<164: _ = try store.lease(key, for: .milliseconds(20))
        case 164..<167: try store.touch(key, lifetime: .duration(.milliseconds(5)))
        case 167..<170: try store.remove(.tag("t2"))
        case 170..<173: try store.remove(.expired)
        case 173..<178: _ = try store.statistics()
        case 178..<184: try store.flush()
        case 184..<189: if !isLazy || generator.oneIn(100) { try store.checkpoint() }
        case 189..<193: if !isLazy || generator.oneIn(100) { try store.collect(compact: generator.oneIn(2)) }
        case 193: try store.collect(dryRun: true)
        case 194: try budget()
        case 195: if generator.oneIn(4) { try clear() }
        case 196: if !isGentle, generator.oneIn(2) { try damage() }
        case 197: if generator.oneIn(3) { _ = try store.check(repair: generator.oneIn(2)) }
        case 198: _ = try store.keys(.prefix("s/1"))
        default: _ = try store.attributes(of: key)
        }
    }

    private func options() -> PutOptions {
        var options = PutOptions(tags: generator.oneIn(3) ? ["t\(Int.random(in: 0..<4, using: &generator))"] : [])
        if generator.oneIn(4) { options.lifetime = .duration(.milliseconds(Int.random(in: 0..<60, using: &generator))) }
        switch Int.random(in: 0..<20, using: &generator) {
        case 0: options.storagePolicy = .session
        case 1: options.storagePolicy = .memoryOnly
        default: break
        }
        return options
    }

    private func look(_ key: Key) throws {
        guard let entry = try store.get(key) else { return }
        if let flaw = try Self.flaw(of: entry, key) { throw Failure(flaw) }
    }

    private func durablePut() throws {
        let name = "d/\(slot)/\(Int.random(in: 0..<8, using: &generator))"
        let length = generator.oneIn(3) ? Int.random(in: 5000...30_000, using: &generator) : 600
        let body = Self.body(name, seed: generator.next(), length: length)
        let digest = Digest.of(body)
        says("B \(name) \(digest)")
        try store.put(body, for: Key(name), PutOptions(isPinned: true, durability: .durable))
        says("D \(name) \(digest)")
    }

    private func durableRemoval() throws {
        let name = "d/\(slot)/\(Int.random(in: 0..<8, using: &generator))"
        says("X \(name)")
        switch Int.random(in: 0..<4, using: &generator) {
        case 0:
            try store.remove(Key(name))
            try store.flush()
        case 1: try store.remove(Key(name), durability: .durable)
        case 2: try store.remove(.prefix(Key(name)), durability: .durable)
        default: if let entry = try store.get(Key(name)) { try store.remove(entry, durability: .durable) }
        }
        says("Y \(name)")
    }

    private func stream(_ name: String) throws {
        let bytes = body(name)
        let writer = try store.writer(for: Key(name), options())
        for start in stride(from: 0, to: bytes.count, by: 16_000) {
            try writer.write(Array(bytes[start..<min(start + 16_000, bytes.count)]))
        }
        if generator.oneIn(5) { writer.cancel() } else { try writer.commit() }
    }

    private func adopt(_ name: String) throws {
        let file = "\(path)-adopt-\(slot)-\(generator.next())"
        defer { unlink(file) }
        let bytes = Self.body(name, seed: generator.next(), length: Int.random(in: 100...20_000, using: &generator))
        guard FileManager.default.createFile(atPath: file, contents: Data(bytes)) else { return }
        let method = [TransferMethod.copy, .move, .link].randomElement(using: &generator) ?? .copy
        try store.adopt(FilePath(file), for: Key(name), options(), method: method)
    }

    private func budget() throws {
        var budget = try store.statistics().budget
        guard budget.bytes != .unlimited else { return }
        budget.bytes = .kibibytes(Int64.random(in: 3000...4500, using: &generator))
        try store.setBudget(budget)
    }

    private func clear() throws {
        says("C")
        try store.clear()
        says("Z")
    }

    /// A body on disk loses a byte; the check finds and removes it.
    private func damage() throws {
        let name = "q/\(slot)"
        let body = Self.body(name, seed: generator.next(), length: 9000)
        let digest = Digest.of(body).hexadecimal
        says("M \(digest)")
        try store.put(body, for: Key(name))
        try store.flush()
        let file = "\(path)/blobs/\(digest.prefix(2))/\(digest)"
        let descriptor = open(file, O_WRONLY)
        if descriptor >= 0 {
            _ = pwrite(descriptor, [body[100] ^ 0xFF], 1, 100)
            close(descriptor)
        }
        _ = try store.check(repair: true)
        if let entry = try store.get(Key(name)), try Self.flaw(of: entry, Key(name)) != nil {
            throw Failure("\(name): a damaged body was returned after the check")
        }
    }
}
