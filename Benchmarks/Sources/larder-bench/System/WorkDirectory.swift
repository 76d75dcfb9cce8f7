import SystemPackage

/// A directory for the run, with a new one in it for each store. All of it is removed at the end.
final class WorkDirectory: Sendable {
    /// Where it is.
    let path: FilePath

    /// Makes one in `parent`. mkdtemp(3).
    init(in parent: FilePath) throws {
        var template = Array(parent.appending("larder-bench-XXXXXX").string.utf8CString)
        guard mkdtemp(&template) != nil else {
            throw BenchError.system("mkdtemp", "in \(parent) (--path wants a directory that exists)")
        }
        let name = template.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        path = FilePath(String(decoding: name, as: UTF8.self))
    }

    /// `$TMPDIR`, or `/var/tmp`, which unlike `/tmp` is rarely a tmpfs.
    static var defaultParent: FilePath {
        FilePath(getenv("TMPDIR").map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 } ?? "/var/tmp")
    }

    /// Runs `body` in a new directory and removes it whatever happens.
    static func with<R>(_ parent: FilePath?, _ body: (WorkDirectory) throws -> R) throws -> R {
        let directory = try WorkDirectory(in: parent ?? defaultParent)
        defer { FileTree.remove(directory.path) }
        return try body(directory)
    }

    /// A new, empty directory below this one.
    func make(_ name: String) throws -> FilePath {
        let path = path.appending(name)
        FileTree.remove(path)
        try FileTree.makeDirectory(path)
        return path
    }
}
