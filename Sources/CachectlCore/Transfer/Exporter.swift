import Larder
import LarderHTTP
import SystemPackage

/// Writes entries to a directory tree.
package struct Exporter {
    /// The result.
    package struct Outcome {
        package var files = 0
        package var bytes: Int64 = 0
        /// Files that existed and were not overwritten.
        package var existing = 0
        /// Entries that were removed or expired before their body was read.
        package var vanished = 0
        /// Entries whose body is damaged or missing.
        package var damaged = 0
        /// Files that went to `_hashed/` because a file or a link is in the place of their directory.
        package var hashed = 0
        /// Incomplete HTTP responses.
        package var incomplete = 0
    }

    private let store: Store
    private let root: FilePath
    private let base: Key?
    private let replaces: Bool
    private let takesParts: Bool
    private let ignoresCase: Bool
    private var directories: Set<FilePath> = []
    /// The key of each path, where the file system treats some names as equal.
    private var owners: [String: Key] = [:]
    package private(set) var outcome = Outcome()

    /// - Parameters:
    ///   - base: the prefix to remove from the keys, all of which start with it; nil for none.
    ///   - replaces: overwrites existing files.
    ///   - takesParts: writes what is stored of incomplete HTTP responses.
    ///   - ignoresCase: whether `A` and `a` are one name for the file system; nil to find out.
    package init(
        _ store: Store, to root: FilePath, base: Key?, replaces: Bool, takesParts: Bool = false,
        ignoresCase: Bool? = nil
    ) throws {
        self.store = store
        self.root = root
        self.base = base
        self.replaces = replaces
        self.takesParts = takesParts
        try Self.makeDirectories(root)
        self.ignoresCase = ignoresCase ?? Self.ignoresCase(in: root)
    }

    /// True if a file can be opened by its name in other case.
    private static func ignoresCase(in root: FilePath) -> Bool {
        let probe = root.appending(".cachectl-case-\(getpid())")
        let other = root.appending(".CACHECTL-CASE-\(getpid())")
        let file = probe.withPlatformString { open($0, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600) }
        guard file >= 0 else { return false }
        close(file)
        defer { _ = probe.withPlatformString { unlink($0) } }
        var status = stat()
        return other.withPlatformString { lstat($0, &status) } == 0
    }

    /// True if the file system gives the path to another key already; else records it for this key.
    private mutating func isTaken(_ components: [[UInt8]], by key: Key) -> Bool {
        guard ignoresCase else { return false }
        let path = KeyPath.folded(components)
        if let owner = owners[path] { return owner != key }
        owners[path] = key
        return false
    }

    /// Writes the body of one entry. Skips lists of variants, which have none, and parts, which belong to their
    /// response.
    package mutating func export(_ entry: Attributes) throws {
        if StoredKeys.isList(entry) || StoredKeys.isPart(entry) { return }
        let response = ResponseSummary(entry)
        if let response, !response.isComplete, !takesParts {
            outcome.incomplete += 1
            return
        }
        let key = response?.primaryKey ?? entry.key
        let variant = key == entry.key ? nil : response?.variant
        let components = KeyPath.components(of: key, after: base, variant: variant, entry.key)
        if isTaken(components, by: entry.key) {
            guard try export(entry, to: KeyPath.hashed(entry.key)) == .done else { throw blocked() }
            return
        }
        // One key needs a file where another needs a directory.
        guard try export(entry, to: components) == .blocked else { return }
        let before = outcome.files
        if try export(entry, to: KeyPath.hashed(entry.key)) == .blocked { throw blocked() }
        outcome.hashed += outcome.files - before
    }

    private func blocked() -> CommandError {
        CommandError(.cannotCreate, "\(root) has files where directories are needed: use an empty directory")
    }

    private enum Result { case done, blocked }

    private mutating func export(_ entry: Attributes, to components: [[UInt8]]) throws -> Result {
        var path = root
        for component in components.dropLast() {
            path = path.appending(FilePath(platformBytes: component).components)
            guard try makeDirectory(path) else { return .blocked }
        }
        guard let name = components.last else { return .blocked }
        path = path.appending(FilePath(platformBytes: name).components)
        var status = stat()
        if path.withPlatformString({ lstat($0, &status) }) == 0 {
            if status.st_mode & S_IFMT == S_IFDIR { return .blocked }
            guard replaces else {
                outcome.existing += 1
                return .done
            }
        }
        try write(entry, to: path)
        return .done
    }

    /// Writes to a temporary file first: readers never see a partial file, and a link at `path` is replaced, not
    /// followed.
    private mutating func write(_ entry: Attributes, to path: FilePath) throws {
        let temporary = path.removingLastComponent().appending(".cachectl-\(getpid())")
        _ = temporary.withPlatformString { unlink($0) }
        let length: Int64
        do {
            guard let found = try body(of: entry, to: temporary) else {
                let isThere = try store.attributes(of: entry.key).map { $0.digest == entry.digest } ?? false
                if isThere { outcome.damaged += 1 } else { outcome.vanished += 1 }
                return
            }
            length = found
        } catch {
            _ = temporary.withPlatformString { unlink($0) }
            throw error
        }
        let result = temporary.withPlatformString { from in path.withPlatformString { rename(from, $0) } }
        if result != 0 {
            let error = CommandError.system("rename to", path, .cannotCreate)
            _ = temporary.withPlatformString { unlink($0) }
            throw error
        }
        outcome.files += 1
        outcome.bytes += length
    }

    /// Creates a file with the body, or with what is stored of it.
    /// - Returns: its length; nil if the entry has been removed.
    private func body(of entry: Attributes, to path: FilePath) throws -> Int64? {
        guard let response = ResponseSummary(entry), !response.isComplete else {
            let (store, key) = (store, entry.key)
            // A signal ends the copy of a long body.
            let isDone =
                entry.length > .mebibytes(1)
                ? try Blocking.run { try await store.perform { try $0.export(key, to: path) } }
                : try store.export(key, to: path)
            return isDone ? entry.length.bytes : nil
        }
        guard let stored = try store.get(entry.key) else { return nil }
        let content = try StoredContent(stored, in: store)
        let file = try FileDescriptor.open(
            path, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec], permissions: .ownerReadWrite)
        try file.closeAfter {
            try content.forEach { piece in
                try Interruption.check()
                _ = try file.writeAll(piece)
            }
        }
        return content.length
    }

    /// False if the path is not a directory. A symbolic link does not count as one: it could lead out of the tree.
    private mutating func makeDirectory(_ path: FilePath) throws -> Bool {
        if directories.contains(path) { return true }
        if path.withPlatformString({ mkdir($0, 0o755) }) != 0 {
            guard errno == EEXIST else { throw CommandError.system("mkdir", path, Self.status(of: errno)) }
            var status = stat()
            guard path.withPlatformString({ lstat($0, &status) }) == 0 else { throw CommandError.system("lstat", path) }
            if status.st_mode & S_IFMT != S_IFDIR { return false }
        }
        directories.insert(path)
        return true
    }

    /// Creates the directory that the user named, and its parents.
    private static func makeDirectories(_ path: FilePath) throws {
        var status = stat()
        if path.isEmpty || path.withPlatformString({ stat($0, &status) }) == 0 {
            if !path.isEmpty, status.st_mode & S_IFMT != S_IFDIR {
                throw CommandError(.cannotCreate, "\(path) is a file, not a directory")
            }
            return
        }
        try makeDirectories(path.removingLastComponent())
        if path.withPlatformString({ mkdir($0, 0o755) }) != 0, errno != EEXIST {
            throw CommandError.system("mkdir", path, Self.status(of: errno))
        }
    }

    private static func status(of number: Int32) -> ExitStatus {
        switch number {
        case EACCES, EPERM, EROFS: .noPermission
        case ENOSPC, EDQUOT: .noSpace
        default: .cannotCreate
        }
    }
}
