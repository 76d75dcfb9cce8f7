// A separate process for tests: works on a store as its arguments say until it is done or killed.
//
//     LarderTestWorker STORE MODE SEED COUNT
//
// mixed    puts, gets, streams, overwrites, removals, pins and leases in random order; every hit is verified
// batches  durable batches of puts that give 8 keys the number of the round; prints `B <round>` for the first ten
// compute  asks for a value that takes COUNT ms to compute; prints `COMPUTED` if it did so, and `VALUE <length>`
// claim    begins to compute a value, prints `COMPUTING`, and never ends
// progress, progressHold, progressWait  writes a body of COUNT bytes in ranges; see `ProgressRun`
// durable  durable, pinned puts; prints `D <key> <digest>` after each one has returned
// same     puts and removes a few bodies that every worker shares
// collect  gc in a loop
// readers  SEED threads hold a body for a millisecond, repeatedly for COUNT ms; prints `R <reads>`
// check    verifies the invariants once
// hold     looks at the entry "held" and prints `HELD` with the snapshot in hand, until it is killed
// count    prints `N <entries>`
// opens    fills a store with COUNT entries of 100 bytes and prints what an open takes, with and without a walk
// freelist fills a store of COUNT GiB three times with bodies of 4 to 256 KiB; prints what a durable put takes then
// refused  as user SEED, if it is root: tries to open the store, and prints code, cause and message of the error
// stream   writes a body of COUNT MiB as a stream and reads it through; fails if that takes more than 64 MiB of memory
// reboot   STORE is a directory to work in: what an open of COUNT entries takes after a start of the machine, clean
//          or not
// lease    leases the key k for COUNT seconds, prints `LEASED`, and waits to be killed
// leaseAndRelease    leases the key k for COUNT seconds, and releases it
// used     puts a, b, c and an entry of policy session, uses a, prints `USED`, and waits to be killed
// umask    makes a file of each kind under the umask SEED, and ends without closing the store
// halted   replaces a durable entry and removes another while LMDB cannot write its meta pages; prints the codes of
//          the failures
// pressure fills a memory tier, reads COUNT MiB again and again, and prints `SHRUNK` when the tier has let go of
//          something
// damage   STORE is a directory to work in: makes a store there, and damages, uses and repairs it COUNT times
//
// Prints `OK` at the end, or `BAD <reason>` and exits with 1 at the first wrong byte or unexpected error.

import Foundation
import Larder
import SeededData
import Synchronization
import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// A body that names its key in its first word and follows from its seed.
func makeBody(name: UInt64, seed: UInt64, length: Int) -> [UInt8] {
    var generator = SeededGenerator(seed: seed &+ name &* 31)
    var body: [UInt8] = withUnsafeBytes(of: name.littleEndian) { Array($0) }
    while body.count < length { withUnsafeBytes(of: generator.next()) { body += $0 } }
    return Array(body.prefix(max(8, length)))
}

func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = bytes.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
}

struct Bad: Error { let reason: String }

func length(_ generator: inout SeededGenerator) -> Int {
    switch Int.random(in: 0..<10, using: &generator) {
    case 0..<5: return Int.random(in: 8...2000, using: &generator)
    case 5..<8: return Int.random(in: 2000...20_000, using: &generator)
    default: return Int.random(in: 70_000...200_000, using: &generator)
    }
}

func verify(_ key: Key, _ name: UInt64, _ entry: Entry) throws {
    let bytes = try entry.body.bytes()
    if Digest.of(bytes) != entry.digest { throw Bad(reason: "\(key): bytes do not match the digest") }
    let found = bytes.withUnsafeBytes { UInt64(littleEndian: $0.loadUnaligned(as: UInt64.self)) }
    if found != name { throw Bad(reason: "\(key): body of \(found)") }
}

