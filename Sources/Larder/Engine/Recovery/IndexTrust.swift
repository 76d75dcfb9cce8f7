import LMDB
import SystemPackage

/// What an open may take for granted: whether the pages of the index may be given to LMDB unread, and whether
/// everything was on disk when the store was last closed.
///
/// The last store that closes syncs everything, marks `data.mdb` with a time of its own, and notes in the ledger what
/// the file then looks like to fstat(2). The next open that finds the file so knows that it was not written since, even
/// after a new start of the machine. See `docs/recovery.md`, "Damage in the pages of the index".
struct IndexTrust {
    let files: StoreFiles
    let configuration: Configuration

    /// When the pages are walked.
    enum Walk: Equatable {
        /// Not at all: they are as a store that closed left them, or another process has looked.
        case none
        /// Before anything is read from them.
        case first
        /// While the store is in use already.
        case behind
    }

    /// What an open has found out.
    struct Finding: Equatable {
        /// True if the store was closed properly and not changed since.
        var wasClosed: Bool
        /// True if another process has the store open.
        var isShared: Bool
        var walk: Walk
        /// Nanoseconds after which a walk that comes first continues behind the open; nil: it has all the time it
        /// needs.
        var limit: UInt64?
    }

    /// The walk that comes first has used up its time.
    private struct Overdue: Error {}

    /// Finds out, and walks if that has to come first. A walk that takes too long begins again behind the open.
    /// Throws `corruption` with the first damage.
    func require(_ environment: Environment) throws -> Finding {
        var finding = try find(environment)
        guard finding.walk == .first else { return finding }
        // The heads of big values cost a read each, which a large index has too many of.
        let isSmall = environment.lastPage < configuration.smallPages
        let clock = configuration.clock
        let (began, limit) = (clock.uptime(), finding.limit ?? .max)
        do {
            try walk(environment, isSmall || configuration.indexCheck == .always ? .heads : .placed) {
                if clock.uptime() &- began > limit { throw Overdue() }
            }
        } catch is Overdue {
            finding.walk = .behind
        }
        return finding
    }

    /// How long a walk may hold up an open after `deaths` processes in a row ended before theirs was finished.
    ///
    /// Most of them were killed: their successor must not take half a minute for that, or it is killed, too. If damage
    /// ended them, the walk reaches it sooner or later, because each open gives it more time.
    static func limit(afterDeaths deaths: UInt64) -> UInt64? {
        deaths > 4 ? nil : 1_000_000_000 << (2 * (max(1, deaths) - 1))
    }

    /// Walks over the pages. Throws `corruption` with the first damage, and whatever `pause` throws.
    /// - Parameter pause: called between pages.
    func walk(
        _ environment: Environment, _ bigValues: PageWalk<FilePages>.BigValues, pause: @escaping () throws -> Void
    ) throws {
        try readAhead(environment, pause)
        do {
            let trees = try Yielding.run(files) { poll in
                try withoutActuallyEscaping(poll) { poll in
                    try environment.checkPages(bigValues) {
                        try pause()
                        try poll()
                    }
                }
            }
            for (name, order, _) in Index.names {
                guard let found = trees[name], found != order else { continue }
                throw IndexFile.damaged(
                    files.index.path(of: Layout.data), "is damaged: the tree \(name) has keys of another kind")
            }
        } catch let damage as PageDamage {
            guard let (size, needed) = try shortage(environment) else { throw Self.error(damage, files) }
            var error = IndexFile.damaged(
                files.index.path(of: Layout.data), "is cut short: \(size) bytes of \(needed)")
            error.cause = damage
            throw error
        }
    }

    /// The walk reads page by page in the order of the trees: a cold file is read ten times as fast in one go. Not one
    /// that would fill the memory, which others need more.
    private func readAhead(_ environment: Environment, _ pause: () throws -> Void) throws {
        let bytes = Int64(environment.lastPage + 1) * Int64(environment.pageSize)
        guard bytes <= FileSystem.physicalMemory / 4 else { return }
        // The system reads no more than some MiB for one call.
        for offset in stride(from: 0, to: bytes, by: 1 << 20) {
            try pause()
            // Inside: the map must not move while its head is looked at.
            try environment.withDataDescriptor { descriptor in
                FileSystem.readAhead(raw: descriptor, offset: offset, length: min(1 << 20, bytes - offset))
            }
        }
    }

