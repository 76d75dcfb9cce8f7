import LMDB

extension Engine {
    /// Which limit a write transaction has to keep.
    enum Purpose {
        /// Stores something: stays below the headroom, displaces to get there.
        case put
        /// Notes accesses, or displaces while a snapshot is held: may use half of the headroom for the pages it copies.
        case touch
        /// Removes or displaces: may use the headroom.
        case housekeeping

        /// The bytes on disk that the commit may reach.
        func cap(_ budget: Budget) -> Int64 {
            if budget.bytes == .unlimited { return .max }
            switch self {
            case .put: return budget.usableBytes
            case .touch: return budget.bytes.bytes - budget.headroom / 2
            case .housekeeping: return budget.bytes.bytes
            }
        }
    }

    /// Runs `body` in a write transaction and commits it within the budget.
    ///
    /// `body` may run several times: when the commit would not fit, the transaction is dropped, room is made, and it
    /// runs again. It must not change anything outside the mutation. `docs/recovery.md` gives the order of renames and
    /// commit, and says what a crash in each gap leaves.
    @discardableResult
    func mutate<R>(_ purpose: Purpose, _ body: (Mutation) throws -> R) throws -> R {
        guard let writing else { throw readOnly() }
        do {
            var outcome =
                purpose == .put
                ? try displacingWhenFull(slack(), writing) {
                    do { return try attempt(writing, purpose, body) } catch let error as LMDBError {
                        throw translate(error)
                    }
                } : try attempt(writing, purpose, body)
            var tries = 0
            while tries < 200, case .lacks(let bytes) = outcome {
                tries += 1
                if purpose == .housekeeping {
                    // Removing is the way to get room, so it must not wait for any: pages that earlier removals freed
                    // are given back first, and if there are none it goes ahead.
                    let given = tries < 4 ? try giveBack(max(bytes, 128 << 10)) : 0
                    outcome = try attempt(writing, purpose, body, leeway: given > 0 ? .none : .unlimited)
                } else if try makeRoom(bytes, writing) || waitForOthers(writing) {
                    outcome = try attempt(writing, purpose, body)
                } else {
                    break
                }
            }
            // A snapshot turned out to be held, which lets puts have more of the budget.
            if case .lacks = outcome, purpose == .put, snapshots.mayBeHeld {
                outcome = try attempt(writing, purpose, body)
            }
            // Other files that are staged may have all the room, and only a commit makes them displaceable.
            if case .lacks = outcome, purpose == .put {
                outcome = try attempt(writing, purpose, body, leeway: .headroom)
            }
            // On a busy machine a reader of a moment may be held up in the middle of its lookup.
            if case .lacks(let bytes) = outcome, purpose == .put, try outlastReaders() {
                _ = try makeRoom(bytes, writing)
                outcome = try attempt(writing, purpose, body)
                if case .lacks = outcome { outcome = try attempt(writing, purpose, body, leeway: .headroom) }
            }
            if case .committed(let result) = outcome { return result }
        } catch let error as LMDBError {
            throw translate(error)
        }
        throw noRoom()
    }

    /// As `mutate`, but returns nil when the commit would not fit, instead of making room.
    func mutateIfFitting<R>(_ purpose: Purpose, _ body: (Mutation) throws -> R) throws -> R? {
        guard let writing else { throw readOnly() }
        do {
            guard case .committed(let result) = try attempt(writing, purpose, body) else { return nil }
            return result
        } catch let error as LMDBError {
            throw translate(error)
        }
    }

    private enum Attempt<R> {
        case committed(R)
        case lacks(Int64)
    }

    /// What a commit may do beyond its purpose's limit.
    private enum Leeway {
        case none
        /// Files that are on disk already may grow the index into the headroom. The budget holds all the same, and what
        /// is committed can be displaced.
        case headroom
        /// A removal goes ahead in any case.
        case unlimited
    }