func mixed(_ store: Store, seed: UInt64, count: Int) throws {
    var generator = SeededGenerator(seed: seed)
    for step in 0..<count {
        let name = UInt64.random(in: 0..<400, using: &generator)
        let key = Key("http://worker.test/\(name)")
        do {
            switch Int.random(in: 0..<100, using: &generator) {
            case 0..<35:
                let body = makeBody(name: name, seed: generator.next() % 3, length: length(&generator))
                let lifetime: Lifetime = Bool.random(using: &generator) ? .never : .duration(.milliseconds(50))
                try store.put(body, for: key, PutOptions(lifetime: lifetime, tags: ["t\(name % 7)"]))
            case 35..<75:
                if let entry = try store.get(key) { try verify(key, name, entry) }
            case 75..<83:
                let body = makeBody(name: name, seed: UInt64(step), length: length(&generator))
                let writer = try store.writer(for: key)
                for start in stride(from: 0, to: body.count, by: 30_000) {
                    try writer.write(Array(body[start..<min(start + 30_000, body.count)]))
                }
                if Bool.random(using: &generator) { try writer.commit() } else { writer.cancel() }
            case 83..<93:
                try store.remove(key)
            case 93:
                try store.pin(key)
            case 94:
                try store.unpin(key)
            case 95:
                _ = try store.lease(key, for: .milliseconds(20))
            case 96:
                try store.remove(.tag("t\(name % 7)"))
            case 97:
                _ = try store.statistics()
            case 98:
                try store.flush()
            default:
                if Int.random(in: 0..<20, using: &generator) == 0 { try store.clear() }
            }
        } catch let error as LarderError where error.code == .noSpace {
            // Pins and other writers may leave no room for a moment; that is an answer, not a failure.
            continue
        }
    }
}

func durable(_ store: Store, seed: UInt64, count: Int) throws {
    var generator = SeededGenerator(seed: seed)
    for step in 0..<count {
        let name = seed &* 100_000 &+ UInt64(step)
        let key = Key("http://durable.test/\(name)")
        let size = Int.random(in: 0..<5, using: &generator) == 0 ? 80_000 : 500
        let body = makeBody(name: name, seed: name, length: size)
        try store.put(body, for: key, PutOptions(isPinned: true, durability: .durable))
        say("D \(key) \(Digest.of(body))")
    }
}

/// Batches that give all of 8 keys, half of them with bodies in files, the number of the round; without end.
func batches(_ store: Store) throws {
    for round in 0... {
        var batch = WriteBatch()
        for number in 0..<8 {
            let body = [UInt8](
                repeating: UInt8(truncatingIfNeeded: round), count: number % 2 == 0 ? 100 : 70_000 + number)
            batch.put(body, for: Key("k\(number)"))
        }
        for result in try store.write(batch, durability: .durable) where !result.isSuccess {
            throw Bad(reason: "\(result)")
        }
        if round < 10 { say("B \(round)") }
    }
}

/// Asks for a value that takes `milliseconds` to compute.
func compute(_ store: Store, milliseconds: Int) throws {
    try wait {
        let entry = try await store.value(for: "k") { _ in
            try await Task.sleep(for: .milliseconds(milliseconds))
            say("COMPUTED")
            return Computed([UInt8](repeating: 1, count: 1000))
        }
        say("VALUE \(entry?.body.length.bytes ?? -1)")
    }
}

/// Begins to compute a value, and never ends.
func claim(_ store: Store) {
    Task {
        _ = try await store.value(for: "k") { _ in
            say("COMPUTING")
            try await Task.sleep(for: .seconds(3600))
            return Computed([1])
        }
    }
    while true { pause() }
}

func readers(_ store: Store, threads: Int, milliseconds: Int) throws {
    try store.put(makeBody(name: 1, seed: 1, length: 100), for: "http://readers.test/")
    try store.flush()
    // SAFETY: under the lock.
    nonisolated(unsafe) var count = 0
    nonisolated(unsafe) var failure: (any Error)?
    let lock = NSLock()
    let group = DispatchGroup()
    let end = Date().addingTimeInterval(Double(milliseconds) / 1000)
    for _ in 0..<threads {
        group.enter()
        Thread.detachNewThread {
            do {
                while Date() < end {
                    let found = try store.withBody(of: "http://readers.test/") { span in
                        usleep(1000)
                        return span.byteCount
                    }
                    if found != 100 { throw Bad(reason: "a body of \(found ?? -1) bytes") }
                    lock.withLock { count += 1 }
                }
            } catch {
                lock.withLock { failure = error }
            }
            group.leave()
        }
    }
    group.wait()
    if let failure { throw failure }
    say("R \(count)")
}

