import LMDB

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
                        "a body of \(bytes) bytes does not fit the byte budget of \(state.budget.bytes.bytes) of \(path): "
                            + "raise the budget or store it elsewhere",
                        path: path, key: key)
                }
                excess = try writing.room.excess(adding: 0, state)
            } catch {
                writing.ledger.add(-bytes)
                throw error
            }
            if excess == 0 { return }
            writing.ledger.add(-bytes)
            if try makeRoom(bytes, writing, isMissing: { try writing.room.excess(adding: bytes, $0) }) { continue }
            // All there is to displace may be files that are staged and not committed yet.
            let generation = writing.pending.requestFlush()
            // Nothing is pending, and nothing was committed since the look at the index: there is no more.
            if generation == seen { throw noRoom() }
            writing.pending.wait(for: generation)
        }
        throw noRoom()
    }

    /// Frees about `bytes`; false if nothing could be freed. One caller of a process at a time; the next looks again first.
    func makeRoom(
        _ bytes: Int64, _ writing: Writing, isMissing: ((StoreState) throws -> Int64)? = nil
    ) throws -> Bool {
        try roomLock.locked {
            var target = bytes
            writing.reaper.drain()
            if let isMissing {
                target = try isMissing(state())
                if target == 0 { return true }
            }
            let before = try writing.room.claimed(state())
            let freeBefore = try indexFree()
            let slack = try min(max(state().budget.bytes.bytes / 64, 64 << 10), 8 << 20)
            try sweepDead(writing)
            // Room for a file: many free pages of the index go before entries do, or a store that was full of small bodies
            // would keep their room for ever.
            if isMissing != nil, try freeBefore > max(slack, writing.room.dataAllocated() / 6) {
                var given = try punch(upTo: target + slack, minimumRun: 4)
                if given < target { given += try punch(upTo: target + slack - given, minimumRun: 1) }
                if given >= target { return true }
            }
            let displaced = try displace(bytes: target + slack, writing)
            writing.reaper.drain()
            // Displaced inline bodies became free pages inside the index file. Puts reuse them, unless they are
            // too scattered or the room is wanted for a file: then they go back to the file system.
            var punched: Int64 = 0
            let data = try writing.room.dataAllocated()
            let free = try indexFree()
            if isMissing != nil || free > data / 6 {
                let freed = before - (try writing.room.claimed(state()))
                if freed < target + slack {
                    punched = try punch(upTo: max(target + slack - freed, min(free, data / 16)), minimumRun: 4)
                    if punched == 0 { punched = try punch(upTo: target + slack - freed, minimumRun: 1) }
                }
            }
            let gained = before - (try writing.room.claimed(state()))
            return displaced > 0 || punched > 0 || gained > 0 || free > freeBefore
        }
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
            let batch = try displaceBatch(limit: try removalLimit(), bytes: bytes - freed)
            if batch.isEmpty { break }
            count += batch.count
            freed += batch.freed
        }
        return count
    }

    /// How many removals one transaction may hold, so that the pages it copies fit the headroom: 20 pages each at worst.
    func removalLimit() throws -> Int {
        let budget = try state().budget
        return budget.bytes == .unlimited ? 256 : Int(min(max(budget.headroom / (20 * 4096), 1), 256))
    }

    private func displaceBatch(limit: Int, bytes: Int64) throws -> (isEmpty: Bool, count: Int, freed: Int64) {
        let (victims, freed) = try mutate(.housekeeping) { mutation in
            try Engine.displace(in: mutation, limit: limit, bytes: bytes)
        }
        report(victims)
        return (victims.isEmpty, victims.count, freed)
    }

    /// Displaces inside a transaction that is under way: at most `limit` entries, until `bytes` are free.
    static func displace(in mutation: Mutation, limit: Int, bytes: Int64) throws -> ([Victim], freed: Int64) {
        var victims: [Victim] = []
        let pagesBefore = mutation.freedPages
        let filesBefore = mutation.state.fileAllocated
        var freed: Int64 = 0
        while victims.count < limit, freed < bytes, let victim = try mutation.displaceNext() {
            victims.append(victim)
            freed = Int64(mutation.freedPages - pagesBefore) * 4096
            freed += Int64(clamping: filesBefore) - Int64(clamping: mutation.state.fileAllocated)
        }
        return (victims, freed)
    }

    /// Gives free pages of the index back to the file system: at least `bytes` where there are that many, longest runs
    /// first. Returns the bytes by which the file shrank. Holds the writer lock for at most about 32 MiB at a time.
    @discardableResult
    func punch(upTo bytes: Int64, minimumRun: Int) throws -> Int64 {
        let environment = index.environment
        let path = files.index.path(of: Layout.data)
        let descriptor = environment.dataDescriptor
        let pageSize = Int64(environment.pageSize)
        let transaction = try environment.beginWrite()
        defer { transaction.abort() }
        // Pages freed by a commit that power loss may still undo must keep their bytes (docs/recovery.md).
        try environment.sync()
        let before = try FileSystem.status(raw: descriptor, path: path).allocated
        let runs = try environment.reclaimablePages(holding: transaction, minimumRun: minimumRun)
            .sorted { $0.count > $1.count }
        let target = min(bytes, 32 << 20)
        var freed: Int64 = 0
        for (number, run) in runs.enumerated() {
            guard
                try FileSystem.punchHole(
                    rawDescriptor: descriptor, offset: Int64(run.firstPage) * pageSize,
                    length: Int64(run.count) * pageSize,
                    path: path)
            else { return 0 }
            if number % 16 == 15 || number == runs.count - 1 || run.count > 256 {
                freed = before - (try FileSystem.status(raw: descriptor, path: path).allocated)
                if freed >= target { break }
            }
        }
        return before - (try FileSystem.status(raw: descriptor, path: path).allocated)
    }
}