    private func attempt<R>(
        _ writing: Writing, _ purpose: Purpose, _ body: (Mutation) throws -> R, leeway: Leeway = .none
    ) throws -> Attempt<R> {
        let transaction = try index.environment.beginWrite()
        defer { transaction.abort() }
        let mutation = try Mutation(index: index, files: files, transaction: transaction, now: clock.advance())
        clock.observe(Timestamp(microseconds: mutation.state.clock))
        let released = writing.leases.released
        try mutation.dropLeases(released)
        noteSnapshot(mutation)
        let result = try body(mutation)
        var victims: [Victim] = []
        while mutation.state.entryCount > UInt64(clamping: mutation.state.budget.entries) {
            guard let victim = try mutation.displaceNext(),
                victim.reason == .expired || victim.record.stamp != mutation.lastPut
            else {
                // Removing must not fail for what is left, nor setting the limit itself.
                if purpose == .housekeeping { break }
                throw LarderError(
                    .noSpace,
                    "the budget of \(mutation.state.budget.entries) entries is full of pinned and leased ones: unpin some",
                    path: path)
            }
            victims.append(victim)
        }
        let limits = mutation.state.budget.batchLimits(configuration.pendingLimit)
        writing.pending.setLimits(memory: limits.memory, count: limits.count)
        try mutation.finish()
        if let lack = try lack(mutation, purpose, writing, leeway) { return .lacks(lack) }
        try commit(mutation, writing)
        writing.leases.forget(released)
        report(victims)
        if mutation.removedRows > 0 { reportRows(mutation.removedRows) }
        return .committed(result)
    }

    /// Bytes by which the commit would break the budget; nil if it may go ahead.
    private func lack(
        _ mutation: Mutation, _ purpose: Purpose, _ writing: Writing, _ leeway: Leeway
    ) throws -> Int64? {
        let effective = leeway == .headroom && mutation.stagedBytes > 0 ? Purpose.housekeeping : purpose
        let cap =
            try effective == .put ? usableBytes(mutation.state.budget, writing) : effective.cap(mutation.state.budget)
        // Beside a held snapshot few free pages can be used, and next to no hole is filled.
        let reusable = try snapshots.mayBeHeld ? index.environment.reusablePageCount() : nil
        let excess = try writing.room.excess(of: mutation, cap: cap, reusable: reusable)
        if excess == 0 || leeway == .unlimited { return nil }
        // Over the budget already, because that was lowered: removing is the way back, even if it writes some pages
        // first.
        if purpose == .housekeeping, try writing.room.claimed(state()) > cap { return nil }
        return excess
    }

    /// A body file that a transaction has renamed into `trash/`.
    private struct Discarded {
        let head: BlobRecord
        let name: String
        let place: StoreFiles.Place

        /// What the reaper has to know.
        var item: (name: String, bytes: Int64) { (name, head.allocated.asBytes) }
    }

    private func commit(_ mutation: Mutation, _ writing: Writing) throws {
        var discarded: [Discarded] = []
        if !mutation.deadFiles.isEmpty { writing.reaper.expect() }
        do {
            // A durable put that found its body there relies on a file that a relaxed put wrote.
            for head in mutation.sharedDurably where head.epoch > mutation.state.syncedEpoch {
                if let file = try files.openBlob(head) { try Sync.data(file, path: nil) }
            }
            reach("commit.before-trash")
            // A file may be put and displaced in one transaction.
            let new = mutation.deadFiles.isEmpty ? [] : Set(mutation.newFiles.map(\.token))
            for head in mutation.deadFiles {
                let name = Layout.trash(nextToken(writing), head.digest)
                guard let place = try files.discard(head, as: name, isNew: new.contains(head.token)) else { continue }
                writing.ledger.add(head.allocated.asBytes)
                discarded.append(Discarded(head: head, name: name, place: place))
                reach("commit.trashed")
            }
            // No record leads to these names yet: a file there is an orphan, left by a power loss perhaps, and must not
            // be taken for the body that is published after the commit.
            for head in mutation.newFiles { try FileSystem.unlink(Layout.blob(head.digest), in: files.blobs) }
            reach("commit.before")
            try mutation.transaction.commit()
            reach("commit.after")
        } catch {
            mutation.transaction.abort()
            let unneeded = restore(discarded, writing)
            if !mutation.deadFiles.isEmpty { enqueue(unneeded, writing) }
            throw error
        }
        writing.ledger.add(-mutation.stagedBytes)
        if !mutation.deadFiles.isEmpty {
            // A power loss may still undo the commit. A durable put must not lose what it replaces as well: until the
            // index is synced the old file stays in `trash/`, from where a sweep puts it back. The batch's own sync
            // reports a failure.
            do {
                if mutation.isDurable { try syncIndex() }
                enqueue(discarded, writing)
            } catch {
                writing.reaper.hold(discarded.map(\.item))
            }
        }
        for file in mutation.surplusFiles { discard(file, writing) }
        reach("commit.surplus-dropped")
        if !mutation.newFiles.isEmpty {
            hasUnsyncedFiles.store(true, ordering: .releasing)
            publish(mutation.newFiles)
        }
    }

