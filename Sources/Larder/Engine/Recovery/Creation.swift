import Failpoints
import LMDB
import SystemPackage

/// Lays a new store out, and finishes or refuses what is there already. Each step leaves a directory that the next open
/// can continue from.
enum Creation {
    /// Makes the directory of a store, and those above it, if there is nothing under that name yet.
    static func makeRoot(_ path: FilePath) throws(LarderError) {
        if try FileSystem.status(path: path) == nil { try makeDirectories(path) }
    }

    /// mkdir(2) for each component that is missing, mode 0700.
    private static func makeDirectories(_ path: FilePath) throws(LarderError) {
        var missing: [FilePath] = []
        var ancestor = path
        while try FileSystem.status(path: ancestor.isEmpty ? "." : ancestor) == nil {
            missing.append(ancestor)
            ancestor = ancestor.removingLastComponent()
        }
        for path in missing.reversed() { try FileSystem.makeDirectory(path: path) }
    }

    /// Reads `FORMAT`, or lays a new store out, whose creation `finish` completes. `FORMAT` is written last: a
    /// directory without it is either empty, one whose creation was interrupted (only our names in it), a store that
    /// lost it, or one with other contents, which is refused.
    static func prepareLayout(
        _ root: Directory, _ configuration: Configuration
    ) throws -> (format: FormatFile, isUnfinished: Bool) {
        if let format = try readLayout(root, configuration) { return (format, false) }
        try requireOurs(root)
        if configuration.isReadOnly {
            // No lock was taken: its maker may have written `FORMAT` since.
            switch try DirectoryState(root) {
            case .none: throw Opening.noStore(at: root.path)
            case .lostFormat: throw DirectoryState.lostFormat(root.path)
            case .store:
                guard let format = try readLayout(root, configuration) else { throw Opening.noStore(at: root.path) }
                return (format, false)
            }
        }
        try makeLayout(root, configuration)
        let version = configuration.encryption == nil ? nil : FormatFile.Feature.encryption.rawValue
        return (FormatFile.fresh(version ?? FormatFile.currentVersion), true)
    }

    /// What `FORMAT` says; nil if there is none.
    private static func readLayout(_ root: Directory, _ configuration: Configuration) throws -> FormatFile? {
        guard let file = try FileSystem.openIfPresent(Layout.format, in: root, flags: O_RDONLY) else { return nil }
        let path = root.path(of: Layout.format)
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = try bytes.withUnsafeMutableBytes { try FileSystem.read(file, into: $0, at: 0, path: path) }
        let data = root.path.appending(Layout.index).appending(Layout.data)
        let format = try FormatFile(
            contents: String(decoding: bytes[..<count], as: UTF8.self), path: path,
            hasIndex: try FileSystem.status(path: data) != nil)
        // Directories that were removed while the store was closed are made again. Their files are found missing
        // entry by entry.
        if !configuration.isReadOnly {
            for name in Layout.directories { try FileSystem.makeDirectory(name, in: root) }
            // Before anything of the newer format is in the index.
            if format.version < FormatFile.currentVersion {
                try replace(format.upgraded, in: root)
                return format.upgraded
            }
        }
        return format
    }

    /// Refuses a directory with contents of someone else, unless a store was there before them.
    private static func requireOurs(_ root: Directory) throws {
        let names = try root.names().sorted()
        guard let foreign = names.first(where: { !Layout.isOwn($0, in: .root) && !Layout.isOfVolume($0) }),
            case .none = try DirectoryState(root)
        else { return }
        throw LarderError(
            .formatMismatch,
            "\(root.path) is not a Larder store: it holds '\(foreign)' and no FORMAT file. "
                + "Choose an empty or new directory; nothing was changed",
            path: root.path)
    }

    private static func makeLayout(_ root: Directory, _ configuration: Configuration) throws {
        try write(Layout.tagContents, to: Layout.tag, in: root)
        failpoint("create.tag-written", at: root.path.string)
        for name in Layout.directories { try FileSystem.makeDirectory(name, in: root) }
        let blobs = try root.directory(Layout.blobs)
        for name in Layout.shards { try FileSystem.makeDirectory(name, in: blobs) }
        // Not every file system keeps these names when only the directory above is synced.
        try Sync.names(blobs)
        failpoint("create.directories-made", at: root.path.string)
        try removePartOfIndex(StoreFiles(root: root), configuration)
    }

