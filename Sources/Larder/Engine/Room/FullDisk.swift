import Locks

/// What a store does where the file system is full, whatever its budget says: entries give way, those used longest ago
/// first, so that new ones can be stored.
///
/// Others may have filled the disk, a quota may be met, or no inode may be free. What cannot be freed ends in the
/// `noSpace` of the call that found the disk full, and so does a limit of the size of files (`EFBIG`), which displacing
/// does not change.
final class FullDisk: EnginePart {
    let context: EngineContext
    private let reaper: Reaper
    private let pending: PendingSet
    private let staged: StagedFiles
    private let space: IndexSpace
    private let reserve: IndexReserve
    private let ledger: Ledger
    private let displacement: Displacement
    private let recovery: Recovery
    private let quarantine: Quarantine
    /// Held by the thread whose file is the next to get room: two would take from each other what they free.
    private let turn = Monitor()
    /// Held by it too, and by commits that are given room.
    private let processTurn: ProcessTurn
    /// Threads that have their turn, or wait for it.
    private let crowd = Atomic<Int>(0)
    /// Those of them that are counted as staging, too.
    private let stagers = Atomic<Int>(0)
    /// Held by the thread that frees. No one waits for a commit under it.
    private let freeing = Monitor()
    /// Commits that are given room. Files wait for them: without commits, nothing that is written can be displaced.
    private let commits = Atomic<Int>(0)
    /// How often one call frees for a file.
    private static let rounds = 32
    /// How often one call frees for a commit.
    private static let roundsOfCommit = 10
    /// How often a commit waits for other processes, in steps of 5 ms.
    private static let waitsOfCommit = 100
    /// How often one call has what is pending committed.
    private static let flushes = 50
    /// How often one call waits for what is submitted at this moment, in steps of 2 ms.
    private static let waits = 5
    /// How often it waits while files are being staged: two seconds in all.
    private static let waitsForStaging = 1000
    /// What a first round frees for a commit, which does not say what it needs; each further one frees twice as much.
    private static let firstRound: Int64 = 16 << 10
    /// What the index gives back at least, if it has as much: each time, all its free pages are looked at.
    private static let batch: Int64 = 512 << 10
    /// What is freed for a file beyond its bytes: the commit that makes it an entry writes some pages.
    private static let pages: Int64 = 64 << 10
    /// With at most this many free inodes, and bytes to spare, it is the inodes that are short.
    private static let fewInodes: Int64 = 64

    init(
        context: EngineContext, reaper: Reaper, pending: PendingSet, staged: StagedFiles,
        space: IndexSpace, reserve: IndexReserve, ledger: Ledger, displacement: Displacement, recovery: Recovery,
        quarantine: Quarantine
    ) {
        self.context = context
        self.reaper = reaper
        self.pending = pending
        self.staged = staged
        self.space = space
        self.reserve = reserve
        self.ledger = ledger
        processTurn = ProcessTurn(context.files.staging)
        self.displacement = displacement
        self.recovery = recovery
        self.quarantine = quarantine
    }

    /// Runs `body`, which writes to a file in `staging/`, and again each time that room was made for it. It should be
    /// short: others wait for their turn.
    /// - Parameters:
    ///   - bytes: what it writes.
    ///   - whole: a file that it writes from the beginning: empty while it waits, so that another one can be completed.
    ///   - isStaging: true inside `StagedFiles.whileStaging`.
    func writing<R>(
        _ bytes: Int64, whole: OwnedDescriptor? = nil, isStaging: Bool = false, _ body: () throws -> R
    ) throws -> R {
        // While others wait for room, what they are given must not go to this one. Where disk space is scarce, they may
        // be other processes.
        let isFirst = crowd.load(ordering: .acquiring) == 0
        if try commits.load(ordering: .acquiring) == 0 && (isFirst && reserve.wantedBytes == 0 || hasPlenty(for: bytes))
        {
            do {
                try reserve.require()
                return try body()
            } catch let full as LarderError where full.isOfFullDisk {
                empty(whole)
            }
        }
        crowd.wrappingAdd(1, ordering: .acquiringAndReleasing)
        if isStaging { stagers.wrappingAdd(1, ordering: .acquiringAndReleasing) }
        defer {
            crowd.wrappingSubtract(1, ordering: .acquiringAndReleasing)
            if isStaging { stagers.wrappingSubtract(1, ordering: .acquiringAndReleasing) }
        }
        var effort = Effort()
        return try turn.locked {
            while true {
                if let result = try processTurn.held({ try writeInTurn(bytes, whole, &effort, body) }) { return result }
                usleep(2000)
            }
        }
    }

    /// How much a call has tried.
    private struct Effort {
        var (rounds, flushes, waits) = (0, 0, 0)
        /// The commit at which nothing could be freed.
        var futile: UInt64?
    }