    private func enqueue(_ discarded: [Discarded], _ writing: Writing) {
        writing.reaper.add(discarded.map(\.item))
    }

    /// The commit failed: puts back the files that are still needed, and returns the others. The failed transaction has
    /// released the writer lock, so another process may have changed the index meanwhile.
    ///
    /// What cannot be looked up or put back now stays in `trash/`, as after a crash: a reader that misses the file, or
    /// the sweep of the next open, finds it there.
    private func restore(_ discarded: [Discarded], _ writing: Writing) -> [Discarded] {
        reach("restore.before")
        guard !discarded.isEmpty else { return [] }
        do {
            let transaction = try index.environment.beginWrite()
            defer { transaction.abort() }
            return discarded.filter { item in
                do {
                    guard try isNeeded(item, transaction.reading) else { return true }
                    // Counted as a body or as staged, wherever it is.
                    writing.ledger.add(-item.head.allocated.asBytes)
                    try files.restore(item.head, from: item.name, to: item.place)
                } catch {
                    logger.warning("a removed file stays in trash", metadata: ["error": "\(error)"])
                }
                return false
            }
        } catch {
            logger.warning("removed files stay in trash", metadata: ["error": "\(error)"])
            return []
        }
    }

    /// True for the file of a body that the index has and that is nowhere else, and for one that a put of the failed
    /// transaction staged, which is tried again.
    private func isNeeded(_ item: Discarded, _ transaction: ReadTransaction) throws -> Bool {
        let row = try item.head.digest.withBytes { try transaction.get(index.digests, $0) }
        let blob = row.flatMap(DigestRecord.init)?.blob
        let head = try blob.flatMap { try transaction.get(index.blobs, $0) }.flatMap(BlobRecord.init)
        if item.place == .staging, head?.token != item.head.token { return true }
        // What it is charged with, or its epoch, may have been noted since.
        guard head?.isSameFile(as: item.head) == true else { return false }
        return try files.blobStatus(item.head) == nil
    }

    /// Unlinks a staged file that is not needed, and gives its reservation back.
    func discard(_ file: StagedFile, _ writing: Writing) {
        // A file that cannot be unlinked keeps its reservation, as it keeps its blocks; the next sweep tries again.
        if (try? FileSystem.unlink(file.token.name, in: files.staging)) != nil { writing.ledger.add(-file.reserved) }
    }

    /// Renames committed body files into `blobs/`, under the writer lock and only while the index has them: without the
    /// lock another process could displace a blob in between, and its file would be left without a record.
    private func publish(_ heads: [BlobRecord]) {
        do {
            reach("publish.before")
            let transaction = try index.environment.beginWrite()
            defer { transaction.abort() }
            for head in heads where try transaction.reading.get(index.unpublished, head.token.indexKey) != nil {
                try files.publish(head)
                reach("publish.renamed")
            }
            succeeded(.publication)
        } catch {
            // Readers find the files in `staging/`; the sweep of the next open publishes them.
            failed(.publication, error)
        }
    }

    func report(_ victims: [Victim]) {
        guard !victims.isEmpty else { return }
        displacedCount.wrappingAdd(UInt64(victims.count), ordering: .relaxed)
        guard audience.isObserved else { return }
        for victim in victims {
            audience.tell(
                .displaced(
                    key: victim.entryKey, length: ByteCount(Int64(clamping: victim.record.length)),
                    reason: victim.reason))
        }
    }

    /// Rows of an order were damaged, and went.
    private func reportRows(_ count: Int) {
        hasSeenDamage.store(true, ordering: .relaxed)
        logger.error(
            "rows of the order of displacement led to no entry and were removed: run 'cachectl verify'",
            metadata: ["rows": "\(count)", "path": "\(path)"])
        configuration.observer?(.rowsRemoved(count: count))
    }

    func noRoom() -> LarderError {
        LarderError(
            .noSpace,
            "no room in \(path): what is left is pinned, leased or being written", remedy: .makeRoom,
            path: path)
    }
}
