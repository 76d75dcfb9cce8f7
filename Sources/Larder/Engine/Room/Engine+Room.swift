import LMDB
import Synchronization

extension Engine {
    /// Takes `bytes` of the budget for a file to be staged, displacing for it where necessary.
    /// Throws `noSpace` when nothing more can go, `tooLarge` when it could never fit.
    func reserve(_ bytes: Int64, for key: Key?, _ writing: Writing) throws {
        for _ in 0..<200 {
            let seen = writing.pending.completedGeneration
            // First take, then look: of two processes that both want the last room, none gets it, and both make more.
            writing.ledger.add(bytes)
            let excess: Int64
            do {
                let state = try state()
                if bytes > state.budget.usableBytes {
                    throw LarderError(
                        .tooLarge,
                        "a body of \(ByteCount(bytes).exactly) does not fit the byte budget of \(state.budget.bytes.exactly) of \(path)",
                        remedy: .raiseBudget, path: path, key: key)
                }
                excess = try writing.room.excess(adding: 0, state, usable: usableBytes(state.budget, writing))
            } catch {
                writing.ledger.add(-bytes)
                throw error
            }
            reach("reserve.taken")
            if excess == 0 { return }
            writing.ledger.add(-bytes)
            let wasHeld = snapshots.mayBeHeld
            let hasMadeRoom = try makeRoom(bytes, writing) {
                try writing.room.excess(adding: bytes, $0, usable: self.usableBytes($0.budget, writing))
            }
            if hasMadeRoom || snapshots.mayBeHeld != wasHeld { continue }
            // All there is to displace may be files that are staged and not committed yet.
            let generation = writing.pending.requestFlush()
            // Nothing is pending, and nothing was committed since the look at the index: there is no more.
            if generation == seen, !waitForOthers(writing) { throw noRoom() }
            writing.pending.wait(for: generation)
        }
        throw noRoom()
    }

    /// Runs `body`; where the file system turns out to be full, displaces entries and runs it again, a few times.
    ///
    /// A budget does not say what others leave on the disk, and there may be none: a cache on a full disk gives up what
    /// was used longest ago, rather than refuse new entries. Throws the `noSpace` of `body` where nothing can go, and
    /// where a limit of the size of files is met (`EFBIG`), which displacing does not change.
    func displacingWhenFull<R>(
        _ bytes: @autoclosure () throws -> Int64, _ writing: Writing, _ body: () throws -> R
    ) throws -> R {
        for _ in 0..<8 {
            do {
                return try body()
            } catch let full as LarderError where full.isOfFullDisk {
                do {
                    guard try makeRoom(max(bytes(), 256 << 10), writing) else { throw full }
                } catch {
                    // The index cannot be written either: the first failure is the one to tell.
                    throw full
                }
            }
        }
        return try body()
    }

    /// Frees about `bytes`; false if nothing could be freed. One caller of a process at a time; the next looks again
    /// first.
    /// - Parameter isMissing: what is still missing, for room that has to be on the file system; nil if free pages of
    ///   the index do as well.
    func makeRoom(
        _ bytes: Int64, _ writing: Writing, isMissing: ((StoreState) throws -> Int64)? = nil
    ) throws -> Bool {
        try roomLock.locked {
            writing.reaper.drain()
            try sweepDead(writing)
            noteUses(writing)
            let before = try writing.room.claimed(state())
            let freeBefore = try indexFree()
            let isHeld = try heldSnapshot(writing) != nil
            guard let isMissing else {
                // What younger snapshots left is all that a removal gives beside a held one.
                if isHeld, try giveBack(bytes + slack()) >= bytes { return true }
                let displaced = try displace(bytes: bytes + slack(), writing)
                // Before this fails, it gives up bytes that are of no use.
                if displaced == 0, try trimQuarantine(to: 0, writing) > 0 { return true }
                writing.reaper.drain()
                // Puts reuse free pages, unless they are too scattered: then they go back to the file system.
                let data = try writing.room.dataAllocated()
                let free = try indexFree()
                let punched = isHeld || free > data / 6 ? try giveBack(max(bytes, data / 16)) : 0
                return displaced > 0 || punched > 0 || !isHeld && free > freeBefore
            }
            var target = try isMissing(state())
            if target == 0 { return true }
            // What is free already comes first: displacing for bytes that only have to be given back would lose
            // entries. Some free pages stay, as inline bodies will want them: what files take the one time, rows take
            // the next.
            let spare = try freeBefore - freeReserve()
            if spare >= min(target, 1 << 20) {
                _ = try giveBack(min(target, spare), leastRun: Self.longRun)
                target = try isMissing(state())
                if target == 0 { return true }
            }
            let displaced = try displace(bytes: min(target, 32 << 20) + 2 * slack(), writing)
            if displaced == 0, try trimQuarantine(to: 0, writing) > 0 { return true }
            writing.reaper.drain()
            target = try isMissing(state())
            // Single pages are the last resort: a hole costs as much as one of a hundred pages.
            if target > 0 {
                // With some for the files to come.
                _ = try giveBack(target + slack(), leastRun: displaced > 0 && !isHeld ? Self.longRun : 1)
            }
            let state = try state()
            if try writing.room.claimed(state) < before { return true }
            // If the budget was lowered, displacement continues until the store fits, but not while a reader holds a
            // snapshot.
            return try displaced > 0 && (before <= state.budget.bytes.bytes || !isSnapshotHeld())
        }
    }

