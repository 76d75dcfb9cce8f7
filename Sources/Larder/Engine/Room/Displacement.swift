import LMDB

/// Removes entries to free bytes: expired ones first, then those least recently used. Has no state of its own; the
/// order is the index's.
///
/// While a reader holds on to a snapshot, the pages of an inline body that the snapshot shows stay taken, so displacing
/// such entries would empty the store and gain nothing. What gives room at once is a body in a file, whose blocks no
/// snapshot keeps, and a body that was stored after the snapshot, whose pages can be punched. All others are passed by.
final class Displacement: EnginePart {
    let context: EngineContext
    private let transactions: Transactions
    private let snapshots: HeldSnapshots
    private let space: IndexSpace
    private let memory: MemoryTable
    private let log: DisplacementLog

    init(
        context: EngineContext, transactions: Transactions, snapshots: HeldSnapshots, space: IndexSpace,
        memory: MemoryTable, log: DisplacementLog
    ) {
        self.context = context
        self.transactions = transactions
        self.snapshots = snapshots
        self.space = space
        self.memory = memory
        self.log = log
    }

    /// Displaces entries until about `bytes` are free or nothing more may go; returns how many went. Batches of at most
    /// 256, so that a put of another thread never waits long for the writer lock.
    @discardableResult
    func displace(bytes: Int64) throws -> Int {
        var freed: Int64 = 0
        var count = 0
        var limit = try context.removalLimit()
        while freed < bytes {
            do {
                let batch = try displaceBatch(limit: limit, bytes: bytes - freed)
                if batch.isEmpty { break }
                count += batch.count
                freed += batch.freed
            } catch let full as LarderError where full.isOfFullDisk && limit > 1 {
                // Few removals need few pages.
                limit = max(1, limit / 8)
            }
        }
        return count
    }

    /// How long displacement that does not fit the budget waits for readers, in steps of 2 ms. While a snapshot is
    /// held, the pages that victims leave cannot be used, and displacing on would empty the store and grow it.
    private static let waitsForReaders = 25

    private func displaceBatch(
        limit: Int, bytes: Int64
    ) throws -> (isEmpty: Bool, count: Int, freed: Int64) {
        if let mark = try snapshots.held() { return try displaceBatch(beside: mark, limit: limit, bytes: bytes) }
        var order = VictimOrder.byUse()
        for attempt in 0..<Self.waitsForReaders {
            // Beside a snapshot, removals fill pages and free none: a part of the headroom stays for the puts they are
            // made for.
            let outcome = try transactions.commitIfFitting(snapshots.isAnyHeld() ? .touch : .housekeeping) { mutation in
                try mutation.displace(&order, limit: limit, bytes: bytes)
            }
            if let (victims, freed) = outcome { return noted(victims, freed) }
            guard try snapshots.isAnyHeld() else { break }
            // A reader that was killed holds its snapshot until a process looks.
            if attempt == 0 { try context.clearDeadReaders() } else { usleep(2000) }
            if try snapshots.held() != nil { break }
        }
        if let mark = try snapshots.held() { return try displaceBatch(beside: mark, limit: limit, bytes: bytes) }
        if try snapshots.isAnyHeld() { return (true, 0, 0) }
        let (victims, freed) = try transactions.housekeep { mutation in
            try mutation.displace(&order, limit: limit, bytes: bytes)
        }
        return noted(victims, freed)
    }

    private func noted(_ victims: [Victim], _ freed: Int64) -> (isEmpty: Bool, count: Int, freed: Int64) {
        log.report(victims)
        return (victims.isEmpty, victims.count, freed)
    }

    /// Displaces some entries whose bodies give room beside the snapshot that `mark` stands for.
    private func displaceBatch(
        beside mark: Snapshots.Mark, limit: Int, bytes: Int64
    ) throws -> (isEmpty: Bool, count: Int, freed: Int64) {
        let start = snapshots.position
        var limit = limit
        while limit > 0 {
            let outcome = try transactions.commitIfFitting(.housekeeping) { mutation in
                var order = VictimOrder.beside(OrderBesideSnapshot(mark: mark, position: start))
                return (try mutation.displace(&order, limit: limit, bytes: bytes), order)
            }
            if case ((let victims, let freed), .beside(let order))? = outcome {
                snapshots.position = order.position
                let batch = noted(victims, freed)
                // With rows left to look at, there may be victims.
                return (batch.isEmpty && order.isOver, batch.count, batch.freed)
            }
            // Room for the removal itself; or one that needs less.
            _ = try space.giveBack(256 << 10)
            limit = limit == 1 ? 0 : max(1, limit / 4)
        }
        return (true, 0, 0)
    }

    /// Displaces the entry used longest ago whose body is a file of its own; false if there is none. Those in the index
    /// are passed by.
    func displaceFile() throws -> Bool {
        var order = OrderBesideSnapshot(
            mark: Snapshots.Mark(transaction: 0, lastPage: 0, nextID: .max, nextStamp: .max), position: 0)
        while !order.isOver {
            order.looks = 4096
            let start = order
            let (victims, next) = try transactions.housekeep { mutation in
                var order = start
                var victims: [Victim] = []
                // Entries may share a file, which goes with the last of them.
                while mutation.blobs.deadFiles.isEmpty, let victim = try mutation.removeNext(&order) {
                    victims.append(victim)
                }
                return (victims, order)
            }
            log.report(victims)
            order = next
            if !victims.isEmpty { return true }
        }
        return false
    }

    // MARK: Expired entries

    /// Removes some of the entries that expired longer ago than `Configuration.expiredRetention`, in one transaction.
    /// Pinned and leased ones stay, in memory the pinned ones.
    ///
    /// A look at one row if there is nothing to do. Of several processes each looks; what one has removed the others do
    /// not find.
    /// - Returns: true if there are more.
    func removeExpired() throws -> Bool {
        // By both clocks: after the wall clock was set back, store time runs ahead, and what is put with a moment of
        // the wall clock has expired at once. Callers that judge by that clock themselves still use it.
        let moment = min(clock.now(), configuration.clock.now()) - configuration.expiredRetention.clampedToZero
        // Rows of times before 1970 are stored under 1970.
        guard moment.microseconds > 0 else { return false }
        counters.add(.evictedExpired, UInt64(memory.removeExpired(at: moment)))
        guard try hasExpired(by: moment) else { return false }
        let limit = try context.removalLimit()
        // What does not fit the headroom while a snapshot is held waits: nothing needs it now.
        let removed = try transactions.commitIfFitting(.housekeeping) { mutation in
            var order = VictimOrder.expired(by: moment)
            return try mutation.displace(&order, limit: limit).victims
        }
        guard let victims = removed else { return false }
        log.report(victims)
        return victims.count == limit
    }

    private func hasExpired(by moment: Timestamp) throws -> Bool {
        try read { transaction in
            try transaction.withCursor(index.expiry) { cursor in
                guard let (row, _) = try cursor.first() else { return false }
                return row.precedes(Index.expiryEnd(moment))
            }
        }
    }
}

extension Duration {
    fileprivate var clampedToZero: Duration { max(self, .zero) }
}
