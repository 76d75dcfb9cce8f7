import Foundation
import Larder
import SystemPackage

/// The time from `Store(at:)` to the first hit with very many entries: what a restart costs.
struct OpenYardstick: Codable {
    let entries: Int
    /// Bytes of `data.mdb` on disk.
    let indexBytes: Int64
    let fillSeconds: Double
    /// Nanoseconds for `Store(at:)`, and until the first `get` has returned.
    var warm = Times()
    /// The same with no page of the store in memory. Nil where the system cannot be asked for that.
    var cold: Times?
    /// The same after the process that wrote was killed.
    var killed: Times?
    /// The same after two processes in a row were killed, the second one before it had walked over the index.
    var killedTwice: Times?

    struct Times: Codable {
        var open: UInt64 = 0
        var firstHit: UInt64 = 0
    }

    static let bodyLength = 32

    static func measure(_ entries: Int, _ path: FilePath, seed: UInt64) throws -> OpenYardstick {
        let seconds = try Ticks.seconds { try fill(path, entries, seed: seed) }
        let data = path.appending("index").appending("data.mdb")
        var result = OpenYardstick(
            entries: entries, indexBytes: FileTree.allocatedBytes(path.appending("index")), fillSeconds: seconds)
        // Once to have the pages that an open reads in memory.
        _ = try time(path, entries)
        result.warm = try time(path, entries)
        if forget(data) { result.cold = try time(path, entries) }
        putAndDie(path, entries)
        if forget(data) { result.killed = try time(path, entries) }
        putAndDie(path, entries)
        putAndDie(path, entries)
        if forget(data) { result.killedTwice = try time(path, entries) }
        return result
    }

    private static func putAndDie(_ path: FilePath, _ entries: Int) {
        // Ends with an error, as it is killed.
        _ = try? Subprocess.run(
            Subprocess.ownExecutable, ["put-and-die", "--store", path.string, "--entry", "\(entries)"])
    }

    private static func fill(_ path: FilePath, _ count: Int, seed: UInt64) throws {
        let store = try Store(at: path)
        var generator = Generator(seed: seed)
        var next = 0
        while next < count {
            try Interruption.check()
            var batch = WriteBatch()
            for index in next..<min(next + 16_384, count) {
                let words = (generator.next(), generator.next(), generator.next(), generator.next())
                batch.put(withUnsafeBytes(of: words) { Array($0) }, for: Key(bytes: Name.bytes(index)))
            }
            next += batch.count
            try store.write(batch)
            if next % (16_384 * 64) == 0 { Progress.say("\(Render.count(next)) of \(Render.count(count)) entries") }
        }
        try store.close()
    }

    private static func time(_ path: FilePath, _ entries: Int) throws -> Times {
        let start = Ticks.now()
        let store = try Store(at: path)
        let opened = Ticks.now()
        let entry = try store.get(Key(bytes: Name.bytes(entries / 2)))
        let found = Ticks.now()
        guard entry?.body.length.bytes == Int64(bodyLength) else { throw BenchError("the first get found nothing") }
        try store.close()
        return Times(open: opened - start, firstHit: found - start)
    }

    /// Drops the pages of a file from memory; false where that is not possible. posix_fadvise(2).
    private static func forget(_ file: FilePath) -> Bool {
        #if os(Linux)
            let descriptor = file.withPlatformString { open($0, O_RDONLY | O_CLOEXEC) }
            guard descriptor >= 0 else { return false }
            defer { close(descriptor) }
            // Only clean pages can be dropped.
            return fdatasync(descriptor) == 0 && posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED) == 0
        #else
            return false
        #endif
    }
}
