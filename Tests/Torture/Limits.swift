import Foundation
import Larder
import Locks
import SystemPackage

/// Workers whose process, file system or user is limited while a store is open. Each lifts the limit and continues.
enum Limits {
    static let durable = PutOptions(durability: .durable)
    private static let pinned = PutOptions(isPinned: true, durability: .durable)

    static func run(_ mode: String, _ path: String) throws {
        switch mode {
        case "file-size": try fileSize(path)
        case "full-disk": try fullDisk(path)
        case "crowded-disk": try crowdedDisk(path)
        case "crowding": try crowd(path, "\(getpid())")
        case "descriptors": try descriptors(path)
        case "memory": try memory(path)
        case "foreign": try foreign(path)
        case "permission": try permission(path)
        case "read-only": try readOnly(path)
        default: throw Failure("no mode \(mode)")
        }
    }

    /// RLIMIT_FSIZE: no file may be longer than `data.mdb` is now.
    private static func fileSize(_ path: String) throws {
        signal(SIGXFSZ, SIG_IGN)
        let store = try Store(at: FilePath(path), Workload.configuration)
        try fill(store, "before", 20)
        var status = stat()
        stat(path + "/index/data.mdb", &status)
        try limited(RLIMIT_FSIZE, to: UInt64(status.st_size) + 65_536) {
            try expect(.noSpace) {
                for number in 0..<400 {
                    try store.put(Workload.body("l\(number)", seed: 1, length: 3000), for: Key("l\(number)"), durable)
                }
            }
            try expect(.noSpace) {
                try store.put([UInt8](repeating: 7, count: Int(status.st_size) + 200_000), for: "file", durable)
            }
            try readBack(store, "before", 20)
        }
        try review(store, "before", 20)
    }

    /// A file system of 6 MiB that is full, with entries that stay.
    private static func fullDisk(_ path: String) throws {
        let ballast = path + "-ballast"
        _ = FileManager.default.createFile(atPath: ballast, contents: Data(count: 512 << 10))
        let store = try Store(at: FilePath(path), Workload.configuration)
        try fill(store, "before", 20)
        for number in 0..<20 { try store.pin(Key("before/\(number)")) }
        for length in [3000, 60_000, 1_200_000] {
            try expect(.noSpace) {
                for number in 0..<4000 {
                    let name = "l\(length)/\(number)"
                    try store.put(Workload.body(name, seed: 1, length: length), for: Key(name), pinned)
                }
            }
        }
        try readBack(store, "before", 20)
        // The store cannot rely on the space that was free before the other program took it: some of it comes back.
        unlink(ballast)
        try store.remove(.prefix("l"))
        try store.collect(compact: true)
        try review(store, "before", 20)
    }

