import SystemPackage

/// The regular files of a directory tree. Symbolic links are not followed, and other file systems are entered.
package struct FileTreeWalk {
    /// A regular file.
    package struct File: Sendable {
        /// Bytes of the path from the directory that was walked.
        package let path: [UInt8]
        package let length: Int64
        /// `st_blocks` x 512.
        package let allocated: Int64
        package let inode: UInt64
    }

    /// The directory.
    package let root: FilePath
    /// Directories that cannot be read, with the reason.
    package private(set) var unreadable: [String] = []

    package init(_ root: FilePath) { self.root = root }

    /// The directory that a command line names, as an absolute path without links: realpath(3).
    package static func root(_ path: FilePath) throws -> FilePath {
        guard let resolved = path.withPlatformString({ realpath($0, nil) }) else {
            throw CommandError.system("reading", path)
        }
        defer { free(resolved) }
        let root = FilePath(platformString: resolved)
        var status = stat()
        guard root.withPlatformString({ stat($0, &status) }) == 0 else { throw CommandError.system("reading", root) }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw CommandError(.noInput, "\(path) is not a directory: use 'cachectl put' for a file")
        }
        return root
    }

    /// Passes every file to `body`, directory by directory. Skips files and directories that are removed meanwhile.
    package mutating func run(_ body: (File) throws -> Void) throws {
        var waiting: [[UInt8]] = [[]]
        while let directory = waiting.popLast() {
            for name in names(in: directory) {
                let path = directory.isEmpty ? name : directory + [UInt8(ascii: "/")] + name
                var status = stat()
                guard withAbsolute(path, { lstat($0, &status) }) == 0 else { continue }
                switch status.st_mode & S_IFMT {
                case S_IFDIR: waiting.append(path)
                case S_IFREG:
                    try body(
                        File(
                            path: path, length: Int64(status.st_size), allocated: Int64(status.st_blocks) * 512,
                            inode: UInt64(status.st_ino)))
                default: break
                }
            }
        }
    }

    /// The path of a file of the tree, starting with `root`.
    package func location(of path: [UInt8]) -> FilePath {
        FilePath(root.string).appending(FilePath(platformBytes: path).components)
    }

    private mutating func names(in directory: [UInt8]) -> [[UInt8]] {
        guard let stream = withAbsolute(directory, { opendir($0) }) else {
            // A directory that was removed meanwhile is not an error.
            if errno != ENOENT { unreadable.append("\(location(of: directory)): \(Errno(rawValue: errno))") }
            return []
        }
        defer { closedir(stream) }
        var names: [[UInt8]] = []
        while let entry = readdir(stream) {
            // SAFETY: the name ends with a zero within the record, which may be longer than the field (256 bytes on
            // Linux, 1,024 on Darwin) or shorter.
            let start = UnsafeRawPointer(entry) + MemoryLayout<dirent>.offset(of: \.d_name)!
            let count = strlen(start.assumingMemoryBound(to: CChar.self))
            let name = Array(UnsafeRawBufferPointer(start: start, count: count))
            if name != [46], name != [46, 46] { names.append(name) }
        }
        return names.sorted { $0.lexicographicallyPrecedes($1) }
    }

    private func withAbsolute<R>(_ path: [UInt8], _ body: (UnsafePointer<CChar>) -> R) -> R {
        path.isEmpty ? root.withPlatformString(body) : location(of: path).withPlatformString(body)
    }
}

extension FilePath {
    /// A path of raw bytes, which need not be UTF-8.
    package init(platformBytes bytes: [UInt8]) {
        let characters = bytes.map { CChar(bitPattern: $0) } + [0]
        self = characters.withUnsafeBufferPointer { FilePath(platformString: $0.baseAddress!) }
    }

    /// The bytes of the path.
    package var platformBytes: [UInt8] {
        withPlatformString { pointer in
            UnsafeRawBufferPointer(start: pointer, count: strlen(pointer)).map { $0 }
        }
    }
}
