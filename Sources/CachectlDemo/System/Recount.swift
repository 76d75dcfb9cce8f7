import CachectlCore
import SystemPackage

/// The size of a directory on disk, measured as `du` does, independently of the store.
enum Recount {
    /// The sum of `st_blocks` x 512 over the regular files below `path`. Skips files that are removed meanwhile.
    static func allocated(_ path: FilePath) throws -> Int64 {
        var walk = FileTreeWalk(path)
        var sum: Int64 = 0
        // A file that is renamed during the walk is found twice and counts once.
        var seen: Set<UInt64> = []
        try walk.run { if seen.insert($0.inode).inserted { sum += $0.allocated } }
        return sum
    }
}