func same(_ store: Store, seed: UInt64, count: Int) throws {
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<count {
        let name = UInt64.random(in: 0..<4, using: &generator)
        let key = Key("http://same.test/\(name)/\(UInt64.random(in: 0..<6, using: &generator))")
        switch Int.random(in: 0..<3, using: &generator) {
        case 0: try store.put(makeBody(name: name, seed: 7, length: name % 2 == 0 ? 90_000 : 900), for: key)
        case 1: try store.remove(key)
        default: if let entry = try store.get(key) { try verify(key, name, entry) }
        }
        if Int.random(in: 0..<8, using: &generator) == 0 { try store.flush() }
    }
}

func timeOpens(_ path: FilePath, _ count: Int) throws {
    var configuration = Configuration.ofWorker
    configuration.logger.logLevel = .critical
    let store = try Store(at: path, configuration)
    for number in 0..<count {
        try store.put(
            makeBody(name: UInt64(number), seed: 3, length: 100), for: Key("http://opens.test/\(number &* 7919)"))
    }
    try store.close()
    for (name, check) in [("trusted", Configuration.IndexCheck.whenInDoubt), ("walked", .always)] {
        configuration.indexCheck = check
        var times: [Duration] = []
        for _ in 0..<7 {
            let start = ContinuousClock.now
            let store = try Store(at: path, configuration)
            times.append(ContinuousClock.now - start)
            try store.close()
        }
        say("\(name): median of 7 opens \(times.sorted()[3]), least \(times.min()!)")
    }
    say(
        "\(count) entries, \(try FileManager.default.attributesOfItem(atPath: path.string + "/index/data.mdb")[.size] ?? 0) bytes of index"
    )
}

/// Puts `count` entries, looks each up twice, looks up as many that are not there, and removes one.
func tally(_ store: Store, seed: UInt64, count: Int) throws {
    for name in 0..<count {
        try store.put(makeBody(name: UInt64(name), seed: seed, length: 100), for: Key("\(seed)/\(name)"))
        if name == count / 2 { try store.flush() }
    }
    for name in 0..<count {
        guard try store.get(Key("\(seed)/\(name)")) != nil,
            try store.withBody(of: Key("\(seed)/\(name)"), { $0.byteCount }) == 100,
            try store.get(Key("none/\(name)")) == nil
        else { throw Bad(reason: "wrong answer for \(name)") }
    }
    try store.remove(Key("\(seed)/0"))
    try store.flush()
}

/// A store with a file of each kind in it; the process ends without closing it.
func makeEveryFile(_ path: FilePath) throws {
    var configuration = Configuration.ofWorker
    configuration.inlineThreshold = .kibibytes(1)
    configuration.verification = .always
    configuration.logger.logLevel = .critical
    let store = try Store(at: path, configuration)
    for name in 0..<4 { try store.put(makeBody(name: UInt64(name), seed: 1, length: 5000), for: Key("\(name)")) }
    try store.flush()
    // Its bytes go to quarantine/.
    let damaged = path.appending("blobs").appending(
        String(Digest.of(makeBody(name: 1, seed: 1, length: 5000)).hexadecimal.prefix(2))
    )
    .appending(Digest.of(makeBody(name: 1, seed: 1, length: 5000)).hexadecimal)
    truncate(damaged.string, 100)
    guard try store.get("1") == nil else { throw Bad(reason: "wrong bytes") }
    let writer = try store.writer(for: "staged")
    try writer.write(makeBody(name: 5, seed: 1, length: 200_000))
    try store.flush()
    say("OK")
    _exit(0)
}

/// Tries to open a store without the rights of root.
func expectRefusal(_ path: FilePath, _ user: uid_t) throws {
    if geteuid() == 0, setuid(user) != 0 { throw Bad(reason: "setuid failed") }
    do {
        try Store(at: path).close()
    } catch let error as LarderError {
        let isDenied = error.cause as? Errno == .permissionDenied
        return say("\(error.code) \(isDenied ? "permissionDenied" : "\(error.cause as Any)"): \(error.message)")
    }
    throw Bad(reason: "the store was opened")
}

/// Runs `body` in a task, and waits for it.
func wait(for body: @escaping @Sendable () async throws -> Void) throws {
    let outcome = Mutex<Result<Void, any Error>>(.success(()))
    let done = DispatchSemaphore(value: 0)
    Task.detached {
        do { try await body() } catch { outcome.withLock { $0 = .failure(error) } }
        done.signal()
    }
    done.wait()
    try outcome.withLock { $0 }.get()
}

