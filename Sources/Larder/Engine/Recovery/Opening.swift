import Failpoints
import LMDB
import SystemPackage

/// Opens a store: looks at the directory, the index and what others left, takes what an engine needs, and makes one.
enum Opening {
    /// Opens the store at `path`, creating it unless read-only. Refuses a directory that is not a store, and a store
    /// that is newer than this code, without changing it.
    /// - Parameter lock: the directory, already locked; nil locks it for the time of the call.
    static func open(
        _ path: FilePath, _ configuration: Configuration, lock: OwnedDescriptor? = nil
    ) throws -> Engine {
        try configuration.validate()
        let root = try prepareRoot(path, configuration)
        // One process at a time creates or opens; the lock ends with this scope.
        let guardFile =
            try lock
            ?? Fork.openToLock { () throws(LarderError) -> OwnedDescriptor in
                try FileSystem.open(".", in: root, flags: O_RDONLY | O_DIRECTORY)
            }
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
            let (format, isUnfinished) = try Creation.prepareLayout(root, configuration)
            let cipher = try StoreKey.cipher(configuration, format, isNew: isUnfinished, in: root)
            // Left by a change of the key that was interrupted.
            if cipher != nil, !configuration.isReadOnly { try FileSystem.unlink(Layout.newEncryption, in: root) }
            let files = try StoreFiles(root: root, cipher)
            try DirectoryTrust.requireNoLinks(files)
            let hadIndex = try FileSystem.status(Layout.data, in: files.index).map { $0.size > 0 } ?? false
            let engine = try open(files, format, configuration, isUnfinished: isUnfinished)
            if !configuration.isReadOnly {
                try tellForeign(engine)
                if isNew, configuration.tellsUnlimited { try tellUnlimited(engine) }
            }
            if !hadIndex, !isNew { try tellLostIndex(engine) }
            return engine
        }
    }

    static func noStore(at path: FilePath) -> LarderError {
        LarderError(
            .invalidArgument, "there is no store at \(path): check the path, or put something first", path: path)
    }

    static func notADirectory(_ path: FilePath) -> LarderError {
        LarderError(
            .invalidArgument, "\(path) is a file, not a directory: choose another path or remove it", path: path)
    }

    private static func prepareRoot(_ path: FilePath, _ configuration: Configuration) throws(LarderError) -> Directory {
        guard let status = try FileSystem.status(path: path) else { throw noStore(at: path) }
        guard status.isDirectory else { throw notADirectory(path) }
        let root = try Directory(path: path)
        try DirectoryTrust.requirePrivate(root, configuration)
        return root
    }

    /// A new store without a byte budget: it displaces only what has expired.
    private static func tellUnlimited(_ engine: Engine) throws {
        guard try engine.budget().bytes == .unlimited else { return }
        engine.logger(.opening).notice(
            "the new store has no budget and may fill the disk: see `Configuration.budget` and `Store.setBudget(_:)`",
            metadata: ["path": "\(engine.path)"])
    }

    /// Names in the directory that are not the store's own: an operator may have meant another place.
    private static func tellForeign(_ engine: Engine) throws(LarderError) {
        let foreign = try engine.files.root.names().filter { !Layout.isOwn($0, in: .root) && !Layout.isOfVolume($0) }
        if foreign.isEmpty { return }
        engine.logger(.opening).notice(
            "the directory of the store holds files of someone else: they stay, and count towards no limit",
            metadata: ["path": "\(engine.path)", "files": "\(foreign.sorted().prefix(20).joined(separator: ", "))"])
    }

    /// The index of a store that was there before is gone: it continues empty, and says so if bodies are left.
    private static func tellLostIndex(_ engine: Engine) throws(LarderError) {
        var count = 0
        for shard in try engine.files.shards() { count += try shard.names(of: .shard).count }
        if count == 0 { return }
        engine.logger(.opening).error(
            "the index was gone: the store starts empty, and its budget is lost. `Store.collect()`, or 'cachectl gc', removes files that nothing names",
            metadata: ["path": "\(engine.path)", "files": "\(count)"])
    }

    private static func open(
        _ files: StoreFiles, _ format: FormatFile, _ configuration: Configuration, isUnfinished: Bool
    ) throws -> Engine {
        let presence = try Presence(files.index)
        try IndexFile.validate(files.index)
        var options = Environment.Options()
        if let size = configuration.indexMapSize { options.mapSize = Int(clamping: size.bytes) }
        options.firstMapSize = configuration.firstMapSize
        options.isReadOnly = configuration.isReadOnly
        // Beside a writer a reader without a row in the lock file reads pages that are reused: only where none can be.
        if try configuration.isReadOnly && !IndexLockFile.canBeUsed(files) {
            options.skipsLocking = true
        } else {
            try IndexLockFile.require(files, presence)
            try IndexLockFile.allocate(files.index)
        }
        let hasNoIndex = try !configuration.isReadOnly && FileSystem.status(Layout.data, in: files.index) == nil
        let environment: Environment
        do {
            environment = try Environment(path: files.index.path.string, options: options)
        } catch {
            throw LarderError(opening: error, files)
        }
        if let cipher = files.cipher { environment.sealRows(with: cipher.rows) }
        do {
            if !configuration.isReadOnly {
                try FileSystem.makePrivate(raw: environment.dataDescriptor, path: files.index.path(of: Layout.data))
            }
            if isUnfinished { try Creation.finish(format, files, configuration, environment) }
            var finding = try IndexTrust(files: files, configuration: configuration).require(environment)
            try IndexProof.require(environment, files)
            // It was made and synced just now.
            if isUnfinished { finding.wasClosed = true }
            if hasNoIndex, !isUnfinished { try Sync.names(files.index) }
            if configuration.isReadOnly {
                return try openForReading(files, format, configuration, environment, finding, presence)
            }
            return try openForWriting(files, format, configuration, environment, finding, presence)
        } catch let error as LMDBError {
            environment.close()
            throw LarderError(opening: error, files)
        } catch {
            environment.close()
            throw error
        }
    }

    private static func openForReading(
        _ files: StoreFiles, _ format: FormatFile, _ configuration: Configuration, _ environment: Environment,
        _ finding: IndexTrust.Finding, _ presence: Presence
    ) throws -> Engine {
        failpoint("open.mapped", at: files.root.path.string)
        let index = try openDatabases(files, configuration, environment)
        let clock = EntryClock(configuration)
        var state = try environment.read { try index.state($0) }
        state.note(
            boot: configuration.bootIdentity ?? BootIdentity.current, isShared: finding.isShared,
            wasClosed: finding.wasClosed)
        clock.observe(state)
        let context = EngineContext(
            path: files.root.path, files: files, index: index, clock: clock, configuration: configuration,
            counterFile: CounterFile(privateIn: files.index, at: clock.now()))
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
            ClosedNote(ledger.words).set(0)
            if finding.wasClosed { try ledger.words.sync(files.index) }
            // Before anything is read from the index: if this process dies, the next open looks at the pages first.
            switch finding.walk {
            case .behind:
                WalkRecord(ledger.words).begin(
                    run: IndexTrust(files: files, configuration: configuration).run, isAlone: !finding.isShared)
            // Not that of another process which has the store open.
            case .first where !finding.isShared: WalkRecord(ledger.words).end()
            case .first, .none: break
            }
            do {
                return try openForWriting(files, format, configuration, environment, finding, presence, lock, ledger)
            } catch {
                if finding.walk == .behind, !finding.isShared { WalkRecord(ledger.words).forget() }
                throw error
            }
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
        let known = ledger.words.storePlace
        let isCopy = known != 0 && known != place && !finding.isShared
        let state = try Creation.prepareState(index, configuration, finding, isCopy: isCopy) {
            try IndexProof.write($0, environment, files)
        }
        ledger.words.storePlace = place
        failpoint("open.state-written", at: files.root.path.string)
        let clock = EntryClock(configuration)
        clock.observe(state)
        let counted = QuarantineBytes(ledger).count
        QuarantineBytes(ledger).correct(from: counted, to: try files.allocated(in: files.quarantine, .quarantine))
        let counters = CounterFile(sharedIn: files.index, slot: ledger.slot, at: clock.now())
        let room = try Room(files: files, index: index, ledger: ledger)
        let resources = Engine.Writing.Resources(
            lock: lock, ledger: ledger, room: room, reaper: Reaper(trash: files.trash, ledger: ledger),
            pending: pendingSet(state.budget, configuration))
        let context = EngineContext(
            path: files.root.path, files: files, index: index, clock: clock, configuration: configuration,
            counterFile: counters)
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

    private static func pendingSet(_ budget: Budget, _ configuration: Configuration) -> PendingSet {
        let limits = budget.batchLimits(configuration.pendingLimit)
        let clock = SystemClock()
        return PendingSet(
            memoryLimit: limits.memory, countLimit: limits.count,
            delay: UInt64(min(max(0, configuration.commitDelay.microseconds), 86_400_000_000)) * 1000,
            uptime: { clock.uptime() })
    }

}
