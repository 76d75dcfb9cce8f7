import LMDB

/// Displacement while a reader holds on to a snapshot.
///
/// The pages of an inline body that the snapshot shows stay taken for as long as it is held, so displacing such entries
/// would empty the store and gain nothing. What gives room at once is a body in a file, whose blocks no snapshot keeps,
/// and a body that was stored after the snapshot, whose pages can be punched. All others are passed by.
extension Engine {
    /// The state to go by if some reader of some process has held one snapshot for 50 ms and more, and still does; nil
    /// otherwise. Asks those who can let go of theirs to do so.
    func heldSnapshot(_ writing: Writing) throws -> Snapshots.Mark? {
        do throws(LMDBError) {
            let environment = index.environment
            guard let oldest = try environment.oldestReader(), oldest < (try environment.latestTransaction()) else {
                snapshots.look(nil, at: uptime.uptime())
                return nil
            }
            let age = snapshots.look(oldest, at: uptime.uptime())
            if age > 2_000_000 { writing.ledger.askForPages() }
            guard snapshots.mayBeHeld else { return nil }
            // A reader that was killed holds its snapshot until a process looks.
            if try environment.clearDeadReaders() > 0, try environment.oldestReader() != oldest {
                snapshots.look(nil, at: uptime.uptime())
                return nil
            }
            return snapshots.mark(oldest)
        } catch {
            throw translate(error)
        }
    }

    /// Bytes that puts may fill: while a snapshot is held also three quarters of the headroom, as pages freed since
    /// cannot be used.
    func usableBytes(_ budget: Budget, _ writing: Writing) throws -> Int64 {
        guard budget.bytes != .unlimited, snapshots.mayBeHeld, try heldSnapshot(writing) != nil else {
            return budget.usableBytes
        }
        return budget.bytes.bytes - budget.headroom / 4
    }

    /// Notes what the index is like at the beginning of a write transaction.
    func noteSnapshot(_ mutation: Mutation) {
        let mark = Snapshots.Mark(
            transaction: mutation.reading.id - 1, lastPage: index.environment.lastPage, nextID: mutation.state.nextID,
            nextStamp: mutation.state.nextStamp)
        // Unknown readers only make the notes fewer: what follows from them is less room, never a wrong page.
        snapshots.note(mark) { (try? index.environment.readers()) ?? [] }
    }

    /// Displaces some entries whose bodies give room beside the snapshot that `mark` stands for.
    func displaceBatch(
        beside mark: Snapshots.Mark, limit: Int, bytes: Int64
    ) throws -> (isEmpty: Bool, count: Int, freed: Int64) {
        let start = snapshots.position
        var limit = limit
        while limit > 0 {
            let outcome = try mutateIfFitting(.housekeeping) { mutation in
                var order = OrderBesideSnapshot(mark: mark, position: start)
                var victims: [Victim] = []
                let before = try mutation.liveIndexBytes() + mutation.state.fileAllocated.asBytes
                var freed: Int64 = 0
                while victims.count < limit, freed < bytes, let victim = try mutation.displaceNext(&order) {
                    victims.append(victim)
                    freed = before - (try mutation.liveIndexBytes() + mutation.state.fileAllocated.asBytes)
                }
                return (victims, freed, order)
            }
            if let (victims, freed, order) = outcome {
                snapshots.position = order.position
                let batch = noted(victims, freed)
                // With rows left to look at, there may be victims.
                return (batch.isEmpty && order.isOver, batch.count, batch.freed)
            }
            // Room for the removal itself; or one that needs less.
            _ = try giveBack(256 << 10)
            limit = limit == 1 ? 0 : max(1, limit / 4)
        }
        return (true, 0, 0)
    }
}

/// A place in the access order for displacement beside a held snapshot.
struct OrderBesideSnapshot {
    let mark: Snapshots.Mark
    /// Entries with a lower stamp have no body that would give room.
    var position: UInt64
    /// Rows that one transaction looks at.
    var looks = 4096
    var isOver = false

    init(mark: Snapshots.Mark, position: UInt64) {
        self.mark = mark
        self.position = position
    }
}

extension Mutation {
    /// Removes the next entry in the access order whose body is a file or younger than the snapshot; nil if there is
    /// none among the rows that may be looked at.
    func displaceNext(_ order: inout OrderBesideSnapshot) throws -> Victim? {
        let hasLeases = try reading.statistics(index.leases).entries > 0
        let found = try reading.withCursor(index.recency) { cursor -> (key: [UInt8], record: EntryRecord)? in
            var pair = try cursor.seek(order.position)
            while let (row, value) = pair {
                if order.looks == 0 { return nil }
                order.looks -= 1
                order.position = row.field(0, as: UInt64.self) &+ 1
                let key = Array(value)
                if let record = try record(key), try givesRoom(record, beside: order.mark),
                    try !hasLeases || !isLeased(key: key, record)
                {
                    return (key, record)
                }
                pair = try cursor.next()
            }
            order.isOver = true
            // Later entries come behind those that were looked at; entries that were not given room by then are used
            // again.
            return nil
        }
        guard let (key, record) = found, try remove(key, where: { $0 == record }) != nil else { return nil }
        return Victim(key: key, record: record, reason: .leastRecentlyUsed)
    }

    private func givesRoom(_ record: EntryRecord, beside mark: Snapshots.Mark) throws -> Bool {
        if record.blob >= mark.nextID { return true }
        guard let head = try reading.get(index.blobs, record.blob).flatMap(BlobRecord.init) else { return false }
        return head.location == .file && !head.isDamaged
    }
}
