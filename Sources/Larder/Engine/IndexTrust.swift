import LMDB
import SystemPackage

/// Whether the pages of an index may be given to LMDB unread.
///
/// A store that closes marks `data.mdb` with a time of its own and notes in the ledger what the file then looks like to
/// fstat(2). Whoever opens it next and finds the file so knows that nobody wrote to it since. In all other cases the pages
/// are walked first: see `docs/recovery.md`, "Damage in the pages of the index".
struct IndexTrust {
    let files: StoreFiles
    let configuration: Configuration

    /// A file of up to so many pages is walked at every open: it takes about a millisecond.
    static let smallPages: UInt64 = 1024

    /// Walks over the pages unless there is a reason to trust them. Throws `corruption` with the first damage.
    func require(_ environment: Environment) throws {
        guard try isWalkDue(environment) else { return }
        do {
            // The heads of big values cost a read each, which a large index has too many of.
            let isSmall = environment.lastPage < Self.smallPages
            let trees = try environment.checkPages(isSmall || configuration.indexCheck == .always ? .heads : .placed)
            for (name, order) in Index.names {
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

    /// The bytes that the file has, and those that it has by its head, where they are more. Only pages that are free may be
    /// missing: LMDB does not write those that a transaction takes and gives back.
    private func shortage(_ environment: Environment) throws -> (size: Int64, needed: Int64)? {
        // The head first: another process may be making the file longer just now, and pages are written before the head.
        let needed = Int64(environment.lastPage + 1) * Int64(environment.pageSize)
        let size = try FileSystem.status(
            raw: environment.dataDescriptor, path: files.index.path(of: Layout.data)
        ).size
        return size < needed ? (size, needed) : nil
    }

    static func error(_ damage: PageDamage, _ files: StoreFiles) -> LarderError {
        var error = IndexFile.damaged(files.index.path(of: Layout.data), "is damaged at \(damage)")
        error.cause = damage
        return error
    }

    func isWalkDue(_ environment: Environment) throws -> Bool {
        if configuration.indexCheck == .always || environment.lastPage < Self.smallPages { return true }
        if try shortage(environment) != nil { return true }
        let note = try Ledger.closedNote(files.index)
        if try note != 0 && note == fingerprint(environment) { return false }
        // Somebody else who is at work has looked at it. But the death of a process may have been the index's doing.
        let (alive, dead) = try instances()
        return !alive || dead
    }

    private func instances() throws -> (alive: Bool, dead: Bool) {
        var (alive, dead) = (false, false)
        for name in try files.staging.names() where name.hasSuffix(".lock") {
            guard let instance = Layout.instance(ofStaged: name) else { continue }
            if try InstanceLock.seize(instance, staging: files.staging) == nil { alive = true } else { dead = true }
        }
        return (alive, dead)
    }

    // MARK: The note

    /// Marks the file and returns what to note; 0 if the file system does not keep nanoseconds, so that a write within the
    /// same second would not show.
    func mark(_ environment: Environment) throws -> UInt64 {
        let path = files.index.path(of: Layout.data)
        // No write(2) leaves a time like this but by chance: it is not one of the system's ticks.
        let now = configuration.clock.now().microseconds.clamped(to: 0...(1 << 52))
        let time = now / 1_000_000 * 1_000_000_000 + Int64.random(in: 1..<1_000_000_000)
        try FileSystem.setModified(raw: environment.dataDescriptor, nanoseconds: time, path: path)
        guard try FileSystem.status(raw: environment.dataDescriptor, path: path).modifiedNanoseconds == time else {
            return 0
        }
        return try fingerprint(environment)
    }

    /// What fstat(2) says of the file in this run of the machine, as a number that is not 0.
    private func fingerprint(_ environment: Environment) throws -> UInt64 {
        let status = try FileSystem.status(
            raw: environment.dataDescriptor, path: files.index.path(of: Layout.data))
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for word in [
            UInt64(bitPattern: status.size), UInt64(bitPattern: status.modifiedNanoseconds),
            UInt64(bitPattern: status.changedNanoseconds), status.inode, environment.lastTransaction,
            configuration.bootIdentity ?? BootIdentity.current,
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
