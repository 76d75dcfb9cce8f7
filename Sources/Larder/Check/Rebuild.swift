import SystemPackage

/// A new index for a store whose own cannot be opened.
enum Rebuild {
    /// Moves the index files to `quarantine/` and removes the body files. Returns how many of those there were.
    static func run(_ path: FilePath) throws -> Int {
        let root = try Directory(path: path)
        guard try FileSystem.status(Layout.format, in: root) != nil else {
            throw LarderError(
                .formatMismatch, "\(path) is not a Larder store: it has no FORMAT file; nothing was changed", path: path
            )
        }
        let guardFile = try FileSystem.open(".", in: root, flags: O_RDONLY | O_DIRECTORY)
        _ = try FileSystem.lock(guardFile, wait: true, path: path)
        return try withExtendedLifetime(guardFile) {
            // A store that lost a directory gets it back, so that the next open finds its layout.
            for name in Layout.directories { try FileSystem.makeDirectory(name, in: root) }
            let files = try StoreFiles(root: root)
            for name in Layout.shards { try FileSystem.makeDirectory(name, in: files.blobs) }
            try requireUnused(files)
            return try reset(files)
        }
    }

    private static func requireUnused(_ files: StoreFiles) throws {
        for name in try files.staging.names() {
            guard let instance = Layout.instance(ofStaged: name) else { continue }
            if try InstanceLock.seize(instance, staging: files.staging) === nil {
                throw LarderError(
                    .locked, "\(files.root.path) is open in another process: end that before its index is rebuilt",
                    path: files.root.path)
            }
        }
    }

    private static func reset(_ files: StoreFiles) throws -> Int {
        var generator = SystemRandomNumberGenerator()
        let mark = Layout.hex(generator.next(), width: 16)
        try FileSystem.rename(Layout.data, in: files.index, to: "\(mark)-\(Layout.data)", in: files.quarantine)
        try FileSystem.unlink(Layout.lock, in: files.index)
        try FileSystem.unlink(Layout.ledger, in: files.index)
        for directory in [files.staging, files.trash] {
            for name in try directory.names() { try FileSystem.unlink(name, in: directory) }
        }
        var removed = 0
        for shard in Layout.shards {
            let directory = try files.blobs.directory(shard)
            for name in try directory.names() where try FileSystem.unlink(name, in: directory) { removed += 1 }
        }
        return removed
    }
}
