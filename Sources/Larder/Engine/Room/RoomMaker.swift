import LMDB

/// Makes room in the budget, for files that are staged and for transactions. One thread of a process does so at a time,
/// under a lock of its own; the next one looks again first.
final class RoomMaker: EnginePart {
    let context: EngineContext
    private let room: Room
    private let ledger: Ledger
    private let reaper: Reaper
    private let pending: PendingSet
    private let staged: StagedFiles
    private let snapshots: HeldSnapshots
    private let space: IndexSpace
    private let transactions: Transactions
    private let displacement: Displacement
    private let recovery: Recovery
    private let touches: Touches
    private let quarantine: Quarantine
    private let fullDisk: FullDisk
    private let log: DisplacementLog
    /// Held by the thread that makes room.
    private let lock = Monitor()
    /// Held by the thread that takes room, for as long as it looks and takes.
    private let taking = Monitor()
    /// How often a put looks again after room was made, at most: others may take what it made.
    private static let attempts = 200
    /// How often a put waits for what is reserved and not being staged, in steps of 2 ms.
    private static let waitsForOwn = 25
    /// How often it waits for files that are being staged: two seconds in all.
    private static let waitsForStaging = 1000
    /// How often a put waits for readers that hold pages.
    private static let waitsForReaders = 2

    init(
        context: EngineContext, room: Room, ledger: Ledger, reaper: Reaper, pending: PendingSet,
        staged: StagedFiles, snapshots: HeldSnapshots, space: IndexSpace, transactions: Transactions,
        displacement: Displacement,
        recovery: Recovery, touches: Touches, quarantine: Quarantine, fullDisk: FullDisk,
        log: DisplacementLog
    ) {
        self.context = context
        self.room = room
        self.ledger = ledger
        self.reaper = reaper
        self.pending = pending
        self.staged = staged
        self.snapshots = snapshots
        self.space = space
        self.transactions = transactions
        self.displacement = displacement
        self.recovery = recovery
        self.touches = touches
        self.quarantine = quarantine
        self.fullDisk = fullDisk
        self.log = log
    }

    // MARK: For transactions

    /// Runs `body` in a write transaction and commits it within the budget.
    ///
    /// `body` may run several times: when the commit would not fit, the transaction is dropped, room is made, and it
    /// runs again. It must not change anything outside the mutation. `docs/recovery.md` gives the order of renames and
    /// commit, and says what a crash in each gap leaves.
    /// - Parameter lacking: what it lacked when it was tried before; room is made first.
    @discardableResult
    func mutate<R>(
        _ purpose: Transactions.Purpose, lacking: Room.Lack? = nil, _ body: (Mutation) throws -> R
    ) throws -> R {
        if purpose == .housekeeping { return try transactions.housekeep(body) }
        do {
            var readerWaits = 0
            var known = lacking
            for number in 0..<Self.attempts {
                let wereHeld = snapshots.mayBeHeld
                let lack: Room.Lack
                switch try known.map(Transactions.Attempt.lacks) ?? attempt(purpose, body, .none) {
                case .committed(let result): return result
                case .lacks(let known): lack = known
                }
                known = nil
                if try makeRoom(for: lack, again: number > 1) || waitForOthers() { continue }
                if purpose != .put { throw context.noRoom() }
                // A snapshot turned out to be held, which lets puts have more of the budget.
                if snapshots.mayBeHeld, !wereHeld { continue }
                // Other files that are staged may have all the room, and only a commit makes them displaceable.
                if case .committed(let result) = try attempt(purpose, body, .headroom) { return result }
                // On a busy machine a reader of a moment may be held up in the middle of its lookup.
                guard readerWaits < Self.waitsForReaders, try snapshots.outlastReaders() else { throw context.noRoom() }
                readerWaits += 1
            }
            // Another process had room all the time.
            if purpose == .put, case .committed(let result) = try attempt(purpose, body, .headroom) { return result }
        } catch let error as LMDBError {
            throw context.translate(error)
        }
        throw context.noRoom()
    }

    private func attempt<R>(
        _ purpose: Transactions.Purpose, _ body: (Mutation) throws -> R, _ leeway: Transactions.Leeway
    ) throws -> Transactions.Attempt<R> {
        if purpose != .put { return try transactions.attempt(purpose, body) }
        return try fullDisk.committing { isLast in
            do {
                return try transactions.attempt(purpose, body, leeway: leeway, mayUseReserve: isLast)
            } catch let error as LMDBError {
                throw context.translate(error)
            }
        }
    }

    // MARK: For files

