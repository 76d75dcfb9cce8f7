import SystemPackage

extension Store {
    /// Opens a new, empty store in the temporary directory, removed when it is closed. What a crash leaves behind is
    /// removed when the next ephemeral store is opened.
    public static func ephemeral(_ configuration: Configuration = Configuration()) throws -> Store {
        try Ephemeral.sweep()
        return try Store(path: Ephemeral.newPath(), configuration, isEphemeral: true)
    }
}

/// Stores in the temporary directory: `larder-ephemeral-<uid>-<16 hex>`.
enum Ephemeral {
    private static var prefix: String { "larder-ephemeral-\(getuid())-" }

    static var parent: FilePath { FilePath(Store.environment("TMPDIR") ?? "/tmp") }

    static func newPath() -> FilePath {
        var generator = SystemRandomNumberGenerator()
        return parent.appending(prefix + Layout.hex(generator.next(), width: 16))
    }

    /// Removes the ephemeral stores of this user that no process has open.
    static func sweep() throws(LarderError) {
        let directory = try Directory(path: parent)
        for name in try directory.names() where name.hasPrefix(prefix) {
            guard let status = try FileSystem.status(name, in: directory), status.isDirectory, status.owner == getuid(),
                let store = try? directory.directory(name), !isAlive(store)
            else { continue }
            remove(parent.appending(name))
        }
    }

    /// True while an instance lock is held, and for a store so young that it may not have one yet.
    private static func isAlive(_ store: Directory) -> Bool {
        if let age = try? FileSystem.status(".", in: store).map({ SystemClock().now() - $0.modified }),
            age < .seconds(60)
        {
            return true
        }
        guard let staging = try? store.directory(Layout.staging), let names = try? staging.names() else { return false }
        return names.contains { name in
            guard name.hasSuffix(".lock"), let instance = Layout.instance(ofStaged: name) else { return false }
            do {
                return try InstanceLock.seize(instance, staging: staging) === nil
            } catch {
                return true
            }
        }
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
