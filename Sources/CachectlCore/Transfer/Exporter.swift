import Larder
import LarderHTTP
import SystemPackage

/// Writes entries to a directory tree.
package struct Exporter {
    /// What came of it.
    package struct Outcome {
        package var files = 0
        package var bytes: Int64 = 0
        /// Files that exist and were left as they are.
        package var existing = 0
        /// Entries that went or expired before their body was read.
        package var vanished = 0
        /// HTTP responses of which only a part is stored.
        package var incomplete = 0
    }

    private let store: Store
    private let root: FilePath
    private let base: Key?
    private let replaces: Bool
    private let takesParts: Bool
    private let ignoresCase: Bool
    private var directories: Set<FilePath> = []
    /// Keys by the path they got, where the file system does not tell all names apart.
    private var owners: [String: Key] = [:]
    package private(set) var outcome = Outcome()

    /// - Parameters:
    ///   - base: cut off the keys, all of which start with it; nil leaves them whole.
    ///   - replaces: writes over files that exist.
    ///   - takesParts: writes what is stored of HTTP responses that are not complete.
    ///   - ignoresCase: the file system takes `A` and `a` for one name; nil: it is tried out.
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

    /// True if a file made under one name is found under the same in capitals.
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

    /// True if the path is another key's by the rules of the file system; else it is this key's from now on.
    private mutating func isTaken(_ components: [[UInt8]], by key: Key) -> Bool {
        guard ignoresCase else { return false }
        let path = KeyPath.folded(components)
        if let owner = owners[path] { return owner != key }
        owners[path] = key
        return false
    }

    /// Writes the body of one key. Lists of responses have none, and parts go with their response.
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
        // A file stands where another key needs a directory, or the other way round.
        if try export(entry, to: components) == .blocked, try export(entry, to: KeyPath.hashed(entry.key)) == .blocked {
            throw blocked()
        }
    }

    private func blocked() -> CommandError {
        CommandError(.cannotCreate, "\(root) has files where directories are needed: choose an empty one")
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

    /// Under another name first, so that no reader sees half a file and a link at `path` is replaced rather than followed.
    private mutating func write(_ entry: Attributes, to path: FilePath) throws {
        let temporary = path.removingLastComponent().appending(".cachectl-\(getpid())")
        _ = temporary.withPlatformString { unlink($0) }
        guard let length = try body(of: entry, to: temporary) else {
            outcome.vanished += 1
            return
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

    /// Makes a file of the body, or of what is stored of it. Returns its length; nil if the entry is gone.
    private func body(of entry: Attributes, to path: FilePath) throws -> Int64? {
        guard let response = ResponseSummary(entry), !response.isComplete else {
            return try store.export(entry.key, to: path) ? entry.length.bytes : nil
        }
        guard let stored = try store.get(entry.key) else { return nil }
        let content = try StoredContent(stored) { try store.get($0, includingExpired: true) }
        let file = try FileDescriptor.open(
            path, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec], permissions: .ownerReadWrite)
        try file.closeAfter { try content.forEach { _ = try file.writeAll($0) } }
        return content.length
    }

    /// False if something else is in the way. A symbolic link is: it could lead out of the tree.
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

    /// The directory the user named, and what lies above it.
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