    /// Other processes may hold room for a moment: files they stage, or are about to unlink. True after a short wait if
    /// so; callers bound how often they ask.
    func waitForOthers(_ writing: Writing) -> Bool {
        guard writing.ledger.othersTotal > 0 else { return false }
        usleep(2000)
        return true
    }

    /// What is freed beyond what is needed, so that the next put finds room: a 64th of the budget, 64 KiB to 8 MiB;
    /// 512 KiB where there is no budget, and the disk is full.
    func slack() throws -> Int64 {
        let budget = try state().budget.bytes
        return budget == .unlimited ? 512 << 10 : min(max(budget.bytes / 64, 64 << 10), 8 << 20)
    }

    /// Free pages that room for files leaves alone: a 16th of the budget.
    private func freeReserve() throws -> Int64 {
        let budget = try state().budget
        return budget.bytes == .unlimited ? 0 : budget.bytes.bytes / 16
    }

    /// Pages in a row that are worth a hole.
    static let longRun = 4

    /// Gives at least `bytes` of free pages back to the file system where there are that many: long runs first.
    /// - Parameter leastRun: shorter runs stay.
    func giveBack(_ bytes: Int64, leastRun: Int = 1) throws -> Int64 {
        var given: Int64 = 0
        for minimumRun in [Self.longRun, 1] where minimumRun >= leastRun {
            while given < bytes {
                let step = try punch(upTo: bytes - given, minimumRun: minimumRun)
                if step <= 0 { break }
                given += step
            }
        }
        return given
    }

    /// Bytes of free pages in the index file that are still on disk.
    func indexFree() throws -> Int64 {
        try read { transaction in
            let environment = index.environment
            let live = try environment.usedPages(in: transaction, databases: index.databases)
            let status = try FileSystem.status(raw: environment.dataDescriptor, path: nil)
            return max(0, status.allocated - Int64(live * environment.pageSize))
        }
    }

    /// Displaces entries until about `bytes` are free or nothing more may go; returns how many went. Batches of at most
    /// 256, so that a put of another thread never waits long for the writer lock.
    @discardableResult
    func displace(bytes: Int64, _ writing: Writing) throws -> Int {
        var freed: Int64 = 0
        var count = 0
        while freed < bytes {
            let batch = try displaceBatch(limit: try removalLimit(), bytes: bytes - freed, writing)
            if batch.isEmpty { break }
            count += batch.count
            freed += batch.freed
        }
        return count
    }

    /// How many removals one transaction may hold, so that the pages it copies fit the headroom: 20 pages each at
    /// worst.
    func removalLimit() throws -> Int {
        let budget = try state().budget
        return budget.bytes == .unlimited ? 256 : Int(min(budget.changesInHeadroom, 256))
    }

    /// How long displacement that does not fit the budget waits for readers, in steps of 2 ms. While a snapshot is
    /// held, the pages that victims leave cannot be used, and displacing on would empty the store and grow it.
    private static let waitsForReaders = 25

    /// Waits for readers that hold pages which later commits have freed; false if there are none, or they do not let
    /// go. A reader that does not end costs one long wait in ten seconds.
    func outlastReaders() throws -> Bool {
        guard try isSnapshotHeld(), readers.mayWait(at: uptime.uptime()) else { return false }
        for _ in 0..<200 {
            usleep(5000)
            if try !isSnapshotHeld() { return true }
        }
        readers.hasWaitedInVain(at: uptime.uptime())
        return false
    }

    /// When a put last waited for readers without success.
    final class Patience: Sendable {
        private let last = Atomic<UInt64>(0)

