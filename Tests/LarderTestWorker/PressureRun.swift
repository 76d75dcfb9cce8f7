import Foundation
import Larder
import SystemPackage

/// Fills a memory tier, and then uses up the memory of the cgroup that it is in, until the tier lets go of something.
struct PressureRun {
    let path: FilePath
    /// The memory that there is, in MiB.
    let limit: Int

    func run() throws {
        // A file that does not fit beside the tier, on a disk. The cgroup holds none of its pages yet.
        let large = "/var/tmp/larder-test-\(getpid())"
        let file = try FileDescriptor.open(
            FilePath(large), .readWrite, options: .create, permissions: .ownerReadWrite)
        unlink(large)
        let piece = [UInt8](repeating: 1, count: 1 << 20)
        for number in 0..<limit { _ = try file.writeAll(toAbsoluteOffset: Int64(number) << 20, piece) }
        fsync(file.rawValue)
        #if !canImport(Darwin)
            posix_fadvise(file.rawValue, 0, 0, POSIX_FADV_DONTNEED)
        #endif
        if let group = ProcessInfo.processInfo.environment["LARDER_TEST_CGROUP"] {
            let group = try FileDescriptor.open(FilePath(group), .writeOnly)
            _ = try group.closeAfter { try group.writeAll("\(getpid())".utf8) }
        }
        let store = try filled()
        let start = ContinuousClock.now
        // The pages of the file come and go. Those that were read twice in a row are missed when they are gone.
        let began = stalled
        while try store.statistics().memoryTier.bytes > .mebibytes(40) {
            // A fast disk makes no one wait.
            if ContinuousClock.now - start > .seconds(30) {
                if stalled - began > 10_000_000 { throw Bad(reason: "the tier holds everything after many stalls") }
                say("CALM")
                return try store.close()
            }
            DispatchQueue.concurrentPerform(iterations: 8) { _ in
                var piece = [UInt8](repeating: 0, count: 64 << 10)
                for _ in 0..<500 {
                    let offset = Int64.random(in: 0..<Int64(limit) * 16) << 16
                    for _ in 0..<2 { _ = pread(file.rawValue, &piece, piece.count, off_t(offset)) }
                }
            }
        }
        try file.close()
        say("SHRUNK")
        try store.close()
    }

    /// Microseconds for which some task of the machine has waited for memory.
    private var stalled: Int {
        let line = (try? String(contentsOfFile: "/proc/pressure/memory", encoding: .utf8))?.split(separator: "\n").first
        return line?.split(separator: "=").last.flatMap { Int($0) } ?? 0
    }

    private func filled() throws -> Store {
        var configuration = Configuration()
        configuration.logger.logLevel = .critical
        configuration.memoryLimit = .mebibytes(64)
        configuration.keepsBodiesInMemory = true
        let store = try Store(at: path, configuration)
        for number in 0..<48 {
            let key = Key("\(number)")
            try store.put([UInt8](repeating: UInt8(number), count: 1 << 20), for: key, PutOptions(durability: .durable))
            _ = try store.get(key)?.body.bytes()
        }
        return store
    }
}
