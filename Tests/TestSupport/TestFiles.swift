import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Helpers that create, read, damage and count files without the code under test.
public enum TestFiles {
    /// Where tests keep their stores: memory, where the system has such a directory, as they are not about the disk.
    public static let root: FilePath = {
        if let set = getenv("LARDER_TEST_DIRECTORY").map({ String(cString: $0) }), !set.isEmpty { return FilePath(set) }
        if access("/dev/shm", W_OK | X_OK) == 0 { return "/dev/shm" }
        return FilePath(getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp")
    }()

    /// A fresh empty directory.
    public static func makeDirectory() throws -> FilePath {
        var template = Array(root.appending("larder-test-XXXXXX").string.utf8CString)
        guard mkdtemp(&template) != nil else { throw Errno(rawValue: errno) }
        return FilePath(String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
    }

    /// Removes a directory and what is in it.
    public static func remove(_ path: FilePath) { remove(path.string) }

    // Walks join strings: in a debug build `FilePath.appending` took half of the time of all tests.
    private static func remove(_ path: String) {
        guard isDirectory(path) else {
            unlink(path)
            return
        }
        for name in names(in: path) { remove(path + "/" + name) }
        rmdir(path)
    }

    /// The names in a directory, sorted; none if there is no such directory.
    public static func names(in path: FilePath) -> [String] { names(in: path.string) }

    fileprivate static func names(in path: String) -> [String] {
        guard let stream = opendir(path) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let item = readdir(stream) {
            let name = withUnsafePointer(to: &item.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    /// Every regular file under a directory, relative to it, sorted.
    public static func tree(_ path: FilePath) -> [String] {
        var files: [String] = []
        for name in names(in: path) {
            let child = path.appending(name)
            if isDirectory(child) {
                files += tree(child).map { name + "/" + $0 }
            } else {
                files.append(name)
            }
        }
        return files.sorted()
    }

    /// lstat(2); nil if there is no such file.
    public static func status(_ path: FilePath) -> stat? { status(path.string) }

    fileprivate static func status(_ path: String) -> stat? {
        var result = stat()
        return lstat(path, &result) == 0 ? result : nil
    }

    /// True if there is something under that name.
    public static func exists(_ path: FilePath) -> Bool { status(path) != nil }

    /// True if it is a directory itself.
    public static func isDirectory(_ path: FilePath) -> Bool { isDirectory(path.string) }

    private static func isDirectory(_ path: String) -> Bool {
        status(path).map { $0.st_mode & S_IFMT == S_IFDIR } ?? false
    }

    /// All bytes of a file.
    public static func read(_ path: FilePath) throws -> [UInt8] {
        let file = try FileDescriptor.open(path, .readOnly)
        return try file.closeAfter {
            let size = Int(try file.seek(offset: 0, from: .end))
            return try [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
                let raw = UnsafeMutableRawBufferPointer(buffer)
                while count < size {
                    let step = try file.read(
                        fromAbsoluteOffset: Int64(count), into: UnsafeMutableRawBufferPointer(rebasing: raw[count...]))
                    if step == 0 { break }
                    count += step
                }
            }
        }
    }

    /// Copies a directory and what is in it: what a store's directory looks like to the next start of the machine if
    /// the power fails now and everything written so far is on disk. Locks are not copied.
    /// - Parameter isCopy: true keeps the word by which the store recognises that it is a copy.
    public static func copy(_ path: FilePath, to copy: FilePath, isCopy: Bool = false) throws {
        try copyContents(path, to: copy)
        let ledger = copy.appending("index/ledger")
        if !isCopy, exists(ledger) { try forgetPlace(ledger) }
    }

    /// Zeroes the word of the ledger that says where the store is.
    public static func forgetPlace(_ ledger: FilePath) throws {
        let file = try FileDescriptor.open(ledger, .readWrite)
        _ = try file.closeAfter { try file.writeAll(toAbsoluteOffset: 509 * 8, [UInt8](repeating: 0, count: 8)) }
    }

    private static func copyContents(_ path: FilePath, to copy: FilePath) throws {
        mkdir(copy.string, 0o700)
        for name in names(in: path) {
            let (child, target) = (path.appending(name), copy.appending(name))
            if isDirectory(child) {
                try copyContents(child, to: target)
            } else {
                try write(read(child), to: target)
            }
        }
    }

    /// Makes a hole of the bytes from `offset` to the end of a file: they read as zeros and take no space.
    public static func punch(_ path: FilePath, from offset: Int64) throws {
        let length = Int64(status(path)?.st_size ?? 0)
        try truncate(path, to: offset)
        try truncate(path, to: length)
    }

    /// Replaces the contents of a file.
    public static func write(_ bytes: [UInt8], to path: FilePath) throws {
        let file = try FileDescriptor.open(
            path, .writeOnly, options: [.create, .truncate], permissions: [.ownerReadWrite])
        _ = try file.closeAfter { try file.writeAll(bytes) }
    }

    /// Inverts one byte of a file in place.
    public static func flipByte(of path: FilePath, at offset: Int64) throws {
        let file = try FileDescriptor.open(path, .readWrite)
        try file.closeAfter {
            var byte: [UInt8] = [0]
            _ = try byte.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: offset, into: $0) }
            byte[0] ^= 0xFF
            _ = try file.writeAll(toAbsoluteOffset: offset, byte)
        }
    }

    /// Cuts a file.
    public static func truncate(_ path: FilePath, to length: Int64) throws {
        let file = try FileDescriptor.open(path, .readWrite)
        try file.closeAfter { try file.resize(to: length) }
    }
}

/// `st_blocks` x 512 summed over the regular files under `path`, each inode once: what `Statistics.allocatedBytes` has
/// to be.
///
/// On a store in use a file may move from one directory to another during the walk; counting inodes keeps it from
/// being counted twice.
public func recount(_ path: FilePath) -> Int64 {
    var seen = Set<UInt64>()
    return regularFiles(under: path).reduce(0) { sum, file in
        seen.insert(file.key.inode).inserted ? sum + file.value : sum
    }
}

/// A regular file under one of its names.
struct NamedFile: Hashable {
    let path: String
    let inode: UInt64
}

/// The bytes that each regular file under `path` takes, by name.
func regularFiles(under path: FilePath) -> [NamedFile: Int64] {
    var files: [NamedFile: Int64] = [:]
    collectFiles(under: path.string, &files)
    return files
}

private func collectFiles(under path: String, _ files: inout [NamedFile: Int64]) {
    for name in TestFiles.names(in: path) {
        let child = path + "/" + name
        guard let status = TestFiles.status(child) else { continue }
        switch status.st_mode & S_IFMT {
        case S_IFDIR: collectFiles(under: child, &files)
        case S_IFREG: files[NamedFile(path: child, inode: UInt64(status.st_ino))] = Int64(status.st_blocks) * 512
        default: break
        }
    }
}