        func mayWait(at uptime: UInt64) -> Bool {
            let last = last.load(ordering: .relaxed)
            return last == 0 || uptime &- last > 10_000_000_000
        }

        func hasWaitedInVain(at uptime: UInt64) { last.store(uptime, ordering: .relaxed) }
    }

    /// True if a reader of some process holds pages that later commits have freed.
    private func isSnapshotHeld() throws -> Bool {
        do throws(LMDBError) {
            return try index.environment.isSnapshotHeld()
        } catch {
            throw translate(error)
        }
    }

    private func displaceBatch(
        limit: Int, bytes: Int64, _ writing: Writing
    ) throws -> (isEmpty: Bool, count: Int, freed: Int64) {
        if let mark = try heldSnapshot(writing) { return try displaceBatch(beside: mark, limit: limit, bytes: bytes) }
        for attempt in 0..<Self.waitsForReaders {
            // Beside a snapshot, removals fill pages and free none: a part of the headroom stays for the puts they are
            // made for.
            let outcome = try mutateIfFitting(isSnapshotHeld() ? .touch : .housekeeping) { mutation in
                try Engine.displace(in: mutation, limit: limit, bytes: bytes)
            }
            if let (victims, freed) = outcome { return noted(victims, freed) }
            guard try isSnapshotHeld() else { break }
            // A reader that was killed holds its snapshot until a process looks.
            if attempt == 0 { try clearDeadReaders() } else { usleep(2000) }
            if try heldSnapshot(writing) != nil { break }
        }
        if let mark = try heldSnapshot(writing) { return try displaceBatch(beside: mark, limit: limit, bytes: bytes) }
        if try isSnapshotHeld() { return (true, 0, 0) }
        let (victims, freed) = try mutate(.housekeeping) { mutation in
            try Engine.displace(in: mutation, limit: limit, bytes: bytes)
        }
        return noted(victims, freed)
    }

    func noted(_ victims: [Victim], _ freed: Int64) -> (isEmpty: Bool, count: Int, freed: Int64) {
        report(victims)
        return (victims.isEmpty, victims.count, freed)
    }

    /// Displaces inside a transaction that is under way: at most `limit` entries, until `bytes` are free.
    static func displace(in mutation: Mutation, limit: Int, bytes: Int64) throws -> ([Victim], freed: Int64) {
        var victims: [Victim] = []
        let before = try mutation.liveIndexBytes() + mutation.state.fileAllocated.asBytes
        var freed: Int64 = 0
        while victims.count < limit, freed < bytes, let victim = try mutation.displaceNext() {
            victims.append(victim)
            freed = before - (try mutation.liveIndexBytes() + mutation.state.fileAllocated.asBytes)
        }
        return (victims, freed)
    }

    /// Gives free pages of the index back to the file system: at least `bytes` where there are that many, longest runs
    /// first. Returns the bytes by which the file shrank. Holds the writer lock for at most about 32 MiB at a time.
    @discardableResult
    func punch(upTo bytes: Int64, minimumRun: Int) throws -> Int64 {
        do {
            return try punchHoles(upTo: bytes, minimumRun: minimumRun)
        } catch let error as LMDBError {
            throw translate(error)
        }
    }

    private func punchHoles(upTo bytes: Int64, minimumRun: Int) throws -> Int64 {
        let environment = index.environment
        let path = files.index.path(of: Layout.data)
        let transaction = try environment.beginWrite()
        defer { transaction.abort() }
        let descriptor = environment.dataDescriptor
        let pageSize = Int64(environment.pageSize)
        // Pages freed by a commit that power loss may still undo must keep their bytes (docs/recovery.md).
        try environment.sync()
        let before = try FileSystem.status(raw: descriptor, path: path).allocated
        let runs = try environment.reclaimablePages(holding: transaction, minimumRun: minimumRun) {
            snapshots.mark($0)?.lastPage
        }
        .sorted { $0.count > $1.count }
        let target = min(bytes, 32 << 20)
        var freed: Int64 = 0
        reach("punch.before")
        for (number, run) in runs.enumerated() {
            guard
                try FileSystem.punchHole(
                    rawDescriptor: descriptor, offset: Int64(run.firstPage) * pageSize,
                    length: Int64(run.count) * pageSize,
                    path: path)
            else { return 0 }
            reach("punch.after")
            if number % 16 == 15 || number == runs.count - 1 || run.count > 256 {
                freed = before - (try FileSystem.status(raw: descriptor, path: path).allocated)
                if freed >= target { break }
            }
        }
        return before - (try FileSystem.status(raw: descriptor, path: path).allocated)
    }
}
