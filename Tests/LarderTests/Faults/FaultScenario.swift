import Larder
import Locks
import SystemPackage
import TestSupport

/// Everything a store does, as steps that may fail, and what may be found afterwards.
///
/// A step that throws is noted and the next one runs, as in a program whose disk fails for a while.
final class FaultScenario {
    let directory: FilePath
    private(set) var store: Store?
    private(set) var errors: [(step: String, error: any Error)] = []
    private(set) var wrong: [String] = []
    /// The bodies that may stand under a key.
    private var allowed: [Key: [[UInt8]]] = [:]
    /// Pinned entries of which a durable put has returned.
    private(set) var promised: [Key: [UInt8]] = [:]

    init(_ directory: FilePath) { self.directory = directory }

    var path: FilePath { directory.appending("store") }

    static var configuration: Configuration {
        .testing(budget: Budget(bytes: .mebibytes(4))) {
            $0.commitDelay = .milliseconds(1)
            $0.verification = .always
            $0.syncedSingly = 4
        }
    }

    func run() {
        step("open") { store = try Store(at: path, Self.configuration) }
        guard store != nil else { return }
        puts()
        files()
        reads()
        changes()
        upkeep()
        step("close") { try store?.close() }
        store = nil
        step("reopen") { store = try Store(at: path, Self.configuration) }
        reads()
    }

    // MARK: Groups of steps

    private func puts() {
        put("inline", 700, 1)
        put("inline durable", 700, 2, isDurable: true)
        put("file", 20_000, 3)
        put("file durable", 20_000, 4, isDurable: true)
        put("same body", 20_000, 3)
        put("large", 1_200_000, 5)
        put("expiring", 100, 6, PutOptions(lifetime: .duration(.zero)))
        put("session", 9000, 7, PutOptions(storagePolicy: .session))
        put("tagged", 500, 8, PutOptions(tags: ["t"]))
        step("flush") { try store?.flush() }
        step("checkpoint of few") { try store?.checkpoint() }
        step("stream") {
            allow("stream", body(60_000, 9))
            guard let writer = try store?.writer(for: "stream") else { return }
            for part in 0..<6 { try writer.write(Array(body(60_000, 9)[part * 10_000..<(part + 1) * 10_000])) }
            try writer.commit()
        }
        step("stream cancelled") {
            let writer = try store?.writer(for: "cancelled")
            try writer?.write(body(30_000, 10))
            writer?.cancel()
        }
    }

    private func files() {
        for (name, method) in [("copy", TransferMethod.copy), ("link", .link), ("move", .move)] {
            let source = directory.appending("source-\(name)")
            let bytes = body(15_000, name.utf8.count)
            step("source") { try TestFiles.write(bytes, to: source) }
            allow(Key(name), bytes)
            var isStored = false
            step("adopt \(name)") {
                try store?.adopt(source, for: Key(name), PutOptions(isPinned: method == .move), method: method)
                isStored = true
            }
            guard method == .move else { continue }
            if isStored { promised[Key(name)] = bytes }
            if isStored == TestFiles.exists(source) { wrong.append("a move was \(isStored ? "" : "not ")done by half") }
        }
        step("export") {
            let target = directory.appending("exported")
            if try store?.export("file durable", to: target) == true { try TestFiles.write([], to: target) }
        }
    }

    private func reads() {
        for key in allowed.keys.sorted(by: { $0.description < $1.description }) {
            step("get \(key)") { try look(key) }
        }
        step("attributes") { _ = try store?.attributes(of: "inline") }
        step("list") { _ = try store?.keys() }
        step("statistics") { _ = try store?.statistics() }
    }

    private func changes() {
        put("file", 21_000, 11)
        put("inline durable", 800, 12, isDurable: true)
        step("remove") { try store?.remove("same body") }
        step("remove file") { try store?.remove("large") }
        step("pin") { try store?.pin("tagged") }
        step("unpin") { try store?.unpin("tagged") }
        step("pin tag") { try store?.pin(tag: "t") }
        step("unpin tag") { try store?.unpin(tag: "t") }
        step("lease") { _ = try store?.lease("inline", for: .seconds(60)) }
        step("touch") { try store?.touch("file") }
        step("remove tag") { try store?.remove(.tag("t")) }
        for number in 0..<16 { put(Key("fill \(number)"), 300_000, 100 + number) }
        for number in 0..<10 { put(Key("small \(number)"), 3000, 200 + number) }
        step("flush") { try store?.flush() }
        step("budget") { try store?.setBudget(Budget(bytes: .mebibytes(3))) }
    }