    /// Nil if what others do may help, in a moment.
    private func writeInTurn<R>(
        _ bytes: Int64, _ whole: OwnedDescriptor?, _ effort: inout Effort, _ body: () throws -> R
    ) throws -> R? {
        while true {
            let seen = pending.completedGeneration
            do {
                // Under the lock, as what is given back for a displacement is not for files.
                return try freeing.locked {
                    while commits.load(ordering: .acquiring) > 0 { freeing.wait() }
                    try reserve.require()
                    return try body()
                }
            } catch let full as LarderError where full.isOfFullDisk {
                empty(whole)
                let latest = try? index.environment.latestTransaction()
                if effort.rounds < Self.rounds, latest == nil || effort.futile != latest {
                    if isFreed(bytes + Self.pages) {
                        effort.rounds += 1
                        continue
                    }
                    effort.futile = latest
                }
                // All there is to displace may be staged files, which can go once they are committed.
                let generation = pending.requestFlush()
                if generation != seen, effort.flushes < Self.flushes {
                    effort.flushes += 1
                    pending.wait(for: generation)
                    continue
                }
                let isStaging = staged.stagingCount > stagers.load(ordering: .acquiring) || ledger.othersTotal > 0
                if effort.waits >= (isStaging ? Self.waitsForStaging : Self.waits) { throw full }
                effort.waits += 1
                return nil
            }
        }
    }

    /// True if the file system has little room.
    func isNearlyFull() throws -> Bool { try FileSystem.freeBytes(files.staging) < IndexReserve.scarce }

    /// True if others are not kept from room by what takes `bytes`.
    private func hasPlenty(for bytes: Int64) throws -> Bool {
        let space = try FileSystem.space(files.staging)
        return space.free > 2 * (bytes + Self.pages + reserve.wantedBytes) && space.freeInodes > Self.fewInodes
    }

    private func empty(_ file: OwnedDescriptor?) {
        if let file { try? FileSystem.truncate(file, to: 0, path: nil) }
    }

    /// Runs `body`, which commits a transaction that stores something, and again each time that room was made for it.
    /// - Parameter body: given true when nothing else may go: files that are on disk already, and that only a commit
    ///   makes displaceable, may have the reserve of the index then.
    func committing<R>(_ body: (_ isLast: Bool) throws -> R) throws -> R {
        do { return try body(false) } catch let full as LarderError where full.isOfFullDisk {}
        commits.wrappingAdd(1, ordering: .acquiringAndReleasing)
        defer {
            freeing.locked {
                commits.wrappingSubtract(1, ordering: .acquiringAndReleasing)
                freeing.signal()
            }
        }
        var rounds = 0
        for _ in 0..<Self.waitsOfCommit {
            let result: R? = try processTurn.held {
                while true {
                    do { return try body(false) } catch let full as LarderError where full.isOfFullDisk {
                        // What this one has freed is not freed again each time that it waited for others.
                        if rounds == Self.roundsOfCommit || !isFreed(Self.firstRound << rounds) { return nil }
                        rounds += 1
                    }
                }
            }
            if let result { return result }
            // What other processes have staged can be displaced once they have committed it.
            if ledger.othersTotal == 0 { break }
            usleep(5000)
        }
        return try processTurn.held { try body(true) }
    }

    /// Frees about `bytes`; false if nothing could go, also because the index cannot be written either: what the caller
    /// has met is the error to tell.
    private func isFreed(_ bytes: Int64) -> Bool {
        do {
            return try freeing.locked { try free(bytes) }
        } catch {
            logger(.displacement).debug("nothing is displaced on a full disk", metadata: ["error": "\(error)"])
            return false
        }
    }

    private func free(_ bytes: Int64) throws -> Bool {
        reaper.drain()
        // What the dead left is worth a try, but may need a commit.
        try? recovery.sweepDead()
        let found = try FileSystem.space(files.staging)
        if found.freeInodes == 0 {
            let isDisplaced = try displacement.displaceFile()
            reaper.drain()
            return isDisplaced
        }
        // Another thread has freed one.
        if found.freeInodes <= Self.fewInodes, found.free > 2 * bytes { return true }
        // A removal may have used up the reserve, and no commit that stores anything goes ahead without it.
        try reserve.look(context.budget(), isFull: true)
        try? reserve.require()
        defer { try? reserve.require() }
        let bytes = bytes + reserve.missing
        let before = try FileSystem.freeBytes(files.staging)
        // With bytes to spare a quota is met, or others gave some back just now.
        var lack = before >= bytes ? bytes : bytes - before
        // Pages of the index that no one uses go before entries do.
        if before < bytes {
            lack -= (try? space.giveBack(max(lack, Self.batch))) ?? 0
            if lack <= 0 { return true }
        }
        // Fewer bytes are of no use, so nothing goes if there are not that many.
        if try !canFree(lack) { return try quarantine.trim(to: 0) >= lack }
        let displaced = try displacement.displace(bytes: lack)
        reaper.drain()
        if displaced > 0 {
            // Of small bodies the pages are left.
            let left = bytes - (try FileSystem.freeBytes(files.staging))
            if left > 0 { _ = try? space.giveBack(left) }
            return true
        }
        return try quarantine.trim(to: 0) > 0 || FileSystem.freeBytes(files.staging) > before
    }

    /// False if displacing all that may go does not free as many bytes.
    private func canFree(_ bytes: Int64) throws -> Bool {
        try displaceable(bytes).bytes >= bytes
    }
}
