import Failpoints
import LMDB
import SystemPackage

extension Engine {
    /// Opens the store at `path`, creating it unless read-only. Refuses what is not a store, and what is newer than
    /// this code, without changing it.
    /// - Parameter lock: the directory, locked already; nil locks it for the time of the call.
    static func open(
        _ path: FilePath, _ configuration: Configuration, lock: OwnedDescriptor? = nil
    ) throws -> Engine {
        try configuration.validate()
        let root = try prepareRoot(path, configuration)
        // One process at a time creates or opens; the lock ends with this scope.
        let guardFile = try lock ?? FileSystem.open(".", in: root, flags: O_RDONLY | O_DIRECTORY)
        if lock == nil, !configuration.isReadOnly {
            // The process that made an ephemeral store keeps that lock for as long as it has the store open.
            let isTaken = try !FileSystem.lock(guardFile, wait: !Ephemeral.isName(of: path), path: path)
            if isTaken {
                throw LarderError(
                    .locked,
                    "\(path) is the ephemeral store of another process, which has it open: make one of your own",
                    path: path)
            }
        }
        return try withExtendedLifetime(guardFile) {
            let isNew = try FileSystem.status(Layout.format, in: root) == nil
            let format = try prepareLayout(root, configuration)
            let files = try StoreFiles(root: root)
            try requireNoLinks(files)
            let hadIndex = try FileSystem.status(Layout.data, in: files.index).map { $0.size > 0 } ?? false
            let engine = try open(files, format, configuration, isNew: isNew)
            if !hadIndex, !isNew { try tellLostIndex(engine) }
            return engine
        }
    }

    /// Makes the directory of a store, and those above it, if there is nothing under that name yet.
    static func makeRoot(_ path: FilePath) throws(LarderError) {
        if try FileSystem.status(path: path) == nil { try makeDirectories(path) }
    }

    static func noStore(at path: FilePath) -> LarderError {
        LarderError(
            .invalidArgument, "there is no store at \(path): check the path, or put something first", path: path)
    }

    private static func prepareRoot(_ path: FilePath, _ configuration: Configuration) throws(LarderError) -> Directory {
        guard let status = try FileSystem.status(path: path) else { throw noStore(at: path) }
        guard status.isDirectory else {
            throw LarderError(
                .invalidArgument, "\(path) is a file, not a directory: choose another path or remove it", path: path)
        }
        let root = try Directory(path: path)
        try requirePrivate(root, configuration)
        return root
    }

    /// Refuses a directory that other users can change: one of theirs, or one that any user may write to. Any user who
    /// guesses a path below a shared directory of temporary files can take it.
    static func requirePrivate(_ root: Directory, _ configuration: Configuration) throws(LarderError) {
        let status = try FileSystem.status(root.descriptor, path: root.path)
        if status.mode & 0o002 != 0 {
            throw LarderError(
                .io,
                "\(root.path) can be written by every user, who could replace what is in it: remove that permission "
                    + "('chmod o-w'), or choose another directory",
                path: root.path, cause: Errno.permissionDenied)
        }
        if configuration.allowsOtherOwner || [geteuid(), 0].contains(status.owner) { return }
        throw LarderError(
            .io,
            "\(root.path) belongs to another user (uid \(status.owner)), who could replace what is in it",
            remedy: .allowOtherOwner, path: root.path, cause: Errno.permissionDenied)
    }

    /// The index of a store that was there before is gone: it continues empty, and says so if bodies are left.
    private static func tellLostIndex(_ engine: Engine) throws(LarderError) {
        var count = 0
        for shard in try engine.files.shards() { count += try shard.names().count }
        if count == 0 { return }
        engine.logger.error(
            "the index was gone: the store starts empty, without a budget. `Store.collect()`, or 'cachectl gc', removes files that nothing names",
            metadata: ["path": "\(engine.path)", "files": "\(count)"])
    }

