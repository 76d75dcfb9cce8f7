import Foundation
import Larder
import SeededData
import SystemPackage

/// Damages a small store in one place, uses it, repairs it, and repeats that.
///
/// What is asserted of each round: nothing but a `LarderError` is thrown, a hit has the bytes that were put under its
/// key (with `Verification.always`), one `verify --repair` leaves a store without violations, and everything missing
/// then was reported. A signal is for the parent process to see; the file `ROOT/round` then says what the round was.
final class DamageRun {
    let root: FilePath
    let seed: UInt64
    let rounds: Range<Int>
    private var pristine: [(path: String, bytes: [UInt8])] = []
    private var truth: [Key: [UInt8]] = [:]
    private var counts: [String: Int] = [:]

    init(root: String, seed: UInt64, rounds: Range<Int>) {
        self.root = FilePath(root)
        self.seed = seed
        self.rounds = rounds
    }

    private var store: FilePath { root.appending("store") }

    func run() throws {
        try FileManager.default.createDirectory(atPath: root.string, withIntermediateDirectories: true)
        try build()
        for round in rounds {
            var generator = SeededGenerator(seed: seed &+ UInt64(round) &* 0x2545_F491_4F6C_DD1D)
            restore()
            let target = choose(&generator)
            let damage = Damage.random(&generator, fileLength: pristine[target].bytes.count)
            let what = "round \(round) of seed \(seed): \(pristine[target].path): \(damage)"
            note(what)
            // A repair that does not end is a failure, too.
            alarm(600)
            var bytes = pristine[target].bytes
            damage.apply(&bytes, &generator)
            write(bytes, pristine[target].path)
            do {
                if round % 3 != 0 { try use(isReadOnly: round % 3 == 1, &generator) }
                try repair(isUsed: round % 3 == 2, target: pristine[target].path)
            } catch {
                throw Bad(reason: "\(what): \(error)")
            }
            alarm(0)
        }
        say("S " + counts.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " "))
    }

    // MARK: Steps

    private func use(isReadOnly: Bool, _ generator: inout SeededGenerator) throws {
        do {
            let store = try Store(at: store, configuration(isReadOnly: isReadOnly))
            defer { try? store.close() }
            try lookUpEverything(store)
            if isReadOnly { return }
            for number in 0..<6 {
                let key = Key("http://damage.test/new/\(number)")
                let body = regular(number, makeBody(name: UInt64(number), seed: seed, length: number * 7000 + 10))
                try counting { try store.put(body, for: key) }
            }
            for key in truth.keys.sorted(by: { $0.bytes.lexicographicallyPrecedes($1.bytes) }).prefix(40) {
                if generator.next() % 4 == 0 { try counting { try store.remove(key) } }
                if generator.next() % 4 == 0 { try counting { _ = try store.pin(key) } }
                if generator.next() % 4 == 0 { try counting { try store.put(truth[key]!, for: key) } }
            }
            try counting { try store.flush() }
            try counting { try store.collect() }
        } catch let error as LarderError {
            count("refused " + error.code.description)
        }
    }

    private func lookUpEverything(_ store: Store) throws {
        for (key, body) in truth {
            try counting {
                guard let entry = try store.get(key) else { return count("misses") }
                guard try entry.body.bytes() == body else { throw Bad(reason: "wrong bytes under \(key)") }
                count("hits")
            }
        }
    }

    /// `verify --repair`, as `cachectl` does it.
    private func repair(isUsed: Bool, target: String) throws {
        var isReported = false
        do {
            let store = try Store(at: store, configuration())
            defer { try? store.close() }
            let report = try store.check(repair: true)
            if !report.isClean, !report.isRepaired {
                throw Bad(reason: "not repaired: \(report.violations.filter { !$0.isRepaired })")
            }
            isReported = !report.isClean
            count(report.isClean ? "clean" : "repaired")
        } catch let error as LarderError where target == "encryption" && [.corruption, .wrongKey].contains(error.code) {
            // Without the sealed key nothing can be read, nor repaired.
            return count("key refused")
        } catch let error as LarderError where error.code == .corruption || error.code == .formatMismatch {
            do {
                let report = try Store.rebuildIndex(at: store, configuration())
                if !report.check.isClean, !report.check.isRepaired {
                    throw Bad(reason: "not repaired: \(report.check.violations)")
                }
                isReported = !report.damages.isEmpty || report.hasRestoredFormat
                count(report.keptEntries == 0 ? "started over" : "rebuilt")
                count("entries lost in rebuilds", report.lostEntries ?? truth.count)
            } catch let error as LarderError where error.code == .formatMismatch && target == "FORMAT" {
                // Indistinguishable from a store that a newer version wrote.
                return count("format refused")
            }
        }
        let store = try Store(at: store, configuration())
        defer { try? store.close() }
        let second = try store.check()
        if !second.isClean { throw Bad(reason: "second check: \(second.violations.prefix(5))") }
        var missing = 0
        for (key, body) in truth {
            guard let entry = try store.get(key) else {
                missing += 1
                continue
            }
            guard try entry.body.bytes() == body else { throw Bad(reason: "wrong bytes under \(key) after the repair") }
        }
        count("entries missing after repair", missing)
        if missing > 0, !isReported, !isUsed {
            throw Bad(reason: "\(missing) entries are gone and nothing was reported")
        }
        try store.put([1, 2, 3], for: "afterwards")
        try store.flush()
    }

    /// Every second body can be compressed.
    private func regular(_ number: Int, _ body: [UInt8]) -> [UInt8] {
        number % 2 == 0 ? body : body.enumerated().map { $0 < 64 ? $1 : body[$0 % 64] }
    }

    private func configuration(isReadOnly: Bool = false) -> Configuration {
        var configuration = Configuration.ofWorker
        configuration.verification = .always
        configuration.inlineThreshold = .kibibytes(16)
        configuration.compression = .trial
        configuration.commitDelay = .milliseconds(1)
        configuration.isReadOnly = isReadOnly
        configuration.logger.logLevel = .critical
        return configuration
    }

    private func counting(_ body: () throws -> Void) throws {
        do {
            try body()
        } catch let error as LarderError {
            count("error " + error.code.description)
        }
    }

    private func count(_ what: String, _ number: Int = 1) {
        counts[what.replacingOccurrences(of: " ", with: "_"), default: 0] += number
    }

    // MARK: The store

    private func build() throws {
        try? FileManager.default.removeItem(atPath: store.string)
        var generator = SeededGenerator(seed: 42)
        // Commits at the same places in every run, so that a round can be repeated.
        var building = configuration()
        building.commitDelay = .seconds(3600)
        let store = try Store(at: store, building)
        for number in 0..<260 {
            var text = "http://damage.test/\(number % 7)/\(number)"
            if number % 40 == 3 { text += String(repeating: "x", count: 600) }
            let key = Key(text)
            let length = [30, 300, 900, 2500, 9000, 15_000, 20_000, 70_000][number % 29 < 21 ? number % 3 : number % 8]
            let body = regular(number, makeBody(name: UInt64(number), seed: 5, length: length))
            let options = PutOptions(
                lifetime: number % 5 == 0 ? .duration(.seconds(1 << 24)) : .never,
                tags: number % 3 == 0 ? ["a", "t\(number % 5)"] : [],
                metadata: number % 31 == 0 ? makeBody(name: 1, seed: 1, length: 3000) : [UInt8(number & 255)],
                isPinned: number % 17 == 0)
            try store.put(body, for: key, options)
            truth[key] = body
            if number % 10 == 9 { try store.flush() }
            if number % 50 == 49 {
                // Shared with the one before, and some to be freed again.
                try store.put(body, for: Key("shared/\(number)"))
                truth[Key("shared/\(number)")] = body
                try store.put(makeBody(name: 9, seed: generator.next(), length: 9000), for: Key("goes/\(number)"))
                try store.flush()
                try store.remove(Key("goes/\(number)"))
                try store.flush()
            }
        }
        _ = try store.pin(tag: "t1")
        try store.close()
        let dead = "00000000000012ab-0000000000000001"
        write(makeBody(name: 1, seed: 1, length: 5000), "staging/\(dead)")
        write([], "staging/00000000000012ab.lock")
        write(makeBody(name: 2, seed: 1, length: 5000), "trash/\(dead)-\(Digest.of([7]).hexadecimal)")
        write(makeBody(name: 3, seed: 1, length: 5000), "quarantine/\(Digest.of([8]).hexadecimal)")
        pristine = try files(of: "").map { ($0, try bytes(of: $0)) }.filter { !$0.1.isEmpty }.sorted { $0.0 < $1.0 }
        // Each round is the same store, damaged, and no copy of it: the word of the ledger that says where it lies.
        if let ledger = pristine.firstIndex(where: { $0.path == "index/ledger" }) {
            pristine[ledger].bytes.replaceSubrange(509 * 8..<510 * 8, with: [UInt8](repeating: 0, count: 8))
        }
        guard pristine.count > 20 else { throw Bad(reason: "the store has \(pristine.count) files") }
    }

    private func restore() {
        for path in (try? files(of: "")) ?? [] { unlink(store.string + "/" + path) }
        for (path, bytes) in pristine { write(bytes, path) }
        write([], "staging/00000000000012ab.lock")
    }

    /// The index most of the time, every other file now and then.
    private func choose(_ generator: inout SeededGenerator) -> Int {
        let index = pristine.firstIndex { $0.path == "index/data.mdb" } ?? 0
        let random = Int(truncatingIfNeeded: generator.next() >> 1)
        return random % 4 != 0 ? index : (random / 4) % pristine.count
    }

    private func files(of directory: String) throws -> [String] {
        let place = directory.isEmpty ? store.string : store.string + "/" + directory
        return try FileManager.default.contentsOfDirectory(atPath: place).flatMap { name -> [String] in
            let path = directory.isEmpty ? name : directory + "/" + name
            var isDirectory: ObjCBool = false
            _ = FileManager.default.fileExists(atPath: store.string + "/" + path, isDirectory: &isDirectory)
            return isDirectory.boolValue ? try files(of: path) : [path]
        }
    }

    private func bytes(of path: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(fileURLWithPath: store.string + "/" + path)))
    }

    private func write(_ bytes: [UInt8], _ path: String) {
        let file = open(store.string + "/" + path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        var done = 0
        bytes.withUnsafeBytes { raw in
            while done < raw.count {
                let count = Foundation.write(file, raw.baseAddress! + done, raw.count - done)
                if count <= 0 { break }
                done += count
            }
        }
        close(file)
    }

    private func note(_ text: String) {
        let file = open(root.string + "/round", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        let bytes = Array(text.utf8)
        _ = bytes.withUnsafeBytes { Foundation.write(file, $0.baseAddress, $0.count) }
        close(file)
    }
}

/// What happens to a file.
enum Damage {
    case bit(Int, UInt8)
    case byte(Int, UInt8)
    case run(Int, length: Int)
    case zeros(Int, length: Int)
    /// A page written to the place of another.
    case misplaced(from: Int, to: Int)
    case cut(Int)

    static func random(_ generator: inout SeededGenerator, fileLength: Int) -> Damage {
        func below(_ limit: Int) -> Int { Int(truncatingIfNeeded: generator.next() >> 1) % max(1, limit) }
        let at = below(fileLength)
        // Headers and node tables stand at the beginning of a page: half of the damage goes there.
        let near = below(2) == 0 ? at / 4096 * 4096 + below(64) : at
        let place = min(near, fileLength - 1)
        switch below(16) {
        case 0..<5: return .bit(place, UInt8(1 << below(8)))
        case 5..<9: return .byte(place, UInt8(below(255) + 1))
        case 9..<11: return .run(place, length: 1 + below(64))
        case 11: return .zeros(place, length: 1 + below(64))
        case 12: return .zeros(at / 4096 * 4096, length: 4096)
        case 13..<15: return .misplaced(from: at / 4096, to: below(fileLength) / 4096)
        default: return .cut(at)
        }
    }

    func apply(_ bytes: inout [UInt8], _ generator: inout SeededGenerator) {
        switch self {
        case .bit(let at, let mask), .byte(let at, let mask): bytes[at] ^= mask
        case .run(let at, let length):
            for index in at..<min(at + length, bytes.count) {
                bytes[index] = UInt8(truncatingIfNeeded: generator.next())
            }
        case .zeros(let at, let length):
            for index in at..<min(at + length, bytes.count) { bytes[index] = 0 }
        case .misplaced(let from, let to):
            for index in 0..<4096 where max(from, to) * 4096 + index < bytes.count {
                bytes[to * 4096 + index] = bytes[from * 4096 + index]
            }
        case .cut(let length): bytes.removeLast(bytes.count - length)
        }
    }
}