    /// A file system of 8 MiB that others fill, and a store without a budget on it: entries give way, one for one.
    private static func crowdedDisk(_ path: String) throws {
        let store = try Store(at: FilePath(path))
        let length = 300_000
        @Sendable func put(_ name: String) throws {
            try store.put(Workload.body(name, seed: 1, length: length), for: Key(name))
        }
        let failures = Mutex<[String]>([])
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            for number in 0..<30 {
                do { try put("\(thread)/\(number)") } catch { failures.withLock { $0.append("\(error)") } }
            }
        }
        try store.flush()
        if let first = failures.withLock({ $0 }).first { throw Failure("a put of several failed: \(first)") }
        var count = try store.statistics().entryCount
        if count < 16 { throw Failure("\(count) entries of 300 kB are left on 8 MiB") }
        // Others take what is left: not a page for the index.
        fill(path + "-others")
        try put("more")
        try store.flush()
        count -= try store.statistics().entryCount
        if count > 2 { throw Failure("one put of 300 kB displaced \(count + 1) entries of as much") }
        let names = (0..<4).flatMap { thread in (0..<30).map { "\(thread)/\($0)" } } + ["more"]
        for name in names { try store.pin(Key(name)) }
        fill(path + "-others")
        count = try store.statistics().entryCount
        try expect(.noSpace) { try put("refused") }
        if try store.statistics().entryCount != count { throw Failure("a refused put displaced pinned entries") }
        for name in names { try store.unpin(Key(name)) }
        fill(path + "-others")
        try put("again")
        try mixed(store, path)
        fill(path + "-others")
        try store.remove(.all)
        try store.flush()
        unlink(path + "-others")
        let report = try store.check()
        if !report.isClean { throw Failure("\(report.violations)") }
        try store.close()
    }

    /// Small bodies in the index and files, of three processes; then one step after the other without a free page.
    private static func mixed(_ store: Store, _ path: String) throws {
        try store.remove(.all)
        unlink(path + "-others")
        let others = try (0..<2).map {
            try Child([path, "crowding", "1", "0", "0"], output: path + "-out-\($0)")
        }
        try crowd(path, "own")
        for other in others { if let complaint = other.wait() { throw Failure("a process beside it: \(complaint)") } }
        for number in 0..<2 { unlink(path + "-out-\(number)") }
        func keys() throws -> [Key] {
            var keys: [Key] = []
            try store.forEach { keys.append($0.key) }
            return keys
        }
        fill(path + "-others")
        try store.put(Workload.body("more", seed: 1, length: 300_000), for: "more")
        try store.flush()
        fill(path + "-others")
        guard let last = try keys().last else { throw Failure("nothing is left") }
        try store.remove(last, durability: .durable)
        fill(path + "-others")
        for key in try keys() { try store.pin(key) }
        fill(path + "-others")
        for key in try keys() { try store.unpin(key, durability: .durable) }
        fill(path + "-others")
        try store.setBudget(Budget(bytes: 2_000_000))
        try store.setBudget(.unlimited)
    }

    /// Puts 600 small bodies and 30 of 300 kB from several threads.
    private static func crowd(_ path: String, _ name: String) throws {
        let store = try Store(at: FilePath(path))
        let failures = Mutex<[String]>([])
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            for number in 0..<150 {
                let key = "\(name)/\(thread)/\(number)"
                let length = number % 20 == 0 ? 300_000 : 1000 + number * 20
                do { try store.put(Workload.body(key, seed: 1, length: length), for: Key(key)) } catch {
                    failures.withLock { $0.append("\(error)") }
                }
            }
        }
        do { try store.flush() } catch { failures.withLock { $0.append("\(error)") } }
        try store.close()
        if let first = failures.withLock({ $0 }).first { throw Failure("a put of mixed ones failed: \(first)") }
    }

    /// Writes a file until the file system is full to the last page.
    private static func fill(_ path: String) {
        let file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        defer { close(file) }
        let page = [UInt8](repeating: 0, count: 4096)
        while write(file, page, page.count) > 0 {}
    }

    /// RLIMIT_NOFILE: no descriptor is left.
    private static func descriptors(_ path: String) throws {
        let store = try Store(at: FilePath(path), Workload.configuration)
        try fill(store, "before", 20)
        try store.put(Workload.body("file", seed: 1, length: 50_000), for: "file", durable)
        let next = dup(0)
        close(next)
        var taken: [Int32] = []
        defer { for descriptor in taken { close(descriptor) } }
        /// Takes what is left and tries; again if a thread of the store has given one back meanwhile.
        func expectFailure(_ body: () throws -> Void) throws {
            for _ in 0..<20 {
                while case let descriptor = dup(0), descriptor >= 0 { taken.append(descriptor) }
                do {
                    try body()
                } catch let error as LarderError {
                    if error.code == .io { return }
                    throw Failure("io was expected: \(error)")
                }
            }
            throw Failure("io was expected, nothing failed")
        }
        try limited(RLIMIT_NOFILE, to: UInt64(next)) {
            try readBack(store, "before", 20)
            try expectFailure { _ = try store.get("file") }
            try expectFailure { try store.put(Workload.body("f2", seed: 1, length: 50_000), for: "f2", durable) }
            try expectFailure { _ = try store.check() }
            try expectFailure { try Store(at: FilePath(path + "-2"), Workload.configuration).close() }
            try store.put([1], for: "inline", durable)
        }
        guard try store.get("file") != nil else { throw Failure("the file is not there afterwards") }
        try review(store, "before", 20)
    }

    /// RLIMIT_AS: the map gets smaller, then the open fails. Darwin accepts the limit but does not enforce it.
    private static func memory(_ path: String) throws {
        #if !canImport(Darwin)
            try Store(at: FilePath(path), Workload.configuration).close()
            try limited(RLIMIT_AS, to: 16 << 30) {
                let store = try Store(at: FilePath(path), Workload.configuration)
                try fill(store, "before", 50)
                try store.close()
            }
            try limited(RLIMIT_AS, to: 1 << 30) {
                try expect(.io) { _ = try Store(at: FilePath(path), Workload.configuration) }
            }
            try review(try Store(at: FilePath(path), Workload.configuration), "before", 50)
        #endif
    }

    /// Another user's store: root makes it, an unprivileged user tries to open it.
    private static func foreign(_ path: String) throws {
        let store = try Store(at: FilePath(path), Workload.configuration)
        try fill(store, "before", 20)
        try store.close()
        seteuid(65_534)
        try expect(.io) { _ = try Store(at: FilePath(path), Workload.configuration) }
        var configuration = Workload.configuration
        configuration.isReadOnly = true
        try expect(.io) { _ = try Store(at: FilePath(path), configuration) }
        seteuid(0)
        try review(try Store(at: FilePath(path), Workload.configuration), "before", 20)
    }

    /// Directories of the open store lose their modes.
    private static func permission(_ path: String) throws {
        chown(URL(fileURLWithPath: path).deletingLastPathComponent().path, 65_534, 65_534)
        if geteuid() == 0 { seteuid(65_534) }
        let store = try Store(at: FilePath(path), Workload.configuration)
        try fill(store, "before", 20)
        for name in ["staging", "blobs", "trash"] {
            chmod("\(path)/\(name)", 0o500)
            let body = Workload.body(name, seed: 1, length: 50_000)
            switch name {
            case "staging": try expect(.io) { try store.put(body, for: "f", durable) }
            case "blobs":
                // Committed, and published when that is possible again.
                try store.put(body, for: "f", durable)
                guard try store.get("f") != nil else { throw Failure("not readable from staging/") }
            default:
                try expect(.io) {
                    try store.remove("f")
                    try store.flush()
                }
            }
            chmod("\(path)/\(name)", 0o700)
        }
        try review(store, "before", 20)
    }

    /// The file system is mounted read-only the next time.
    private static func readOnly(_ path: String) throws {
        try prepareReadOnly(path)
        let place = URL(fileURLWithPath: path).deletingLastPathComponent().path
        try mount("-o", "remount,ro", place)
        try expect(.io) { _ = try Store(at: FilePath(path), Workload.configuration) }
        var configuration = Workload.configuration
        configuration.isReadOnly = true
        do {
            let reader = try Store(at: FilePath(path), configuration)
            try readBack(reader, "before", 20)
            try expect(.readOnly) { try reader.put([1], for: "k") }
            try reader.close()
        }
        try mount("-o", "remount,rw", place)
        try review(try Store(at: FilePath(path), Workload.configuration), "before", 20)
    }

    /// A store lets go of its mappings when the object goes.
    private static func prepareReadOnly(_ path: String) throws {
        let store = try Store(at: FilePath(path), Workload.configuration)
        try fill(store, "before", 20)
        try store.close()
    }

    // MARK: Parts

    static func mount(_ arguments: String...) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["mount"] + arguments
        try process.run()
        process.waitUntilExit()
        if process.terminationStatus != 0 { throw Failure("mount \(arguments) failed") }
    }

    #if canImport(Glibc)
        private typealias Resource = __rlimit_resource
    #else
        private typealias Resource = Int32
    #endif

    private static func limited(_ kind: Resource, to limit: UInt64, _ body: () throws -> Void) throws {
        #if canImport(Glibc)
            let resource = __rlimit_resource_t(kind.rawValue)
        #else
            let resource = kind
        #endif
        var old = rlimit()
        getrlimit(resource, &old)
        var new = old
        new.rlim_cur = rlim_t(limit)
        setrlimit(resource, &new)
        defer { setrlimit(resource, &old) }
        try body()
    }

    private static func expect(_ code: LarderError.Code, _ body: () throws -> Void) throws {
        do {
            try body()
        } catch let error as LarderError {
            if error.code == code { return }
            throw Failure("\(code) was expected: \(error)")
        }
        throw Failure("\(code) was expected, nothing failed")
    }

    private static func fill(_ store: Store, _ prefix: String, _ count: Int) throws {
        for number in 0..<count {
            let name = "\(prefix)/\(number)"
            try store.put(Workload.body(name, seed: 3, length: number * 200), for: Key(name), durable)
        }
    }

    private static func readBack(_ store: Store, _ prefix: String, _ count: Int) throws {
        for number in 0..<count {
            let name = "\(prefix)/\(number)"
            let bytes = try store.withBody(of: Key(name)) { $0.byteCount }
            if bytes != Workload.body(name, seed: 3, length: number * 200).count { throw Failure("\(name) is lost") }
        }
    }

    /// With the limit lifted everything works, before and after reopening.
    private static func review(_ store: Store, _ prefix: String, _ count: Int) throws {
        let path = store.path
        _ = try? store.flush()
        for length in [100, 50_000, 1_100_000] {
            try store.put(Workload.body("after", seed: 5, length: length), for: "after", durable)
            guard try store.get("after") != nil else { throw Failure("a put afterwards is lost") }
        }
        try readBack(store, prefix, count)
        for opened in [store, nil] {
            let store = try opened ?? Store(at: path, Workload.configuration)
            let report = try store.check()
            if !report.isClean { throw Failure(report.violations.map(\.description).joined(separator: "; ")) }
            let (reported, counted) = (try store.statistics().allocatedBytes.bytes, StoreReview.recount(path.string))
            if reported != counted { throw Failure("\(reported) bytes reported, \(counted) counted") }
            try store.close()
        }
    }
}