    /// Takes `bytes` of the budget for a file to be staged, displacing for it where necessary.
    /// Throws `noSpace` when nothing more can go, `tooLarge` when it could never fit.
    func reserve(_ bytes: Int64, for key: Key?) throws {
        var (waits, readerWaits) = (0, 0)
        var isPossible = false
        for _ in 0..<Self.attempts {
            let seen = pending.completedGeneration
            if try take(bytes, for: key) { return }
            let wasHeld = snapshots.mayBeHeld
            let wereReaders = try snapshots.isAnyHeld()
            // What cannot stay displaces nothing. What is in the way may go while this waits.
            if !isPossible { isPossible = try canMakeRoom(for: bytes) }
            let isFreed =
                try isPossible
                && makeRoom(onDisk: { try room.excess(adding: bytes, $0, usable: snapshots.usableBytes($0.budget)) })
            if isFreed || snapshots.mayBeHeld != wasHeld { continue }
            // All there is to displace may be files that are staged and not committed yet.
            let generation = pending.requestFlush()
            if generation != seen {
                pending.wait(for: generation)
                continue
            }
            // Nothing is pending, and nothing was committed since the look at the index.
            if waitForOthers() { continue }
            if waitForOwn(&waits) {
                // Only what others submit meanwhile is worth another search for something to displace.
                repeat {
                    if try take(bytes, for: key) { return }
                } while pending.requestFlush() == seen && waitForOwn(&waits)
                continue
            }
            // On a busy machine a reader of a moment may be held up in the middle of its lookup. Others come and go.
            if wereReaders, readerWaits < Self.waitsForReaders {
                readerWaits += 1
                if try snapshots.outlastReaders() || !snapshots.isAnyHeld() { continue }
            }
            throw context.noRoom()
        }
        throw context.noRoom()
    }

    /// Takes `bytes` of the budget for a file to be staged if they are free: displaces nothing, and does not wait.
    func reserveIfFree(_ bytes: Int64, for key: Key?) throws -> Bool { try take(bytes, for: key) }

    /// False if `bytes` do not fit even when all is displaced that may go, and all is given up that others are writing.
    private func canMakeRoom(for bytes: Int64) throws -> Bool {
        transactions.dropReleasedLeases()
        // Without pins and leases all may go.
        let isProtected = try read {
            try $0.statistics(index.pinned).entries > 0 || $0.statistics(index.leases).entries > 0
        }
        if try !isProtected || canFree(bytes) { return true }
        // Sessions end with their process, whatever protects their entries.
        try recovery.sweepDead()
        return try canFree(bytes)
    }

    private func canFree(_ bytes: Int64) throws -> Bool {
        reaper.drain()
        let state = try state()
        let usable = try snapshots.usableBytes(state.budget)
        let lack = try room.excess(adding: bytes, state, usable: usable) - ledger.total - space.free()
        return try displaceable(lack, rowBytes: Displaceable.usualRowBytes).bytes >= lack
    }

    /// Takes `bytes` of the budget if they are free.
    ///
    /// What does not fit is never in the ledger, not even for a moment: a transaction that looked there just then would
    /// lack the room, find nothing to displace, and give up puts whose files are staged.
    private func take(_ bytes: Int64, for key: Key?) throws -> Bool {
        try taking.locked {
            let state = try state()
            if bytes > state.budget.usableBytes {
                throw LarderError(
                    .tooLarge,
                    "a body of \(ByteCount(bytes).exactly) does not fit the byte budget of \(state.budget.bytes.exactly) of \(path)",
                    remedy: .raiseBudget, path: path, key: key)
            }
            let usable = try snapshots.usableBytes(state.budget)
            if try room.excess(adding: bytes, state, usable: usable) > 0 { return false }
            // Another process may take the same room at this moment: of two that both want the last of it, none gets
            // it, and both make more.
            ledger.add(bytes)
            do {
                reach("reserve.taken")
                if try room.excess(adding: 0, self.state(), usable: usable) == 0 { return true }
            } catch {
                ledger.add(-bytes)
                throw error
            }
            ledger.add(-bytes)
            return false
        }
    }

    /// Frees about `bytes` for a transaction; false if nothing could be freed. Free pages of the index do as well.
    /// - Parameter again: the transaction did not fit with the free pages that displacement had left before. The last
    ///   of these can be used only by the transaction after the next one.
    private func makeRoom(for lack: Room.Lack, again: Bool) throws -> Bool {
        try alone {
            let before = try space.free()
            let bytes = lack.bytes
            let isHeld = try snapshots.held() != nil
            // What younger snapshots left is all that a removal gives beside a held one.
            if isHeld, try space.giveBack(bytes + slack()) >= bytes { return true }
            // Free pages that puts cannot reuse are given back: there were enough, or they are too scattered. Rarely
            // before entries have made room: it is the long runs that are given back, and the next puts take
            // them again.
            let data = try room.dataAllocated()
            let isUseless = again || !lack.isGrowth || before > data / 4
            // Holes that the next batch fills again are not worth a long wait.
            let spare = try lack.isGrowth ? slack() : slack() / 8
            if !isHeld, isUseless, before > bytes, try space.giveBack(bytes + spare) >= bytes { return true }
            let displaced = try displacement.displace(bytes: bytes + slack())
            // Before this fails, it gives up bytes that are of no use.
            if displaced == 0, try quarantine.trim(to: 0) > 0 { return true }
            reaper.drain()
            let given = isHeld ? try space.giveBack(max(bytes, data / 16)) : 0
            return try displaced > 0 || given > 0 || !isHeld && space.free() > before
        }
    }

