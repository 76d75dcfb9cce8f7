import SystemPackage

/// An open directory: names in it are looked up from here, whatever happens to the path above it.
final class Directory: Sendable {
    let descriptor: OwnedDescriptor
    private let base: FilePath
    /// From `base` to here. Joined when the path is asked for: a walk over all shards has no use for their paths.
    private let relative: String

    /// Opens an existing directory by path.
    init(path: FilePath) throws(LarderError) {
        base = path
        relative = ""
        descriptor = try FileSystem.open(path: path, flags: O_RDONLY | O_DIRECTORY)
    }

    private init(descriptor: OwnedDescriptor, base: FilePath, relative: String) {
        self.descriptor = descriptor
        self.base = base
        self.relative = relative
    }

    /// Opens the directory `name` in this one, not through a symbolic link.
    func directory(_ name: String) throws(LarderError) -> Directory {
        let descriptor = try FileSystem.open(name, in: self, flags: O_RDONLY | O_DIRECTORY)
        return Directory(descriptor: descriptor, base: base, relative: relative(name))
    }

    /// The whole path.
    var path: FilePath { relative.isEmpty ? base : base.appending(relative) }

    /// The whole path of `name`, for messages and for callers.
    func path(of name: String) -> FilePath { base.appending(relative(name)) }

    /// The whole path for a fault scope, without the cost of a `FilePath`. Bytes that are not UTF-8 are lost.
    var place: String { relative.isEmpty ? base.string : base.string + "/" + relative }

    private func relative(_ name: String) -> String { relative.isEmpty ? name : relative + "/" + name }

    /// The names in this directory, `.` and `..` left out, in no order, and without what the Finder of macOS leaves in
    /// any directory it shows. readdir(3).
    func names() throws(LarderError) -> [String] { try list { _ in true }.filter { !Self.isOfFinder($0) } }

    /// As `names()`, with those files: to empty the directory.
    func allNames() throws(LarderError) -> [String] { try list { _ in true } }

    /// `.DS_Store`, and the `._` files for attributes that a file system without them gets (AppleDouble).
    private static func isOfFinder(_ name: String) -> Bool { name == ".DS_Store" || name.hasPrefix("._") }

    /// The names of symbolic links in this directory.
    func links() throws(LarderError) -> [String] {
        var found: [String] = []
        // Where the file system does not say what a name is, lstat(2) does.
        for name in try list({ $0 == DT_LNK || $0 == DT_UNKNOWN })
        where try FileSystem.status(name, in: self)?.isLink == true {
            found.append(name)
        }
        return found
    }

    private func list(_ isIncluded: (Int32) -> Bool) throws(LarderError) -> [String] {
        let copy = FileSystem.perform("opendir", at: place) {
            openat(descriptor.raw, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        }
        guard copy >= 0, let stream = fdopendir(copy) else {
            let number = errno
            if copy >= 0 { close(copy) }
            throw .system("opendir", number, path: path)
        }
        defer { closedir(stream) }
        var result: [String] = []
        while true {
            var item: UnsafeMutablePointer<dirent>?
            let code = FileSystem.perform("readdir", at: place) { () -> Int32 in
                errno = 0
                item = readdir(stream)
                return item == nil && errno != 0 ? -1 : 0
            }
            if code != 0 { throw .system("readdir", errno, path: path) }
            guard let item else { return result }
            // SAFETY: the name ends with a zero within the record. It may be longer than the field is declared on Linux
            // (256 bytes; Darwin has 1024), and the record shorter.
            let start = UnsafeRawPointer(item) + MemoryLayout<dirent>.offset(of: \.d_name)!
            let name = String(cString: start.assumingMemoryBound(to: CChar.self))
            if name != ".", name != "..", isIncluded(Int32(item.pointee.d_type)) { result.append(name) }
        }
    }
}