    private func upkeep() {
        step("checkpoint") { try store?.checkpoint() }
        step("damage") {
            guard let entry = try store?.get("file durable"), let digest = Optional(entry.digest) else { return }
            let file = path.appending("blobs").appending("\(digest.hexadecimal.prefix(2))")
                .appending(digest.hexadecimal)
            guard TestFiles.exists(file) else { return }
            promised["file durable"] = nil
            try TestFiles.flipByte(of: file, at: 5)
            if try store?.get("file durable") != nil { wrong.append("damaged bytes were returned") }
        }
        put("file durable", 20_000, 13, isDurable: true)
        // More free pages than stay for removals.
        for number in 0..<60 { put(Key("page \(number)"), 4000, 300 + number) }
        step("flush") { try store?.flush() }
        step("free pages") { try store?.remove(.prefix("page ")) }
        step("collect") { try store?.collect(compact: true) }
        step("check") { _ = try store?.check() }
    }

    /// Bodies are made once: that takes longer than to store them.
    private static let bodies = Mutex<[Int: [UInt8]]>([:])

    private func bytes(_ length: Int, _ seed: Int) -> [UInt8] {
        Self.bodies.withLock { bodies in
            if let known = bodies[seed << 32 | length] { return known }
            let made = body(length, seed)
            bodies[seed << 32 | length] = made
            return made
        }
    }

    // MARK: Steps

    private func step(_ name: String, _ body: () throws -> Void) {
        do {
            try body()
        } catch {
            errors.append((name, error))
        }
    }

    private func put(
        _ key: Key, _ length: Int, _ seed: Int, _ options: PutOptions = PutOptions(), isDurable: Bool = false
    ) {
        let content = bytes(length, seed)
        allow(key, content)
        var options = options
        if isDurable {
            options.durability = .durable
            options.isPinned = true
            promised[key] = nil
        }
        step("put \(key)") {
            guard let store else { return }
            try store.put(content, for: key, options)
            if isDurable { promised[key] = content }
        }
    }

    private func allow(_ key: Key, _ bytes: [UInt8]) { allowed[key, default: []].append(bytes) }

    private func look(_ key: Key) throws {
        guard let found = try store?.get(key)?.body.bytes() else { return }
        if !(allowed[key] ?? []).contains(found) { wrong.append("wrong bytes under \(key)") }
    }

    // MARK: Afterwards

    /// With the fault lifted: what does not work, or does not hold.
    func findings() throws -> [String] {
        let opened = try store ?? Store(at: path, Self.configuration)
        store = opened
        // What an earlier put could not report.
        _ = try? opened.flush()
        for (number, length) in [400, 30_000, 90_000].enumerated() {
            let key = Key("after \(number)")
            try opened.put(body(length, 900 + number), for: key, PutOptions(durability: .durable))
            if try opened.get(key)?.body.bytes() != body(length, 900 + number) { wrong.append("\(key) is not there") }
        }
        for (key, bytes) in promised where try opened.get(key)?.body.bytes() != bytes {
            wrong.append("the durable entry \(key) is lost")
        }
        reads()
        try review(opened)
        try opened.close()
        let again = try Store(at: path, Self.configuration)
        store = again
        for (key, bytes) in promised where try again.get(key)?.body.bytes() != bytes {
            wrong.append("the durable entry \(key) is lost after reopening")
        }
        try review(again)
        try again.close()
        store = nil
        return wrong
    }

    private func review(_ store: Store) throws {
        wrong += try store.check().violations.map(\.description)
        let reported = try store.statistics().allocatedBytes.bytes
        let counted = recount(path)
        if reported != counted { wrong.append("\(reported) bytes are reported, the directory takes \(counted)") }
    }
}
