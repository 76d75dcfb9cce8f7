import SystemPackage

extension Store {
    /// Opens a new, empty store in the temporary directory, removed when it is closed. What a crash leaves behind is
    /// removed when the next ephemeral store is opened.
    /// - Parameter configuration: settings of the store. Default: no budget.
    /// - Returns: an open store in a directory that no other process uses.
    /// - Throws: as `init(at:_:)`.
    public static func ephemeral(_ configuration: Configuration = Configuration()) throws -> Store {
        try Ephemeral.sweep()
        let (path, lock) = try Ephemeral.makeDirectory()
        do {
            return try Store(path: path, configuration, ephemeral: lock)
        } catch {
            Ephemeral.remove(path)
            throw error
        }
    }

    /// As the synchronous form, on a thread that may wait for the disk.
    public static func ephemeral(_ configuration: Configuration = Configuration()) async throws -> Store {
        try Task.checkCancellation()
        return try await IOPool.long.run { try Store.ephemeral(configuration) }
    }
}

/// Stores in the temporary directory: `larder-ephemeral-<uid>-<16 hex>`.
///
/// The process that makes one holds an exclusive flock(2) on its directory until it is closed. That lock ends with the
/// process, so a store without it is dead; it cannot be removed like a file, by a cleaner of temporary files; and
/// systemd-tmpfiles(8) passes by the contents of a directory that another program has locked.
enum Ephemeral {
    private static var prefix: String { "larder-ephemeral-\(getuid())-" }

    static var parent: FilePath { FilePath(Store.environment("TMPDIR") ?? "/tmp") }

    static func newPath() -> FilePath {
        var generator = SystemRandomNumberGenerator()
        return parent.appending(prefix + Layout.hex(generator.next(), width: 16))
    }

    /// True for a path that only an ephemeral store has.
    static func isName(of path: FilePath) -> Bool {
        path.lastComponent?.string.hasPrefix("larder-ephemeral-") ?? false
    }

    /// A new directory, locked.
    static func makeDirectory() throws(LarderError) -> (path: FilePath, lock: OwnedDescriptor) {
        while true {
            let path = newPath()
            guard try FileSystem.status(path: path) == nil else { continue }
            try FileSystem.makeDirectory(path: path)
            let lock: OwnedDescriptor
            do {
                lock = try Fork.openToLock { () throws(LarderError) -> OwnedDescriptor in
                    try FileSystem.open(path: path, flags: O_RDONLY | O_DIRECTORY)
                }
            } catch {
                // A sweep may have taken it for a dead one's before it was locked, and removed it.
                if try FileSystem.status(path: path) == nil { continue }
                throw error
            }
            guard try FileSystem.lock(lock, wait: false, path: path), let named = try FileSystem.status(path: path),
                try named.inode == FileSystem.status(lock, path: path).inode
            else { continue }
            return (path, lock)
        }
    }

    /// Removes the ephemeral stores of this user that no process has open.
    static func sweep() throws(LarderError) {
        let directory = try Directory(path: parent)
        for name in try directory.names() where name.hasPrefix(prefix) {
            guard let status = try FileSystem.status(name, in: directory), status.isDirectory, status.owner == getuid(),
                let store = try? directory.directory(name), let lock = try? seize(store)
            else { continue }
            withExtendedLifetime(lock) { remove(parent.appending(name)) }
        }
    }

    /// The lock of a store that no process has open; nil of one that is alive.
    private static func seize(_ store: Directory) throws -> OwnedDescriptor? {
        let lock = try Fork.openToLock { () throws(LarderError) -> OwnedDescriptor in
            try FileSystem.open(".", in: store, flags: O_RDONLY | O_DIRECTORY)
        }
        guard try FileSystem.lock(lock, wait: false, path: store.path) else { return nil }
        // One that was opened by its path, or by an older version, has an instance lock only.
        let staging = try? store.directory(Layout.staging)
        for name in try staging?.names() ?? [] where name.hasSuffix(".lock") {
            guard let staging, let instance = Layout.instance(ofStaged: name) else { continue }
            if try InstanceLock.isAlive(instance, staging: staging) { return nil }
        }
        return lock
    }

    /// Removes a store's directory, best effort: what is left is found by the next sweep.
    static func remove(_ path: FilePath) {
        guard let root = try? Directory(path: path) else { return }
        removeContents(of: root, depth: 0)
        FileSystem.removeDirectory(path: path)
    }

    private static func removeContents(of directory: Directory, depth: Int) {
        guard depth < 4, let names = try? directory.allNames() else { return }
        for name in names {
            if (try? FileSystem.unlink(name, in: directory)) != nil { continue }
            if let child = try? directory.directory(name) { removeContents(of: child, depth: depth + 1) }
            try? FileSystem.removeDirectory(name, in: directory)
        }
    }
}