    /// The bytes that the file has, and those that it has by its head, where they are more. Only pages that are free
    /// may be missing: LMDB does not write those that a transaction takes and gives back.
    private func shortage(_ environment: Environment) throws -> (size: Int64, needed: Int64)? {
        // The head first: another process may be making the file longer just now, and pages are written before the
        // head.
        try environment.withDataDescriptor { descriptor in
            let needed = Int64(environment.lastPage + 1) * Int64(environment.pageSize)
            let size = try FileSystem.status(raw: descriptor, path: files.index.path(of: Layout.data)).size
            return size < needed ? (size, needed) : nil
        }
    }

    static func error(_ damage: PageDamage, _ files: StoreFiles) -> LarderError {
        var error = IndexFile.damaged(files.index.path(of: Layout.data), "is damaged at \(damage)")
        error.cause = damage
        return error
    }

    func find(_ environment: Environment) throws -> Finding {
        let note = try ClosedNote.read(files.index)
        let wasClosed = try note != 0 && note == fingerprint(environment, environment.latestTransaction())
        // Another process that uses the index has checked it. But a damaged index may have ended a process that died.
        let (alive, dead) = try instances()
        var walk = Walk.behind
        var limit: UInt64?
        if configuration.indexCheck == .always || environment.lastPage < configuration.smallPages {
            walk = .first
        } else if try shortage(environment) != nil {
            walk = .first
        } else if try wasClosed || alive && !dead && WalkRecord.pending(files.index) != run {
            walk = .none
        } else if !alive, try WalkRecord.pending(files.index) == run {
            // The last one died in this run of the machine before its walk was finished, or the walk found damage.
            walk = .first
            limit = try Self.limit(afterDeaths: WalkRecord.unfinished(files.index))
        }
        return Finding(wasClosed: wasClosed, isShared: alive, walk: walk, limit: limit)
    }

    /// This run of the machine, as a number that is not 0.
    var run: UInt64 { max(1, configuration.bootIdentity ?? BootIdentity.current) }

    private func instances() throws -> (alive: Bool, dead: Bool) {
        var (alive, dead) = (false, false)
        for name in try files.staging.ownFiles(.staging) where name.hasSuffix(".lock") {
            guard let instance = Layout.instance(ofStaged: name) else { continue }
            if try InstanceLock.isAlive(instance, staging: files.staging) { alive = true } else { dead = true }
        }
        return (alive, dead)
    }

    // MARK: The note

    /// Marks the file and returns what to note; 0 if the file system does not keep nanoseconds, so that a write within
    /// the same second would not show. Everything has to be on disk before.
    /// - Parameter last: the transaction up to which that is so.
    func mark(_ environment: Environment, last: UInt64) throws -> UInt64 {
        let path = files.index.path(of: Layout.data)
        // No write(2) leaves a time like this but by chance: it is not one of the system's ticks.
        let now = configuration.clock.now().microseconds.clamped(to: 0...(1 << 52))
        let time = now / 1_000_000 * 1_000_000_000 + Int64.random(in: 1..<1_000_000_000)
        try FileSystem.setModified(raw: environment.dataDescriptor, nanoseconds: time, path: path)
        guard try FileSystem.status(raw: environment.dataDescriptor, path: path).modifiedNanoseconds == time else {
            return 0
        }
        return try fingerprint(environment, last)
    }

    /// What fstat(2) says of the file, as a number that is not 0. The time of the last change of the inode is part of
    /// it, which no call can set.
    private func fingerprint(_ environment: Environment, _ last: UInt64) throws -> UInt64 {
        let status = try FileSystem.status(
            raw: environment.dataDescriptor, path: files.index.path(of: Layout.data))
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for word in [
            UInt64(bitPattern: status.size), UInt64(bitPattern: status.modifiedNanoseconds),
            UInt64(bitPattern: status.changedNanoseconds), status.inode, last,
        ] {
            hash = (hash ^ word) &* 0x9E37_79B9_7F4A_7C15
            hash ^= hash >> 29
        }
        return hash == 0 ? 1 : hash
    }
}

extension Int64 {
    fileprivate func clamped(to range: ClosedRange<Int64>) -> Int64 {
        Swift.min(Swift.max(self, range.lowerBound), range.upperBound)
    }
}
