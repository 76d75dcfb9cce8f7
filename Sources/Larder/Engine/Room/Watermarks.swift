import Locks

/// Whether the committer displaces in the background: from above the high watermark to below the low one. Safe from any
/// thread.
///
/// What was stored or used since displacement began stays: where little else may go, the newest entries are what a
/// displacement down to the low watermark would take. And where less than half of the store may be displaced, the
/// watermarks are shares of that part: a store whose pins reach above the low one would be emptied of all else again
/// and again.
final class Watermarks: EnginePart {
    let context: EngineContext
    private let room: Room
    private let reaper: Reaper
    private let displacing = Atomic<Bool>(false)
    /// The stamp at which displacement began.
    private let began = Atomic<UInt64>(0)
    private let share = EngineMutex(Share())
    /// How full the store may be for batches to fit.
    let level = FittingLevel()

    /// What could not be displaced when displacement last seemed due.
    private struct Share: Equatable {
        /// Pinned and leased: with other ones another estimate is due.
        var protected = 0
        var usable: Int64 = 0
        /// Bytes; 0 if they were the smaller part. Nil: not estimated.
        var kept: Int64?
    }

    init(context: EngineContext, room: Room, reaper: Reaper) {
        self.context = context
        self.room = room
        self.reaper = reaper
    }

    /// True while the store is above the high watermark, and until it is below the low one.
    var isDisplacing: Bool { displacing.load(ordering: .relaxed) }

    /// True if a batch may find something to displace in its transaction.
    var mayDisplace: Bool { isDisplacing || level.isKnown }

    /// Entries with this stamp or a later one are not displaced in the background.
    var mark: UInt64 { began.load(ordering: .relaxed) }

    /// How far the store is above the watermarks, in bytes: 0 if it is below them.
    struct Fill {
        var overHigh: Int64 = 0
        var overLow: Int64 = 0
        /// Bytes that the store holds: of live pages of the index, and of files.
        var live: Int64 = 0
        /// What puts may fill, and how much of that may not be displaced: 0 if it is the smaller part, nil if it is not
        /// known.
        var usable = Int64.max
        var kept: Int64?
        /// True if the disk has less free space than the budget says.
        var isBelowFloor = false
    }

    /// How full the store will be after `mutation`. Free pages of the index count as room, and so do files that are
    /// about to be unlinked.
    func fill(_ mutation: Mutation) throws -> Fill {
        let budget = mutation.state.budget
        var fill = Fill()
        if budget.bytes != .unlimited {
            let data = try room.dataAllocated()
            let claimed = try room.claimed(mutation.state) - mutation.blobs.stagedBytes - reaper.queuedBytes
            let live = claimed - data + (try mutation.liveIndexBytes())
            var share = Share(protected: try protectedRows(mutation), usable: budget.usableBytes)
            if share.protected == 0 { share.kept = 0 }
            let known = self.share.withLock { $0 }
            if known.protected == share.protected, known.usable == share.usable {
                share.kept = known.kept
            } else {
                level.forget()
            }
            fill = self.fill(live, share)
            if fill.overHigh > 0, !isDisplacing, share.protected > 0 {
                let displaceable = try displaceable(mutation)
                share.kept = displaceable > live / 2 ? 0 : live - displaceable
                fill = self.fill(live, share)
            }
            if share != known { self.share.withLock { [share] in $0 = share } }
        }
        if budget.freeDiskFloor > .zero {
            let lack = budget.freeDiskFloor.bytes - (try FileSystem.freeBytes(files.root)) - reaper.queuedBytes
            fill.isBelowFloor = lack > 0
            fill.overHigh = max(fill.overHigh, lack)
            fill.overLow = max(fill.overLow, lack)
        }
        return fill
    }

    private func protectedRows(_ mutation: Mutation) throws -> Int {
        try mutation.reading.statistics(index.pinned).entries + mutation.reading.statistics(index.leases).entries
    }

    private func fill(_ live: Int64, _ share: Share) -> Fill {
        let kept = share.kept ?? 0
        let (free, room) = (Double(live - kept), Double(max(0, share.usable - kept)))
        return Fill(
            overHigh: Int64(max(0, free - room * configuration.watermarks.high)),
            overLow: Int64(max(0, free - room * configuration.watermarks.low)), live: live, usable: share.usable,
            kept: share.kept)
    }

    /// Rows that are looked at to learn what can be displaced; from them follows what all rows would give.
    private static let sample = 1024

    /// Bytes that displacement would free if it took everything that may go, about.
    private func displaceable(_ mutation: Mutation) throws -> Int64 {
        var looked = Displaceable(rowBytes: Displaceable.usualRowBytes)
        try looked.look(at: index, mutation.reading, now: mutation.now, rows: Self.sample)
        let bytes = Double(looked.bytes)
        let rows = try Double(mutation.reading.statistics(index.recency).entries)
        return Int64(min(looked.isComplete ? bytes : bytes * rows / Double(Self.sample), 1e18))
    }

    /// Starts background displacement if the store is above the high watermark now: for what no put notices.
    func steer() throws {
        let budget = try context.budget()
        if budget.bytes == .unlimited, budget.freeDiskFloor == .zero { return }
        do {
            let transaction = try index.environment.beginWrite()
            defer { transaction.abort() }
            let mutation = try Mutation(index: index, files: files, transaction: transaction, now: clock.advance())
            steer(try fill(mutation), since: mutation.state.nextStamp, hasGrown: true, displacedNothing: false)
        } catch {
            throw translate(error)
        }
    }

    /// Starts and ends background displacement.
    /// - Parameters:
    ///   - stamp: the next one at the beginning of the transaction that filled the store.
    ///   - hasGrown: whether that stored something: no other starts displacement again where little may go.
    func steer(_ fill: Fill, since stamp: UInt64, hasGrown: Bool, displacedNothing: Bool) {
        if fill.overLow == 0 || displacedNothing {
            endDisplacing()
        } else if fill.overHigh > 0, hasGrown || fill.isBelowFloor, !isDisplacing {
            startDisplacing(before: stamp)
        }
    }

    func startDisplacing(before stamp: UInt64 = .max) {
        began.store(stamp, ordering: .relaxed)
        displacing.store(true, ordering: .relaxed)
    }

    func endDisplacing() { displacing.store(false, ordering: .relaxed) }
}
