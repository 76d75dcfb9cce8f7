import Foundation

/// What is on a disk before a recording begins.
struct DiskImage {
    typealias Names = [UInt64: [String: (inode: UInt64, isDirectory: Bool)]]

    let root: UInt64
    private(set) var names: Names = [:]
    private(set) var contents: [UInt64: [UInt8]] = [:]

    /// Reads the directory at `path`. The recording has to be made on it, as files are known by their inodes.
    init(_ path: String) throws {
        root = try Self.status(path).inode
        try read(path, root)
    }

    private mutating func read(_ path: String, _ inode: UInt64) throws {
        names[inode] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: path) {
            let child = path + "/" + name
            let (number, isDirectory) = try Self.status(child)
            names[inode]?[name] = (number, isDirectory)
            if isDirectory {
                try read(child, number)
            } else {
                contents[number] = FileManager.default.contents(atPath: child).map(Array.init) ?? []
            }
        }
    }

    private static func status(_ path: String) throws -> (inode: UInt64, isDirectory: Bool) {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw Failure("lstat \(path): \(errno)") }
        return (UInt64(status.st_ino), status.st_mode & S_IFMT == S_IFDIR)
    }
}
