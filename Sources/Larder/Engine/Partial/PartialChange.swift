/// A change to a body in progress, as an operation of a job.
final class PartialChange: @unchecked Sendable {
    // SAFETY: immutable but for `started`, `applied` and `toldUses`. As the outcomes of `PendingJob`, those are touched
    // by the thread of the committer until `PendingSet.finish`, and by the caller after `PendingSet.wait`.
    enum Kind {
        /// Takes over what there is, or else stores this.
        case begin(PendingPut)
        /// Tells the index how far the writer has come.
        case advance
        /// The same, and the writer leaves the body.
        case suspend
        /// The body is complete: the entry becomes this, with the reserved bytes of its file.
        case complete(@Sendable (_ reserved: Int64) -> PendingPut)
        /// Removes it.
        case abandon
    }

    let kind: Kind
    let work: PartialWork
    /// What the writer has after `begin`; `isNew` if there was nothing to take over.
    private(set) var started: (partial: Mutation.Partial, isNew: Bool)?
    /// What it came to in the transaction: what the file is charged with, and the bytes no longer reserved.
    private var applied: (charge: Int64, transferred: Int64)?
    /// How often options had been given when the index got them.
    private var toldUses = 0

    init(_ kind: Kind, of work: PartialWork) {
        self.kind = kind
        self.work = work
    }

    /// The file to give up if it cannot be committed.
    var stagedFile: StagedFile? {
        if case .begin(let put) = kind { put.stagedFile } else { nil }
    }

    /// True if a body file becomes a permanent part of the store: a durable one needs its name synced before.
    var completes: Bool { if case .complete = kind { true } else { false } }

    /// The transaction is committed.
    func noteCommitted() {
        guard let applied else {
            switch kind {
            case .advance: work.end(.gone)
            // The file is another's now, or gone: neither is for this process to count.
            case .suspend: work.noteReleased(transferred: 0)
            // The caller hears of it.
            case .begin, .complete, .abandon: break
            }
            return
        }
        switch kind {
        case .begin: break
        case .advance, .suspend:
            work.noteTold(charge: applied.charge, transferred: applied.transferred, uses: toldUses)
        case .complete:
            work.noteReleased(transferred: applied.transferred)
            // Before anyone finds that the body in progress is not there any more.
            work.end(.committed)
        case .abandon: work.noteReleased(transferred: applied.transferred)
        }
    }

    /// It could not be committed.
    func noteFailed() {
        work.noteFailed()
        // No caller of a writer that is over tries again.
        if case .suspend = kind { work.leaveUnsettled() }
    }

    func apply(_ mutation: Mutation, _ leases: LeaseBook) throws -> Change.Outcome {
        applied = nil
        if case .begin(let put) = kind { return try begin(put, mutation, leases) }
        let now = work.snapshot(isTold: true)
        toldUses = now.uses
        let key = work.indexKey
        guard let place = now.place, let partial = try mutation.partial(key, blob: place.blob, token: place.token)
        else { return .over(.absent) }
        switch kind {
        case .begin: break
        case .advance, .suspend:
            let isOver = if case .suspend = kind { true } else { false }
            let transferred = try mutation.advance(
                key, partial, now.progress, charge: now.charge, isPublished: isOver
            ) { record in try now.options.map { try work.set($0, in: &record, mutation, leases.instance) } }
            applied = (now.charge, transferred)
        case .complete(let put):
            guard let transferred = try mutation.complete(key, partial, charge: now.charge, as: put) else {
                return .over(.absent)
            }
            applied = (0, transferred)
        case .abandon:
            // In `trash/` the file takes what it takes now.
            let transferred = try mutation.advance(
                key, partial, now.progress, charge: now.charge, isPublished: false
            ) { _ in }
            try mutation.remove(key)
            applied = (0, transferred)
        }
        return .over(.done)
    }

    private func begin(_ put: PendingPut, _ mutation: Mutation, _ leases: LeaseBook) throws -> Change.Outcome {
        started = nil
        let key = work.indexKey
        if let found = try mutation.partial(key), put.overwrites(found.record.version) {
            if try mutation.isBeingWritten(key: key, found.record, except: leases.instance) {
                mutation.blobs.drop(put.body)
                return .over(.failed(work.lockedElsewhere))
            }
            if !found.record.isExpired(at: mutation.now), work.continues(found.record),
                let taken = try mutation.takeOver(
                    key, found, token: work.nextToken, total: work.progress.total,
                    { try work.takeOver(&$0, put.options, mutation, leases.instance) })
            {
                mutation.blobs.drop(put.body)
                started = (taken, false)
            }
        }
        if started == nil {
            try mutation.put(put)
            guard let made = try mutation.partial(key) else { return .over(.absent) }
            started = (made, true)
        }
        // However long the writer takes.
        let claim = Change.LeaseRequest(
            kind: .computation, subject: work.key.bytes, version: work.version, duration: nil)
        return .leased(row: try mutation.addLease(claim, leases))
    }
}
