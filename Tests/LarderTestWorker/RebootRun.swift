import Foundation
import Larder
import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// What the first open after a start of the machine takes, and the lookups that follow it: of a store that was closed,
/// and of one whose machine crashed, which is modelled by a copy of the directory of an open store. Both with the index
/// out of memory.
struct RebootRun {
    let directory: FilePath
    let count: Int

    private var closed: FilePath { directory.appending("closed") }
    private var crashed: FilePath { directory.appending("crashed") }

    func run() async throws {
        try FileManager.default.createDirectory(atPath: directory.string, withIntermediateDirectories: true)
        try fill()
        for (name, path, boot) in [
            ("same run of the machine", closed, 1), ("after a clean end", closed, 2), ("after a crash", crashed, 3),
            ("closed since", crashed, 4),
        ] as [(String, FilePath, UInt64)] {
            try await measure(name, path, boot)
        }
    }

    private func configuration(_ boot: UInt64) -> Configuration {
        var configuration = Configuration()
        configuration.bootIdentity = boot
        configuration.logger.logLevel = .critical
        return configuration
    }

    private func key(_ number: Int) -> Key { Key("http://reboot.test/\(number &* 7919)") }

    private func fill() throws {
        let store = try Store(at: closed, configuration(1))
        for number in 0..<count {
            try store.put(makeBody(name: UInt64(number), seed: 3, length: 100), for: key(number))
        }
        for number in 0..<10 {
            try store.put(makeBody(name: UInt64(number), seed: 4, length: 1 << 20), for: Key("file \(number)"))
        }
        try store.flush()
        try FileManager.default.copyItem(atPath: closed.string, toPath: crashed.string)
        // Not a copy of a store, but what a crash leaves: the word of the ledger that says where the store lies.
        let ledger = try FileHandle(forUpdating: URL(fileURLWithPath: crashed.appending("index/ledger").string))
        try ledger.seek(toOffset: 509 * 8)
        try ledger.write(contentsOf: Data(count: 8))
        try ledger.close()
        try store.close()
    }

    /// Has the file read from the disk again.
    private func forget(_ path: FilePath) {
        #if os(Linux)
            let file = open(path.appending("index").appending("data.mdb").string, O_RDONLY)
            fdatasync(file)
            posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED)
            close(file)
        #endif
    }

    private func measure(_ name: String, _ path: FilePath, _ boot: UInt64) async throws {
        forget(path)
        let clock = ContinuousClock()
        var opened: Store?
        let opening = try clock.measure { opened = try Store(at: path, configuration(boot)) }
        guard let store = opened else { return }
        let jobs = Store.pooledJobs
        var hits = 0
        let gets = try await clock.measure {
            for number in 0..<1000 where try await store.get(key(number * (count / 1000))) != nil { hits += 1 }
        }
        let used = Store.pooledJobs - jobs
        var files = 0
        for number in 0..<10 where try await store.get(Key("file \(number)")) != nil { files += 1 }
        let closing = try clock.measure { try store.close() }
        say(
            "\(name): open \(opening), 1000 async gets \(gets) with \(used) pool jobs, \(hits) hits, \(files) of 10 files, "
                + "close \(closing)")
    }
}
