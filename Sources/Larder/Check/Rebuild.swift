import Failpoints
import LMDB
import SystemPackage

/// Brings a store that cannot be opened, or should not be, to where it can.
enum Rebuild {
    static func run(_ path: FilePath, _ configuration: Configuration) throws -> RebuildReport {
        let root = try Directory(path: path)
        try DirectoryTrust.requirePrivate(root, configuration)
        let guardFile = try Fork.openToLock { () throws(LarderError) -> OwnedDescriptor in
            try FileSystem.open(".", in: root, flags: O_RDONLY | O_DIRECTORY)
        }
        // The process that made an ephemeral store keeps this lock as long as it runs.
        guard try FileSystem.lock(guardFile, wait: !Ephemeral.isName(of: path), path: path) else { throw inUse(path) }
        return try withExtendedLifetime(guardFile) {
            var report = RebuildReport()
            report.hasRestoredFormat = try restoreFormat(root)
            // A store that lost a directory gets it back, so that the next open finds its layout.
            for name in Layout.directories { try FileSystem.makeDirectory(name, in: root) }
            let cipher = try StoreKey.cipher(configuration.encryption, format(root), in: root)
            let files = try StoreFiles(root: root, cipher)
            for name in Layout.shards { try files.makeShard(name) }
            guard let presence = try Presence.exclude(files.index) else { throw inUse(files.root.path) }
            defer { withExtendedLifetime(presence) {} }
            var salvage = Salvage(files: files)
            try examine(&salvage)
            try salvage.requireKey()
            if salvage.isSound { return report }
            report.damages = salvage.damages
            report.countedEntries = salvage.state.map { Int(clamping: $0.entryCount) }
            report.hasLostBudget = salvage.state == nil
            if salvage.isReadable {
                try upgradeFormat(root)
                try salvage.write(now: configuration.clock.now())
                failpoint("rebuild.salvage-written", at: files.root.path.string)
                try replace(files)
            } else {
                report.isEmptied = true
                report.removedFiles = try reset(files)
            }
            return report
        }
    }

    /// Rows are written in the current format, and code that does not know it must not open them.
    private static func upgradeFormat(_ root: Directory) throws {
        let format = try format(root)
        if format.version < FormatFile.currentVersion { try Creation.replace(format.upgraded, in: root) }
    }

    private static func format(_ root: Directory) throws -> FormatFile {
        let bytes = try FileSystem.contents(Layout.format, in: root, limit: 256) ?? []
        return try FormatFile(
            contents: String(decoding: bytes, as: UTF8.self), path: root.path(of: Layout.format))
    }

    /// Writes `FORMAT` again if its contents are lost and everything else says that this is a store. True if it did.
    private static func restoreFormat(_ root: Directory) throws -> Bool {
        let path = root.path(of: Layout.format)
        let bytes = try FileSystem.contents(Layout.format, in: root, limit: 256) ?? []
        let text = String(decoding: bytes, as: UTF8.self)
        do {
            _ = try FormatFile(contents: text, path: path)
            return false
        } catch {
            guard !FormatFile.isNewer(text),
                try FileSystem.status(Layout.format, in: root) != nil
                    || FileSystem.status(Layout.index + "/" + Layout.ledger, in: root) != nil,
                try FileSystem.status(Layout.index + "/" + Layout.data, in: root) != nil,
                try FileSystem.status(Layout.blobs, in: root)?.isDirectory == true
            else {
                if bytes.isEmpty {
                    throw LarderError(
                        .formatMismatch,
                        "\(root.path) is not a Larder store: it has no FORMAT file; nothing was changed",
                        path: root.path)
                }
                throw error
            }
            try FileSystem.unlink(Layout.newFormat, in: root)
            // Nothing says what the store may hold.
            let isEncrypted = try FileSystem.status(Layout.encryption, in: root) != nil
            let feature: FormatFile.Feature = isEncrypted ? .encryption : .compression
            try Creation.replace(.fresh(feature.rawValue), in: root)
            return true
        }
    }

    private static func inUse(_ path: FilePath) -> LarderError {
        LarderError(.locked, "\(path) is open: close it everywhere before its index is rebuilt", path: path)
    }

    private static func examine(_ salvage: inout Salvage) throws {
        do {
            try salvage.examine()
        } catch let error as LMDBError {
            let path = salvage.files.index.path(of: Layout.data)
            throw LarderError(.io, "cannot read \(path)", path: path, cause: error)
        }
    }

    /// Puts the index that was salvaged in the place of the damaged one.
    private static func replace(_ files: StoreFiles) throws {
        let rebuilt = try files.index.directory(Layout.rebuilt)
        // Of the lock file LMDB makes a new one; a ledger left by dead processes would be swept anyway.
        try FileSystem.unlink(Layout.lock, in: files.index)
        try FileSystem.unlink(Layout.ledger, in: files.index)
        failpoint("rebuild.ledger-dropped", at: files.root.path.string)
        try FileSystem.rename(Layout.data, in: rebuilt, to: Layout.data, in: files.index)
        failpoint("rebuild.index-replaced", at: files.root.path.string)
        try Sync.names(files.index)
        try Salvage.discard(files)
    }

    private static func reset(_ files: StoreFiles) throws -> Int {
        var generator = SystemRandomNumberGenerator()
        let mark = Layout.hex(generator.next(), width: 16)
        try FileSystem.rename(Layout.data, in: files.index, to: "\(mark)-\(Layout.data)", in: files.quarantine)
        failpoint("rebuild.index-moved", at: files.root.path.string)
        try FileSystem.unlink(Layout.lock, in: files.index)
        try FileSystem.unlink(Layout.ledger, in: files.index)
        failpoint("rebuild.ledger-removed", at: files.root.path.string)
        for (directory, place) in [(files.staging, Layout.Place.staging), (files.trash, .trash)] {
            for name in try directory.names(of: place) { try FileSystem.unlinkFile(name, in: directory) }
        }
        failpoint("rebuild.staging-emptied", at: files.root.path.string)
        var removed = 0
        for shard in Layout.shards {
            let directory = try files.blobs.directory(shard)
            for name in try directory.names(of: .shard) where try FileSystem.unlinkFile(name, in: directory) {
                removed += 1
            }
        }
        return removed
    }
}
