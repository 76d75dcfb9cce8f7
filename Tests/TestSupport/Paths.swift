import Foundation
import SystemPackage

/// A path for a store that does not exist yet, in memory where the system has such a place: tests are not about the disk.
public func temporaryStorePath() -> FilePath {
    let parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : NSTemporaryDirectory()
    return FilePath(parent).appending("larder-test-\(UUID().uuidString)")
}

/// Removes a directory and what is in it.
public func removeTree(_ path: FilePath) {
    try? FileManager.default.removeItem(atPath: path.string)
}

/// Sum of `st_blocks` x 512 over the regular files below `path`; files that vanish meanwhile are passed over.
public func recount(_ path: FilePath) -> Int64 {
    var seen = Set<UInt64>()
    return recount(path, &seen)
}

/// Each file once, even if it is renamed from one directory to another between two looks.
private func recount(_ path: FilePath, _ seen: inout Set<UInt64>) -> Int64 {
    var sum: Int64 = 0
    guard let directory = opendir(path.string) else { return 0 }
    defer { closedir(directory) }
    while let item = readdir(directory) {
        let name = withUnsafePointer(to: &item.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name == "." || name == ".." { continue }
        var status = stat()
        let child = path.appending(name)
        guard lstat(child.string, &status) == 0 else { continue }
        if status.st_mode & S_IFMT == S_IFDIR {
            sum += recount(child, &seen)
        } else if status.st_mode & S_IFMT == S_IFREG, seen.insert(UInt64(status.st_ino)).inserted {
            sum += Int64(status.st_blocks) * 512
        }
    }
    return sum
}

/// SplitMix64: the same numbers for the same seed.
public struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    /// Starts the sequence of `seed`.
    public init(seed: UInt64) { state = seed }

    /// The next number.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
