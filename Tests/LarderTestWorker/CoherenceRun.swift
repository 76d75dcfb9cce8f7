import Foundation
import Larder
import LarderValues
import SystemPackage

/// Overwrites and removes keys that other processes read, and reads theirs, with a memory tier: once a version was
/// acknowledged to a reader, it never sees an earlier one.
///
/// A key has one writer. What it has committed it notes in a file, 8 bytes a key, where readers look before a lookup.
struct CoherenceRun {
    let path: FilePath
    /// 0 ..< 8.
    let number: Int
    let count: Int

    private static let processes = 8
    private static let keys = 16

    func run() throws {
        var configuration = Configuration.ofWorker
        configuration.logger.logLevel = .critical
        configuration.commitDelay = .milliseconds(1)
        configuration.inlineThreshold = .kibibytes(4)
        configuration.memoryLimit = .mebibytes(1)
        configuration.keepsBodiesInMemory = true
        let store = try Store(at: path, configuration)
        let acknowledged = try FileDescriptor.open(FilePath(path.string + "-acknowledged"), .readWrite)
        let decoded = store.values(of: UInt64.self, codec: VersionCodec())
        say("READY")
        var generator = SystemRandomNumberGenerator()
        var versions: [Int: UInt64] = [:]
        for step in 0..<count {
            let own = Int.random(in: 0..<Self.keys / Self.processes, using: &generator) * Self.processes + number
            if step % 8 == 0 {
                let version = versions[own, default: 0] + 1
                versions[own] = version
                if version % 5 == 0 {
                    try store.remove(key(own))
                } else {
                    try store.put(body(version), for: key(own))
                }
                // Other processes see it now.
                try store.flush()
                _ = try withUnsafeBytes(of: version) { try acknowledged.writeAll(toAbsoluteOffset: Int64(own * 8), $0) }
            }
            let other = Int.random(in: 0..<Self.keys, using: &generator)
            var seen: UInt64 = 0
            _ = try withUnsafeMutableBytes(of: &seen) {
                try acknowledged.read(fromAbsoluteOffset: Int64(other * 8), into: $0)
            }
            if step % 2 == 0 {
                guard let version = try decoded.get(key(other)) else { continue }
                if version < seen { throw Bad(reason: "\(key(other)): value \(version) after \(seen)") }
                continue
            }
            guard let bytes = try store.get(key(other))?.body.bytes() else { continue }
            let version = bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
            if version < seen { throw Bad(reason: "\(key(other)): version \(version) after \(seen)") }
            if bytes != body(version) { throw Bad(reason: "\(key(other)): a body of version \(version) is damaged") }
        }
        say("\(try store.statistics().memoryTier.hits > 0 ? "HITS" : "NONE")")
        try store.close()
    }

    private func key(_ number: Int) -> Key { Key("http://coherent.test/\(number)") }

    /// Of 100 B, in the index, or in a file.
    private func body(_ version: UInt64) -> [UInt8] {
        let length = [100, 20_000, 50_000][Int(version % 3)]
        let filler = [UInt8](repeating: UInt8(truncatingIfNeeded: version), count: length)
        return withUnsafeBytes(of: version) { Array($0) } + filler
    }
}

/// The version of a body.
private struct VersionCodec: ValueCodec, Hashable {
    func encode(_ value: UInt64) -> [UInt8] { withUnsafeBytes(of: value) { Array($0) } }
    func decode(_ bytes: RawSpan) -> UInt64 { bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) } }
}
