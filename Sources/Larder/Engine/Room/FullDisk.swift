import Synchronization

/// What a store does where the file system is full, whatever its budget says: entries give way, those used longest ago
/// first, so that new ones can be stored.
///
/// Others may have filled the disk, a quota may be met, or no inode may be free. What cannot be freed ends in the
/// `noSpace` of the call that found the disk full, and so does a limit of the size of files (`EFBIG`), which displacing
/// does not change.
final class FullDisk: EnginePart, @unchecked Sendable {
    // SAFETY: `commits` is touched only under `freeing`; the rest is immutable, or safe by itself.
    let context: EngineContext
    private let ledger: Ledger
    private let reaper: Reaper
    private let pending: PendingSet
    private let staged: StagedFiles
    private let space: IndexSpace
    private let displacement: Displacement
    private let recovery: Recovery
    private let quarantine: Quarantine
    /// Held by the thread whose file is the next to get room: two would take from each other what they free.
    private let turn = Monitor()
    /// Threads that have their turn, or wait for it.
    private let crowd = Atomic<Int>(0)
    /// Held by the thread that frees. No one waits for a commit under it.
    private let freeing = Monitor()
    /// Commits that are given room. Files wait for them: without commits, nothing that is written can be displaced.
    private var commits = 0
    /// How often one call frees.
    private static let rounds = 8
    /// How often one call has what is pending committed.
    private static let flushes = 50
    /// How often one call waits for room that is reserved and may become an entry, in steps of 2 ms.
    private static let waits = 25
    /// How often it waits for files that are being staged: two seconds in all.
    private static let waitsForStaging = 1000
    /// What a first round frees for a commit, which does not say what it needs; each further one frees twice as much.
    private static let firstRound: Int64 = 128 << 10
    /// What is freed for a file beyond its bytes: the commit that makes it an entry writes some pages.
    private static let pages: Int64 = 64 << 10

    init(
        context: EngineContext, ledger: Ledger, reaper: Reaper, pending: PendingSet, staged: StagedFiles,
        space: IndexSpace, displacement: Displacement, recovery: Recovery, quarantine: Quarantine
    ) {
        self.context = context
        self.ledger = ledger
        self.reaper = reaper
        self.pending = pending
        self.staged = staged
        self.space = space
        self.displacement = displacement
        self.recovery = recovery
        self.quarantine = quarantine
    }

    /// Runs `body`, which writes to a file in `staging/`, and again each time that room was made for it.
    /// - Parameters:
    ///   - bytes: what it writes.
    ///   - whole: a file that it writes from the beginning: empty while it waits, so that another one can be completed.
    func writing<R>(_ bytes: Int64, whole: OwnedDescriptor? = nil, _ body: () throws -> R) throws -> R {
        // While others wait for room, what they are given must not go to this one.
        if crowd.load(ordering: .acquiring) == 0 {
            do { return try body() } catch let full as LarderError where full.isOfFullDisk { empty(whole) }
        }
        crowd.wrappingAdd(1, ordering: .acquiringAndReleasing)
        defer { crowd.wrappingSubtract(1, ordering: .acquiringAndReleasing) }
        return try turn.locked {
            var (rounds, flushes, waits) = (0, 0, 0)
            while true {
                freeing.locked { while commits > 0 { freeing.wait() } }
                let seen = pending.completedGeneration
                do { return try body() } catch let full as LarderError where full.isOfFullDisk {
                    empty(whole)
                    if rounds < Self.rounds, isFreed(bytes + Self.pages) {
                        rounds += 1
                        continue
                    }
                    // All there is to displace may be staged files, which can go once they are committed.
                    let generation = pending.requestFlush()
                    if generation != seen, flushes < Self.flushes {
                        flushes += 1
                        pending.wait(for: generation)
                        continue
                    }
                    let isStaging = staged.stagingCount > crowd.load(ordering: .acquiring)
                    guard ledger.own > 0, waits < (isStaging ? Self.waitsForStaging : Self.waits) else { throw full }
                    waits += 1
                    usleep(2000)
                }
            }
        }
    }

    private func empty(_ file: OwnedDescriptor?) {
        if let file { try? FileSystem.truncate(file, to: 0, path: nil) }
    }

    /// Runs `body`, which commits a transaction that stores something, and again each time that room was made for it.
    func committing<R>(_ body: () throws -> R) throws -> R {
        do { return try body() } catch let full as LarderError where full.isOfFullDisk {}
        freeing.locked { commits += 1 }
        defer {
            freeing.locked {
                commits -= 1
                freeing.signal()
            }
        }
        var bytes = Self.firstRound
        for _ in 0..<Self.rounds {
            do { return try body() } catch let full as LarderError where full.isOfFullDisk {
                if !isFreed(bytes) { throw full }
                bytes *= 2
            }
        }
        return try body()
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
        try recovery.sweepDead()
        let before = try FileSystem.freeBytes(files.staging)
        // With bytes to spare it is an inode that is lacking, or a quota is met.
        let isOther = before >= bytes
        let lack = isOther ? bytes : bytes - before
        // Pages of the index that no one uses go before entries do.
        if !isOther, try space.giveBack(lack) >= lack { return true }
        let displaced = try displacement.displace(bytes: lack, files: isOther ? 1 : 0)
        reaper.drain()
        if displaced > 0 {
            // Of small bodies the pages are left.
            let left = bytes - (try FileSystem.freeBytes(files.staging))
            if left > 0 { _ = try space.giveBack(left) }
            return true
        }
        return try quarantine.trim(to: 0) > 0 || FileSystem.freeBytes(files.staging) > before
    }
}
