import LMDB

extension Engine {
    /// Which limit a write transaction has to keep.
    enum Purpose {
        /// Stores something: stays below the headroom, displaces to get there.
        case put
        /// Notes accesses: may use half of the headroom for the pages it copies, as those it replaces become free.
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
    /// `body` may run several times: when the commit would not fit, the transaction is dropped, room is made, and it runs
    /// again. It must not change anything outside the mutation. The order of renames and commit, and what a crash in each
    /// gap leaves, stands in `docs/recovery.md`.
    @discardableResult
    func mutate<R>(_ purpose: Purpose, _ body: (Mutation) throws -> R) throws -> R {
        guard let writing else { throw readOnly() }
        do {
            for _ in 0..<200 {
                switch try attempt(writing, purpose, body) {
                case .committed(let result):
                    return result
                case .lacks(let bytes):
                    if try makeRoom(bytes, writing) { continue }
                    // Other files that are staged may have all the room, and only a commit makes them displaceable.
                    if case .committed(let result) = try attempt(writing, purpose, body, mayUseHeadroom: true) {
                        return result
                    }
                    throw noRoom()
                }
            }
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

    private func attempt<R>(
        _ writing: Writing, _ purpose: Purpose, _ body: (Mutation) throws -> R, mayUseHeadroom: Bool = false
    ) throws -> Attempt<R> {
        let transaction = try index.environment.beginWrite()
        defer { transaction.abort() }
        let mutation = try Mutation(index: index, transaction: transaction, now: clock.advance())
        clock.observe(Timestamp(microseconds: mutation.state.clock))
        let result = try body(mutation)
        var victims: [Victim] = []
        while mutation.state.entryCount > UInt64(clamping: mutation.state.budget.entries) {
            guard let victim = try mutation.displaceNext(),
                victim.reason == .expired || victim.record.stamp != mutation.lastPut
            else {
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
        if let lack = try lack(mutation, purpose, writing, mayUseHeadroom) { return .lacks(lack) }
        try commit(mutation, writing)
        report(victims)
        return .committed(result)
    }

    /// Bytes by which the commit would break the budget; nil if it may go ahead.
    ///
    /// - Parameter mayUseHeadroom: lets the commit of files that are on disk already grow the index into the headroom. The
    ///   budget holds all the same, and what is committed can be displaced.
    private func lack(
        _ mutation: Mutation, _ purpose: Purpose, _ writing: Writing, _ mayUseHeadroom: Bool
    ) throws -> Int64? {
        let effective = mayUseHeadroom && mutation.stagedBytes > 0 ? Purpose.housekeeping : purpose
        let excess = try writing.room.excess(of: mutation, cap: effective.cap(mutation.state.budget))
        if excess == 0 { return nil }
        // Removals are bounded to what the headroom holds (`removalLimit`), so this is a budget that was lowered below what
        // the store takes: removing is the way back, even if it writes some pages first.
        if purpose == .housekeeping { return nil }
        return excess
    }

    private func commit(_ mutation: Mutation, _ writing: Writing) throws {
        var discarded: [(head: BlobRecord, name: String)] = []
        do {
            for head in mutation.deadFiles {
                let name = Layout.trash(nextToken(writing), head.digest)
                writing.ledger.add(Int64(head.allocated))
                discarded.append((head, name))
                _ = try files.discard(head, as: name)
            }
            try mutation.transaction.commit()
        } catch {
            for (head, name) in discarded {
                writing.ledger.add(-Int64(head.allocated))
                // What cannot be put back now, the next sweep puts back: the index still has it.
                try? files.restore(head, from: name)
            }
            throw error
        }
        writing.ledger.add(-mutation.stagedBytes)
        writing.reaper.add(discarded.map { ($0.name, Int64($0.head.allocated)) })
        for file in mutation.surplusFiles { discard(file, writing) }
        if !mutation.newFiles.isEmpty {
            hasUnsyncedFiles.store(true, ordering: .releasing)
            publish(mutation.newFiles)
        }
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
            let transaction = try index.environment.beginWrite()
            defer { transaction.abort() }
            for head in heads where try transaction.reading.get(index.unpublished, head.token.indexKey) != nil {
                try files.publish(head)
            }
        } catch {
            // Readers find the files in `staging/`; the sweep of the next open publishes them.
            logger.warning("body files stay in staging", metadata: ["error": "\(error)"])
        }
    }

    func report(_ victims: [Victim]) {
        guard !victims.isEmpty else { return }
        displacedCount.wrappingAdd(UInt64(victims.count), ordering: .relaxed)
        guard let observer = configuration.observer else { return }
        for victim in victims {
            observer(
                .displaced(
                    key: victim.entryKey, length: ByteCount(Int64(clamping: victim.record.length)),
                    reason: victim.reason))
        }
    }

    func noRoom() -> LarderError {
        LarderError(
            .noSpace,
            "no room in \(path): what is left is pinned, leased or being written. "
                + "Raise the budget ('cachectl budget --bytes'), lower the free-disk floor, or unpin entries",
            path: path)
    }
}
