import SystemPackage

/// Whole directories.
enum FileTree {
    /// mkdir(2); succeeds if it exists.
    static func makeDirectory(_ path: FilePath) throws {
        if path.withPlatformString({ mkdir($0, 0o700) }) != 0, errno != EEXIST {
            throw BenchError.system("mkdir", "\(path)")
        }
    }

    /// Removes `path` and all in it. Links are removed, not followed.
    static func remove(_ path: FilePath) {
        for name in names(in: path) {
            let child = path.appending(name)
            if child.withPlatformString({ unlink($0) }) != 0 { remove(child) }
        }
        _ = path.withPlatformString { rmdir($0) }
    }

    /// `st_blocks` x 512 summed over every regular file below `path`, each inode once: a walk sees a file that is
    /// renamed meanwhile twice.
    static func allocatedBytes(_ path: FilePath) -> Int64 {
        var seen: Set<UInt64> = []
        var sum: Int64 = 0
        func walk(_ path: FilePath) {
            for name in names(in: path) {
                let child = path.appending(name)
                var status = stat()
                guard child.withPlatformString({ lstat($0, &status) }) == 0 else { continue }
                if status.st_mode & S_IFMT == S_IFDIR {
                    walk(child)
                } else if status.st_mode & S_IFMT == S_IFREG, seen.insert(UInt64(status.st_ino)).inserted {
                    sum += Int64(status.st_blocks) * 512
                }
            }
        }
        walk(path)
        return sum
    }

    /// Syncs every file system, because Swift has no syncfs(2). sync(2) waits on Linux; where it does not, files may be
    /// written back later than expected.
    static func syncAll() { sync() }

    private static func names(in path: FilePath) -> [String] {
        guard let stream = path.withPlatformString({ opendir($0) }) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}