    /// What an interrupted creation left is removed if it is not an index; one that is whole stays.
    private static func removePartOfIndex(_ files: StoreFiles, _ configuration: Configuration) throws {
        // One that was begun with another key, or without one where there is one now: nothing is in it.
        let wasEncrypted = try FileSystem.status(Layout.encryption, in: files.root) != nil
        if wasEncrypted || configuration.encryption != nil, try isUnused(files), try hasNoEntries(files) {
            for name in [Layout.data, Layout.lock] { try FileSystem.unlink(name, in: files.index) }
            for name in [Layout.encryption, Layout.newEncryption] { try FileSystem.unlink(name, in: files.root) }
        }
        do throws(LarderError) {
            try IndexFile.validate(files.index)
        } catch {
            guard error.code == .corruption, try isUnused(files) else { throw error }
            try FileSystem.unlink(Layout.data, in: files.index)
            try FileSystem.unlink(Layout.lock, in: files.index)
        }
    }

    /// Makes an index of an empty one, with all its databases and its counters, which is on disk before `FORMAT` says
    /// that this is a store: LMDB writes its first pages without syncing them, and those who only read open whatever
    /// has a `FORMAT`.
    static func finish(
        _ format: FormatFile, _ files: StoreFiles, _ configuration: Configuration, _ environment: Environment
    ) throws {
        if let index = try Index(environment: environment, create: true) {
            failpoint("create.databases-made", at: files.root.path.string)
            _ = try prepareState(index, configuration) { try IndexProof.write($0, environment, files) }
        }
        try environment.sync()
        try Sync.names(files.index)
        failpoint("create.index-made", at: files.root.path.string)
        try replace(format, in: files.root)
    }

    /// True if no entry is in the index, whatever seals its rows. A store that lost its `FORMAT` may have only small
    /// bodies.
    private static func hasNoEntries(_ files: StoreFiles) throws -> Bool {
        guard let file = try FileSystem.openIfPresent(Layout.data, in: files.index, flags: O_RDONLY) else {
            return true
        }
        let pages = try FilePages(descriptor: file.raw)
        guard pages.length > 0 else { return true }
        var count = 0
        for meta in try MetaPage.all(pages) {
            var walk = PageWalk(pages, meta, bigValues: .heads, isTolerant: true)
            try walk.run { tree, _, _ in if tree == "entries" { count += 1 } }
            // What cannot be read may be one.
            count += walk.damages.count
        }
        return count == 0
    }

    /// True if nothing was ever stored: a store whose creation was interrupted, and not one that lost its `FORMAT`.
    private static func isUnused(_ files: StoreFiles) throws(LarderError) -> Bool {
        if try FileSystem.status(Layout.ledger, in: files.index) != nil { return false }
        for shard in try files.shards() where try !shard.names(of: .shard).isEmpty { return false }
        return true
    }

    /// Writes `FORMAT`: whole or not at all, whatever happens.
    static func replace(_ format: FormatFile, in root: Directory) throws {
        try write(format.contents, to: Layout.newFormat, in: root)
        failpoint("create.format-written", at: root.path.string)
        try FileSystem.rename(Layout.newFormat, in: root, to: Layout.format, in: root)
        failpoint("create.format-renamed", at: root.path.string)
        try Sync.names(root)
    }

    private static func write(_ text: String, to name: String, in directory: Directory) throws {
        let path = directory.path(of: name)
        let file = try FileSystem.open(name, in: directory, flags: O_WRONLY | O_CREAT | O_TRUNC)
        try FileSystem.write(file, Array(text.utf8), at: 0, path: path)
        try Sync.data(file, path: path)
    }

    /// The counters, made for a new store; a new run of the machine makes unsynced body files suspect.
    static func prepareState(
        _ index: Index, _ configuration: Configuration, _ finding: IndexTrust.Finding? = nil, isCopy: Bool = false,
        _ proof: (WriteTransaction) throws -> Void
    ) throws -> StoreState {
        let boot = configuration.bootIdentity ?? BootIdentity.current
        return try index.environment.write { transaction in
            guard try transaction.reading.get(index.meta, Index.stateKey) != nil else {
                var fresh = StoreState()
                fresh.boot = boot
                try transaction.put(index.meta, Index.stateKey, fresh.bytes)
                try proof(transaction)
                return fresh
            }
            var state = try index.state(transaction.reading)
            var isNoted = state.note(
                boot: boot, isShared: finding?.isShared ?? false, wasClosed: finding?.wasClosed ?? false)
            if isCopy {
                state.noteCopy()
                isNoted = true
            }
            guard isNoted else { return state }
            try transaction.put(index.meta, Index.stateKey, state.bytes)
            return state
        }
    }
}
