import CachectlCore
import SystemPackage

/// What a directory takes on disk, counted as `du` does and without asking the store.
enum Recount {
    /// `st_blocks` x 512 summed over the regular files below `path`. Files that vanish meanwhile are left out.
    static func allocated(_ path: FilePath) throws -> Int64 {
        var walk = TreeWalk(path)
        var sum: Int64 = 0
        // A file renamed during the walk is met twice and counts once.
        var seen: Set<UInt64> = []
        try walk.run { if seen.insert($0.inode).inserted { sum += $0.allocated } }
        return sum
    }
}