func run() throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 5, let seed = UInt64(arguments[3]), let count = Int(arguments[4]) else {
        throw Bad(reason: "usage: LarderTestWorker STORE MODE SEED COUNT")
    }
    if arguments[2] == "freelist" {
        return try FreeListRun(store: FilePath(arguments[1]), gibibytes: count, seed: seed).run()
    }
    if arguments[2] == "opens" { return try timeOpens(FilePath(arguments[1]), count) }
    if arguments[2] == "reboot" {
        let run = RebootRun(directory: FilePath(arguments[1]), count: count)
        return try wait { try await run.run() }
    }
    if arguments[2] == "stream" {
        let run = StreamRun(store: FilePath(arguments[1]), mebibytes: count)
        return try wait { try await run.run() }
    }
    if arguments[2] == "umask" {
        umask(mode_t(seed))
        return try makeEveryFile(FilePath(arguments[1]))
    }
    if arguments[2] == "refused" { return try expectRefusal(FilePath(arguments[1]), uid_t(seed)) }
    if arguments[2] == "coherent" {
        return try CoherenceRun(path: FilePath(arguments[1]), number: Int(seed), count: count).run()
    }
    if arguments[2] == "pressure" {
        return try PressureRun(path: FilePath(arguments[1]), limit: count).run()
    }
    if arguments[2] == "halted" { return try runHalted(FilePath(arguments[1])) }
    if arguments[2] == "damage" {
        // The rounds from FIRST on: a run continues after a round that ended the process.
        let first = ProcessInfo.processInfo.environment["LARDER_FIRST_ROUND"].flatMap(Int.init) ?? 0
        let run = DamageRun(root: arguments[1], seed: seed, rounds: min(first, count)..<count)
        return try run.run()
    }
    var configuration = Configuration.ofWorker
    configuration.commitDelay = .milliseconds(2)
    configuration.logger.logLevel = .critical
    let store = try Store(at: FilePath(arguments[1]), configuration)
    say("READY")
    switch arguments[2] {
    case "mixed": try mixed(store, seed: seed, count: count)
    case "durable": try durable(store, seed: seed, count: count)
    case "batches": try batches(store)
    case "compute": try compute(store, milliseconds: count)
    case "claim": claim(store)
    case "progressHold": try ProgressRun(store: store, length: count).hold()
    case "progressWait": try ProgressRun(store: store, length: count).wait()
    case "progress": try ProgressRun(store: store, length: count).all()
    case "readers": try readers(store, threads: Int(seed), milliseconds: count)
    case "same": try same(store, seed: seed, count: count)
    case "collect": for _ in 0..<count { try store.collect(compact: true) }
    case "check":
        let report = try store.check()
        if !report.isClean {
            throw Bad(reason: report.violations.prefix(20).map(\.description).joined(separator: "; "))
        }
    case "move":
        // From beside the store, or from where the variable says.
        let source = ProcessInfo.processInfo.environment["LARDER_SOURCE"] ?? arguments[1] + "-source"
        try store.adopt(FilePath(source), for: "moved", method: .move)
        say("MOVED")
    case "hold":
        try store.withBody(of: "held") { _ in
            say("HELD")
            while true { pause() }
        }
    case "lease":
        let lease = try store.lease("k", for: .seconds(count))
        say("LEASED")
        withExtendedLifetime(lease) { while true { pause() } }
    case "leaseAndRelease": try store.lease("k", for: .seconds(count)).release()
    case "used":
        for key in ["a", "b", "c"] as [Key] { try store.put(Array("\(key)".utf8), for: key) }
        try store.put([1], for: "session", PutOptions(storagePolicy: .session))
        try store.flush()
        _ = try store.get("a")
        try store.flush()
        say("USED")
        while true { pause() }
    case "idle": while true { pause() }
    case "tally": try tally(store, seed: seed, count: count)
    case "tallyAndWait":
        try tally(store, seed: seed, count: count)
        say("TALLIED")
        while true { pause() }
    case "count": say("N \(try store.statistics().entryCount)")
    default: throw Bad(reason: "no mode \(arguments[2])")
    }
    try store.close()
}

do {
    try run()
    say("OK")
} catch {
    say("BAD \(error)")
    exit(1)
}