    /// Refuses links where the store has directories: with a link the store would work in another place.
    private static func requireNoLinks(_ files: StoreFiles) throws(LarderError) {
        if let name = try files.blobs.links().first { throw .system("open", ELOOP, path: files.blobs.path(of: name)) }
        // LMDB opens its files by path, and a store that reads may not look at the ledger.
        for name in [Layout.data, Layout.lock, Layout.ledger]
        where try FileSystem.status(name, in: files.index)?.isLink == true {
            throw .system("open", ELOOP, path: files.index.path(of: name))
        }
        for name in [Layout.data, Layout.lock, Layout.ledger] {
            guard let status = try FileSystem.status(name, in: files.index), status.linkCount > 1 else { continue }
            throw LarderError(
                .invalidArgument,
                "\(files.index.path(of: name)) has \(status.linkCount) names (hard links): two stores would write to one index. "
                    + "Make a copy with files of its own ('cp -a'), and remove the other",
                path: files.index.path(of: name))
        }
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

    /// Reads `FORMAT`, or lays a new store out. `FORMAT` is written last: a directory without it is either empty, one
    /// whose creation was interrupted (only our names in it), or one with other contents, which is refused.
    private static func prepareLayout(_ root: Directory, _ configuration: Configuration) throws -> FormatFile {
        if let file = try FileSystem.openIfPresent(Layout.format, in: root, flags: O_RDONLY) {
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
        let known = Set(Layout.directories + [Layout.tag, Layout.format + ".new"])
        if let foreign = try root.names().sorted().first(where: { !known.contains($0) }) {
            throw LarderError(
                .formatMismatch,
                "\(root.path) is not a Larder store: it holds '\(foreign)' and no FORMAT file. "
                    + "Choose an empty or new directory; nothing was changed",
                path: root.path)
        }
        if configuration.isReadOnly {
            throw LarderError(
                .invalidArgument, "there is no store at \(root.path): check the path, or put something first",
                path: root.path)
        }
        try write(Layout.tagContents, to: Layout.tag, in: root)
        failpoint("create.tag-written", at: root.path.string)
        for name in Layout.directories { try FileSystem.makeDirectory(name, in: root) }
        let blobs = try root.directory(Layout.blobs)
        for name in Layout.shards { try FileSystem.makeDirectory(name, in: blobs) }
        // Not every file system keeps these names when only the directory above is synced.
        try Sync.names(blobs)
        failpoint("create.directories-made", at: root.path.string)
        try makeIndex(StoreFiles(root: root), configuration)
        let format = FormatFile.fresh()
        try replace(format, in: root)
        return format
    }

    /// An empty index, with all its databases and its counters, that is on disk before `FORMAT` says that this is a
    /// store: LMDB writes its first pages without syncing them, and those who only read open whatever has a `FORMAT`.
    /// What an interrupted creation left is removed if it is not an index; one that is whole stays.
    private static func makeIndex(_ files: StoreFiles, _ configuration: Configuration) throws {
        do throws(LarderError) {
            try IndexFile.validate(files.index)
        } catch {
            guard error.code == .corruption, try isUnused(files) else { throw error }
            try FileSystem.unlink(Layout.data, in: files.index)
            try FileSystem.unlink(Layout.lock, in: files.index)
        }
        try allocateLockFile(files.index)
        do {
            let environment = try Environment(path: files.index.path.string)
            defer { environment.close() }
            if let index = try Index(environment: environment, create: true) {
                failpoint("create.databases-made", at: files.root.path.string)
                _ = try prepareState(index, configuration)
            }
            try environment.sync()
        } catch let error as LMDBError {
            throw openFailure(error, files)
        }
        try Sync.names(files.index)
        failpoint("create.index-made", at: files.root.path.string)
    }

    /// True if nothing was ever stored: a store whose creation was interrupted, and not one that lost its `FORMAT`.
    private static func isUnused(_ files: StoreFiles) throws(LarderError) -> Bool {
        if try FileSystem.status(Layout.ledger, in: files.index) != nil { return false }
        for shard in try files.shards() where try !shard.names().isEmpty { return false }
        return true
    }

    /// Writes `FORMAT`: whole or not at all, whatever happens.
    static func replace(_ format: FormatFile, in root: Directory) throws {
        try write(format.contents, to: Layout.format + ".new", in: root)
        failpoint("create.format-written", at: root.path.string)
        try FileSystem.rename(Layout.format + ".new", in: root, to: Layout.format, in: root)
        failpoint("create.format-renamed", at: root.path.string)
        try Sync.names(root)
    }

    private static func write(_ text: String, to name: String, in directory: Directory) throws {
        let path = directory.path(of: name)
        let file = try FileSystem.open(name, in: directory, flags: O_WRONLY | O_CREAT | O_TRUNC)
        try FileSystem.write(file, Array(text.utf8), at: 0, path: path)
        try Sync.data(file, path: path)
    }

    private static func open(
        _ files: StoreFiles, _ format: FormatFile, _ configuration: Configuration, isNew: Bool
    ) throws -> Engine {
        let presence = try Presence(files.index)
        try IndexFile.validate(files.index)
        var options = Environment.Options()
        if let size = configuration.indexMapSize { options.mapSize = Int(clamping: size.bytes) }
        options.isReadOnly = configuration.isReadOnly
        // Beside a writer a reader without a row in the lock file reads pages that are reused: only where none can be.
        if try configuration.isReadOnly && !canLock(files) {
            options.skipsLocking = true
        } else {
            try requireLockFile(files, presence)
            try allocateLockFile(files.index)
        }
        let hasNoIndex = try !configuration.isReadOnly && FileSystem.status(Layout.data, in: files.index) == nil
        let environment: Environment
        do {
            environment = try Environment(path: files.index.path.string, options: options)
        } catch {
            throw openFailure(error, files)
        }
        do {
            if !configuration.isReadOnly {
                try FileSystem.makePrivate(raw: environment.dataDescriptor, path: files.index.path(of: Layout.data))
            }
            var finding = try IndexTrust(files: files, configuration: configuration).require(environment)
            // It was made and synced just now.
            if isNew { finding.wasClosed = true }
            if hasNoIndex { try Sync.names(files.index) }
            if configuration.isReadOnly {
                return try openForReading(files, format, configuration, environment, finding, presence)
            }
            return try openForWriting(files, format, configuration, environment, finding, presence)
        } catch let error as LMDBError {
            environment.close()
            throw openFailure(error, files)
        } catch {
            environment.close()
            throw error
        }
    }

    /// Refuses to make LMDB's lock file a second time, under those who have the store open: they would not see each
    /// other.
    private static func requireLockFile(_ files: StoreFiles, _ presence: Presence) throws(LarderError) {
        if presence.isAlone { return }
        if try FileSystem.status(Layout.lock, in: files.index) != nil { return }
        // It may be on its way: the other one is opening a store that has none.
        for _ in 0..<50 {
            usleep(2000)
            if try FileSystem.status(Layout.lock, in: files.index) != nil { return }
        }
        throw LarderError(
            .locked,
            "\(files.index.path(of: Layout.lock)) was removed while the store is open: close the store everywhere, and keep "
                + "cleaners of temporary files away from it",
            path: files.index.path(of: Layout.lock))
    }

    /// True if LMDB's lock file can be used, or made where it is missing: by a rebuild that did not end, or a backup.
    private static func canLock(_ files: StoreFiles) throws(LarderError) -> Bool {
        let isThere = try FileSystem.status(Layout.lock, in: files.index) != nil
        return FileSystem.isWritable(path: isThere ? files.index.path(of: Layout.lock) : files.index.path)
    }

    /// Gives LMDB's lock file its blocks before it is mapped: LMDB makes it sparse, and a full disk would otherwise be
    /// a SIGBUS at the first reader of a fresh slot. Changes neither length nor contents. Must come before LMDB opens
    /// the file: closing any descriptor of it later would drop LMDB's fcntl(2) locks.
    static func allocateLockFile(_ directory: Directory) throws(LarderError) {
        let path = directory.path(of: Layout.lock)
        let file = try FileSystem.open(Layout.lock, in: directory, flags: O_RDWR | O_CREAT)
        // It may have them: a full disk can refuse even blocks that are there.
        if try FileSystem.status(file, path: path).allocated >= Int64(lockFileLength) { return }
        FileSystem.writeInPlace(file)
        _ = try FileSystem.preallocate(file, offset: 0, length: Int64(lockFileLength), path: path)
    }

    /// Whole pages for the table of 1,024 readers (64 bytes each) and its head.
    private static let lockFileLength = 17 * 4096

    private static func openForReading(
        _ files: StoreFiles, _ format: FormatFile, _ configuration: Configuration, _ environment: Environment,
        _ finding: IndexTrust.Finding, _ presence: Presence
    ) throws -> Engine {
        failpoint("open.mapped", at: files.root.path.string)
        let index = try openDatabases(files, configuration, environment)
        let clock = EntryClock(source: configuration.clock)
        var state = try environment.read { try index.state($0) }
        state.note(
            boot: configuration.bootIdentity ?? BootIdentity.current, isShared: finding.isShared,
            wasClosed: finding.wasClosed)
        clock.observe(Timestamp(microseconds: state.clock))
        let context = EngineContext(
            path: files.root.path, files: files, index: index, clock: clock, configuration: configuration)
        let engine = Engine(
            context: context, storeID: format.storeID, state: state, presence: presence, resources: nil)
        try engine.start(walksBehind: finding.walk == .behind)
        return engine
    }

    private static func openDatabases(
        _ files: StoreFiles, _ configuration: Configuration, _ environment: Environment
    ) throws -> Index {
        if let index = try Index(environment: environment, create: !configuration.isReadOnly) { return index }
        throw LarderError(
            .corruption, "the index in \(files.index.path) is incomplete", remedy: .rebuildIndex,
            path: files.index.path)
    }

    private static func openForWriting(
        _ files: StoreFiles, _ format: FormatFile, _ configuration: Configuration, _ environment: Environment,
        _ finding: IndexTrust.Finding, _ presence: Presence
    ) throws -> Engine {
        failpoint("open.mapped", at: files.root.path.string)
        let lock = try InstanceLock(staging: files.staging)
        failpoint("open.instance-locked", at: files.root.path.string)
        do {
            let ledger = try Ledger(
                directory: files.index, staging: files.staging, instance: lock.instance, isAlone: presence.isAlone)
            failpoint("open.slot-taken", at: files.root.path.string)
            // Until this store is closed, what it leaves is not to be trusted, whatever a power loss brings back.
            ledger.setClosedNote(0)
            if finding.wasClosed { try ledger.sync(files.index) }
            // Before anything is read from the index: if this process dies, the next open looks at the pages first.
            if finding.walk == .behind {
                ledger.pendingWalk = IndexTrust(files: files, configuration: configuration).run
            }
            return try openForWriting(files, format, configuration, environment, finding, presence, lock, ledger)
        } catch {
            // Else it would be taken for that of a process that died.
            try? lock.remove()
            throw error
        }
    }

    private static func openForWriting(
        _ files: StoreFiles, _ format: FormatFile, _ configuration: Configuration, _ environment: Environment,
        _ finding: IndexTrust.Finding, _ presence: Presence, _ lock: InstanceLock, _ ledger: Ledger
    ) throws -> Engine {
        let index = try openDatabases(files, configuration, environment)
        failpoint("open.databases-opened", at: files.root.path.string)
        try Salvage.discard(files)
        try environment.clearDeadReaders()
        let place = try place(of: files)
        let isCopy = ledger.place != 0 && ledger.place != place && !finding.isShared
        let state = try prepareState(index, configuration, finding, isCopy: isCopy)
        ledger.place = place
        failpoint("open.state-written", at: files.root.path.string)
        let clock = EntryClock(source: configuration.clock)
        clock.observe(Timestamp(microseconds: state.clock))
        let counted = ledger.quarantine
        ledger.correctQuarantine(from: counted, to: try files.allocated(in: files.quarantine))
        let room = try Room(files: files, index: index, ledger: ledger)
        let resources = Writing.Resources(
            lock: lock, ledger: ledger, room: room, reaper: try Reaper(trash: files.trash, ledger: ledger),
            pending: pendingSet(state.budget, configuration))
        let context = EngineContext(
            path: files.root.path, files: files, index: index, clock: clock, configuration: configuration)
        let engine = Engine(
            context: context, storeID: format.storeID, state: state, presence: presence, resources: resources)
        do {
            let writing = try engine.requireWriting()
            try writing.recovery.sweepDead(missingIsDead: presence.isAlone)
            engine.reach("open.swept")
            if let budget = configuration.budget { try engine.adopt(budget) }
            try writing.watermarks.steer()
            try engine.start(walksBehind: finding.walk == .behind)
            return engine
        } catch {
            // Ends the threads that run already; the failure itself is what the caller needs to hear.
            try? engine.close()
            throw error
        }
    }

    /// A number for the place that the store lies in, which a copy of its files does not share. Not the device, whose
    /// number another start of the machine may change.
    private static func place(of files: StoreFiles) throws(LarderError) -> UInt64 {
        let data = try FileSystem.status(Layout.data, in: files.index)?.inode ?? 0
        let root = try FileSystem.status(files.root.descriptor, path: files.root.path).inode
        return max(1, (data &* 0x9E37_79B9_7F4A_7C15) ^ root)
    }

    /// The counters, made for a new store; a new run of the machine makes unsynced body files suspect.
    private static func prepareState(
        _ index: Index, _ configuration: Configuration, _ finding: IndexTrust.Finding? = nil, isCopy: Bool = false
    ) throws -> StoreState {
        let boot = configuration.bootIdentity ?? BootIdentity.current
        return try index.environment.write { transaction in
            guard try transaction.reading.get(index.meta, Index.stateKey) != nil else {
                var fresh = StoreState()
                fresh.boot = boot
                try transaction.put(index.meta, Index.stateKey, fresh.bytes)
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

    private static func pendingSet(_ budget: Budget, _ configuration: Configuration) -> PendingSet {
        let limits = budget.batchLimits(configuration.pendingLimit)
        let clock = SystemClock()
        return PendingSet(
            memoryLimit: limits.memory, countLimit: limits.count,
            delay: UInt64(min(max(0, configuration.commitDelay.microseconds), 86_400_000_000)) * 1000,
            uptime: { clock.uptime() })
    }

    private static func openFailure(_ error: LMDBError, _ files: StoreFiles) -> LarderError {
        let data = files.index.path(of: Layout.data)
        if error.isUnknownLibrary {
            return LarderError(
                .unsupported,
                "this program runs with LMDB \(LMDBLibrary.current), whose files Larder does not know: install LMDB 0.9 "
                    + "(0.9.17 or later) or 1.x, not a development version",
                path: data, cause: error)
        }
        if error.isDamage {
            return LarderError(
                .corruption,
                "\(data) is not a readable index", remedy: .rebuildIndex,
                path: data, cause: error)
        }
        if error.isNoSpace {
            return LarderError(
                .noSpace, "no space left to open the index \(data): free some disk space", path: data, cause: error)
        }
        // LMDB locks a byte of `lock.mdb` for the id of each process that reads (mdb_reader_pid).
        if error.function == "mdb_txn_begin", error.code == EAGAIN || error.code == EACCES {
            return LarderError(
                .locked,
                "\(data) is open in another container, by a process with the same process id (\(getpid())): let the containers "
                    + "share a PID namespace, or give each a store of its own",
                path: data, cause: error)
        }
        if error.code == EACCES || error.code == EPERM {
            return LarderError(
                .io, "no permission to open the index \(data): the store must belong to the user who opens it",
                path: data, cause: error)
        }
        return LarderError(.io, "cannot open the index \(data)", path: data, cause: error)
    }
}