    /// Frees room on the file system; false if nothing could be freed.
    /// - Parameter lack: what is still missing, in bytes.
    private func makeRoom(onDisk lack: (StoreState) throws -> Int64) throws -> Bool {
        try alone {
            var target = try lack(state())
            if target == 0 { return true }
            let before = try room.claimed(state())
            let isHeld = try snapshots.held() != nil
            // What is free already comes first: displacing for bytes that only have to be given back would lose
            // entries. Some free pages stay, as inline bodies will want them: what files take the one time, rows take
            // the next.
            let spare = try space.free() - freeReserve()
            if spare >= min(target, 1 << 20) {
                _ = try space.giveBack(min(target, spare), leastRun: IndexSpace.longRun)
                target = try lack(state())
                if target == 0 { return true }
            }
            let displaced = try displacement.displace(bytes: min(target, 32 << 20) + 2 * slack())
            if displaced == 0, try quarantine.trim(to: 0) > 0 { return true }
            reaper.drain()
            target = try lack(state())
            // Single pages are the last resort: a hole costs as much as one of a hundred pages.
            if target > 0 {
                // With some for the files to come.
                _ = try space.giveBack(target + slack(), leastRun: displaced > 0 && !isHeld ? IndexSpace.longRun : 1)
            }
            let state = try state()
            if try room.claimed(state) < before { return true }
            // If the budget was lowered, displacement continues until the store fits, but not while a reader holds a
            // snapshot.
            return try displaced > 0 && (before <= state.budget.bytes.bytes || !snapshots.isAnyHeld())
        }
    }

    /// Runs what frees room. One caller of a process at a time; what others have left behind is free then.
    private func alone(_ body: () throws -> Bool) throws -> Bool {
        try lock.locked {
            reaper.drain()
            try recovery.sweepDead()
            touches.writeIfDue()
            return try body()
        }
    }

    /// Other processes may hold room for a moment: files they stage, or are about to unlink. True after a short wait if
    /// so; callers bound how often they ask.
    private func waitForOthers() -> Bool {
        guard ledger.othersTotal > 0 else { return false }
        usleep(2000)
        return true
    }

    /// Other threads of this process may have room that is about to be displaceable: files they stage, which they
    /// submit a moment later. True after a short wait if so.
    /// - Parameter waits: how often the caller has waited. A reservation may be that of a writer, and last.
    private func waitForOwn(_ waits: inout Int) -> Bool {
        let isStaging = staged.stagingCount > 0
        guard isStaging || ledger.own > 0, waits < (isStaging ? Self.waitsForStaging : Self.waitsForOwn) else {
            return false
        }
        waits += 1
        reach("wait.room")
        usleep(2000)
        return true
    }

    /// What is freed beyond what is needed, so that the next put finds room: a 64th of the budget, 64 KiB to 8 MiB.
    private func slack() throws -> Int64 { min(max(try state().budget.bytes.bytes / 64, 64 << 10), 8 << 20) }

    /// Free pages that room for files leaves alone: a 16th of the budget.
    private func freeReserve() throws -> Int64 {
        let budget = try state().budget
        return budget.bytes == .unlimited ? 0 : budget.bytes.bytes / 16
    }

    // MARK: For new limits

    /// Sets the limits and makes them hold.
    func set(_ budget: Budget) throws {
        let budget = budget.with(pageSize: index.environment.pageSize)
        try budget.validate()
        var isOverfull = false
        while try state().entryCount > UInt64(clamping: budget.entries) {
            let limit = try context.removalLimit()
            let victims = try transactions.housekeep { mutation in
                let surplus = Int(clamping: mutation.state.entryCount) - budget.entries
                var order = VictimOrder.byUse()
                return try mutation.displace(&order, limit: min(limit, surplus)).victims
            }
            log.report(victims)
            if victims.isEmpty {
                isOverfull = true
                break
            }
        }
        // What the new limit leaves no room for goes in the large steps that the old one allows: a small budget has
        // room for a few removals in one commit.
        let surplus = try liveBytes() - budget.usableBytes
        if surplus > 0 { try displacement.displace(bytes: surplus) }
        if try state().budget != budget { try transactions.housekeep { $0.state.budget = budget } }
        while try step(most: 32 << 20, usesFreePages: true) {}
        if try room.excess(adding: 0, state()) > 0 || isOverfull { throw context.noRoom() }
    }

    /// Bytes that the store would take if every free page of the index were given back.
    private func liveBytes() throws -> Int64 { try room.claimed(state()) - space.free() }

    /// Frees at most `most` bytes of those that are beyond the limits, so that another process notices little of it;
    /// false if there are none, or they cannot be freed.
    /// - Parameter usesFreePages: free pages of the index go before entries do.
    func step(most: Int64, usesFreePages: Bool = false) throws -> Bool {
        let excess = try room.excess(adding: 0, state())
        if excess == 0 { return false }
        // What was displaced inline is such pages now.
        if usesFreePages, try space.free() > 0, try space.giveBack(excess, leastRun: IndexSpace.longRun) > 0 {
            return true
        }
        let step = min(excess, most)
        return try makeRoom(onDisk: { min(step, try room.excess(adding: 0, $0)) })
    }
}
