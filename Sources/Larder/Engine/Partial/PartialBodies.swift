import LMDB
import Locks

/// The bodies that writers of this process write, and what those need: names, room, files, jobs. Safe from any thread:
/// the table is under a lock, and each body's state is its own.
final class PartialBodies: EnginePart {
    let context: EngineContext
    private let submission: Submission
    private let pending: PendingSet
    private let staged: StagedFiles
    private let stager: Stager
    private let room: RoomMaker
    private let fullDisk: FullDisk
    private let ledger: Ledger
    private let leases: LeaseBook
    private let damage: Damage
    private let works = EngineMutex<[Key: PartialWork]>([:])
    /// Writers that are over and whose last step failed.
    private let unsettled = EngineMutex<[PartialWork]>([])
    private let unsettledCount = Atomic<Int>(0)

    init(
        context: EngineContext, submission: Submission, pending: PendingSet, staged: StagedFiles, stager: Stager,
        room: RoomMaker, fullDisk: FullDisk, ledger: Ledger, leases: LeaseBook,
        damage: Damage
    ) {
        self.context = context
        self.submission = submission
        self.pending = pending
        self.staged = staged
        self.stager = stager
        self.room = room
        self.fullDisk = fullDisk
        self.ledger = ledger
        self.leases = leases
        self.damage = damage
    }

    // MARK: Who writes what

    /// Adds a writer. Throws `locked` if there is one for its key.
    func enter(_ work: PartialWork) throws {
        for attempt in 0..<2 {
            let other = works.withLock { works -> PartialWork? in
                if let other = works[work.key] { return other }
                works[work.key] = work
                return nil
            }
            guard let other else { return }
            // It may be idle, and not have heard that its body was removed.
            guard attempt == 0, try endIfGone(other) else { break }
        }
        throw work.lockedElsewhere
    }

    /// Ends a writer whose body the index does not have, nor will have.
    /// - Returns: true if the writer is over.
    func endIfGone(_ work: PartialWork) throws -> Bool {
        guard let place = work.place, work.ending == nil else { return work.ending != nil }
        submission.flush(touches: false)
        return try endUnlessStanding(work, place)
    }

    /// As the synchronous form. While it waits for what is pending, it holds no thread.
    func endIfGone(_ work: PartialWork) async throws {
        guard let place = work.place, work.ending == nil else { return }
        await submission.flush(touches: false)
        if try await IOPool.shared.run({ [self] in try isStanding(work, place) }) { return }
        await submission.flush(touches: false)
        work.end(.gone)
    }

    /// The part of the synchronous form that follows the flush. Internal for a test.
    func endUnlessStanding(_ work: PartialWork, _ place: PartialWork.Place) throws -> Bool {
        if try isStanding(work, place) { return false }
        // The commit that completed it since shows before the writer hears of it.
        submission.flush(touches: false)
        work.end(.gone)
        return true
    }

    private func isStanding(_ work: PartialWork, _ place: PartialWork.Place) throws -> Bool {
        try read { transaction in
            guard let raw = try transaction.get(index.entries, work.indexKey), let view = EntryView(raw),
                view.blob == place.blob,
                let head = try index.blob(place.blob, transaction)
            else { return false }
            return head.encoding == .partial && !head.isDamaged && head.token == place.token
        }
    }

    func leave(_ work: PartialWork) {
        works.withLock { works in
            if works[work.key] === work { works[work.key] = nil }
        }
    }

    /// The writer of a key in this process whose body has its place in the index.
    func find(_ key: Key) -> PartialWork? { works.withLock { $0[key] }.flatMap { $0.place == nil ? nil : $0 } }

    // MARK: Beginning

    func nextToken() -> StagingToken { staged.nextToken() }

    /// The job that begins a writer's work, with an empty file for a new body.
    /// - Parameter number: what a new body has in place of a digest.
    func begin(_ work: PartialWork, _ number: Digest, as put: (StagedFile) -> PendingPut) throws -> PendingJob {
        let file = try stager.create(reserving: 0, for: work.key)
        do {
            try fullDisk.writing(0) { try file.seal?.begin(file.descriptor, partial: number) }
        } catch {
            staged.discard(file)
            throw error
        }
        return work.job(.begin(put(file)))
    }

    /// The job is committed: gives the writer its file. After an error the body is left to others.
    func start(_ work: PartialWork, _ job: PendingJob) throws {
        guard case .partial(let change)? = job.changes.first, case .leased(let claim)? = job.outcomes.first,
            let (partial, isNew) = change.started
        else {
            work.end(.cancelled)
            if case .failed(let error)? = job.results.first { throw error }
            throw work.gone
        }
        let place = PartialWork.Place(blob: partial.record.blob, token: partial.head.token, claim: claim)
        do {
            var file: StagedFile
            var ranges = StoredRanges()
            if isNew, let new = change.stagedFile {
                file = new
            } else {
                (file, ranges) = try takeOver(partial, work)
            }
            file.reserved = 0
            var record = partial.record
            record.progress?.ranges = ranges
            work.start(
                file, place, record, charge: try charge(file, ranges), counted: partial.head.allocated.asBytes)
        } catch {
            work.end(.cancelled)
            leases.release(claim)
            throw error
        }
        reach("partial.begun")
    }

    /// The file of a body that a writer left, under its new name, without what was written and never told.
    private func takeOver(
        _ partial: Mutation.Partial, _ work: PartialWork
    ) throws -> (file: StagedFile, ranges: StoredRanges) {
        reach("partial.taken")
        let token = partial.head.token
        let end = partial.left.end
        guard try rename(partial),
            let descriptor = try FileSystem.openIfPresent(token.name, in: files.staging, flags: O_RDWR)
        else { throw work.gone }
        var file = StagedFile(token: token, descriptor: descriptor, length: end, isOwn: true)
        guard files.cipher != nil else {
            try FileSystem.truncate(descriptor, to: end, path: files.path(of: file))
            return (file, partial.record.progress?.ranges ?? StoredRanges())
        }
        do {
            let seal = try files.bodyFile(descriptor, partial.head).seal
            file.seal = seal
            let ranges = try seal?.takeOver(descriptor, partial.left, total: partial.record.progress?.total)
            return (file, ranges ?? StoredRanges())
        } catch let fault as SealDamage {
            try damage.drop(partial.record.blob, partial.head, "its file is damaged: \(fault)")
            throw work.gone
        }
    }

    /// Gives the file its new name, under the writer lock and while the index has the row by which a sweep knows it.
    ///
    /// A checkpoint that saw the file under its old name may have deleted the row since. One that comes later looks
    /// again, under the same lock, where the file is.
    /// - Returns: false if the file is not there.
    private func rename(_ partial: Mutation.Partial) throws -> Bool {
        let head = partial.head
        while true {
            let isStanding = try room.mutate(.housekeeping) { mutation in
                guard try mutation.blobs.record(partial.record.blob)?.isSameFile(as: head) == true else {
                    return false
                }
                if try mutation.reading.get(index.unpublished, head.token.indexKey) == nil {
                    try mutation.blobs.noteUnpublished(head, partial.record.blob)
                    mutation.noteChange(trees: 1)
                }
                return true
            }
            if !isStanding { return false }
            let isRenamed: Bool? = try locked { transaction in
                // A checkpoint, or a removal, has come between.
                if try transaction.reading.get(index.unpublished, head.token.indexKey) == nil { return nil }
                return try FileSystem.rename(
                    Layout.blob(files.name(of: head.digest)), in: files.blobs, to: head.token.name, in: files.staging)
            }
            if let isRenamed { return isRenamed }
        }
    }

    /// Runs `body` under the writer lock, and changes nothing in the index.
    private func locked<R>(_ body: (WriteTransaction) throws -> R) throws -> R {
        do {
            let transaction = try index.environment.beginWrite()
            defer { transaction.abort() }
            return try body(transaction)
        } catch let error as LMDBError {
            throw translate(error)
        }
    }

    // MARK: Writing

    /// The range of bytes that are to be written, if they can be a part of the body.
    func range(of count: Int, at offset: Int64, _ total: Int64?, _ key: Key) throws -> Range<Int64> {
        if offset < 0 || offset > Store.maximumLength {
            throw LarderError(.invalidArgument, "no body has a byte at the offset \(offset)", key: key)
        }
        let end = offset + Int64(count)
        if let total, end > total {
            throw LarderError(
                .lengthMismatch, "the body of \(key) has \(total) bytes, and is written up to \(end)", key: key)
        }
        try Store.checkSize(end, key, context.budget())
        return offset..<end
    }

    /// Runs `body`, which writes to a file, with `growth` bytes of the budget. After an error what the file takes is
    /// settled, and the error thrown.
    /// - Parameter end: where the last byte that it has ends.
    func writing(
        _ file: StagedFile, endingAt end: Int64, _ growth: Int64, _ key: Key,
        _ settle: (_ reserved: Int64) throws -> Void,
        _ body: () throws -> Void
    ) throws {
        if growth > 0 { try room.reserve(growth, for: key) }
        do {
            try stager.requireWhole(file, to: end)
            try body()
            reach("partial.written")
        } catch {
            try settle(growth)
            throw error
        }
    }

    /// - Parameter total: the length of the body, if it is known.
    func write(_ bytes: UnsafeRawBufferPointer, to file: StagedFile, at offset: Int64, total: Int64?) throws {
        try fullDisk.writing(Int64(bytes.count)) {
            try file.content.write(bytes, at: offset, total: total, path: files.path(of: file))
        }
    }

    /// Bytes that a file takes at most for more ranges.
    func growth(_ file: StagedFile, from known: StoredRanges, to new: StoredRanges) -> Int64 {
        places(of: new, in: file).bytes(inBlocksOf: 4096) - places(of: known, in: file).bytes(inBlocksOf: 4096)
    }

    /// Where the bytes of some ranges lie in a file.
    private func places(of ranges: StoredRanges, in file: StagedFile) -> StoredRanges {
        file.seal == nil ? ranges : BodySeal.places(of: ranges)
    }

    /// What a file is charged with.
    func charge(_ file: StagedFile, _ ranges: StoredRanges) throws -> Int64 {
        Allocation.charge(
            try FileSystem.status(file.descriptor, path: nil),
            places(of: file.seal?.written(ranges) ?? ranges, in: file))
    }

    /// Counts bytes on disk that the index does not.
    func reserve(_ bytes: Int64) { ledger.add(bytes) }

    /// Whether another process has the store open for writing.
    var isShared: Bool { ledger.hasOthers }

    /// Cuts a file that is complete to its length. One that is shorter must not grow: the rest would be zeros.
    func seal(_ file: StagedFile, _ digest: Digest, length: Int64, isDurable: Bool) throws {
        let content = file.content
        if content.seal != nil {
            try fullDisk.writing(Int64(BodySeal.chunkLength)) { try content.finish(digest, length: length) }
        }
        let whole = content.fileLength(length)
        if try stager.requireWhole(file, to: length).size > whole {
            try FileSystem.truncate(file.descriptor, to: whole, path: files.path(of: file))
        }
        if isDurable { try Sync.data(file.descriptor, path: files.path(of: file)) }
        reach("partial.sealed")
    }

    // MARK: Jobs

    /// Tells the index of a writer's progress with the next batch, at the latest 50 ms from now.
    func queue(_ job: PendingJob, of work: PartialWork) {
        do {
            try submission.queue(job)
        } catch {
            // The store is being closed: a sweep does the rest.
            work.noteFailed()
        }
    }

    /// True if the first change of a job that is committed was made. If not, the body is another's.
    func isDone(_ job: PendingJob) -> Bool {
        if case .over(.done)? = job.outcomes.first { return true }
        return false
    }

    /// The store is being closed: the writers leave their bodies to others.
    func suspendAll() {
        // One that has not begun has its job in the batch, or comes too late for it.
        for work in works.withLock({ Array($0.values) }) where work.place != nil { suspendLater(work) }
    }

    /// Writes what an encrypted file still has in memory only. What cannot be written is not named in the index.
    func leaveOpenChunks(_ work: PartialWork) {
        guard let content = work.content, let seal = content.seal else { return }
        do {
            try fullDisk.writing(Int64(BodySeal.chunkLength)) { try seal.leave(content.descriptor) }
            try work.settleCharge()
        } catch {
            logger(.calls).warning(
                "a part of a body in progress is not kept", metadata: ["error": "\(error)", "key": "\(work.key)"])
        }
    }

    /// A writer leaves its body to others, and does not wait until the index has heard of it.
    func suspendLater(_ work: PartialWork) {
        work.inTurn {
            guard work.ending == nil else { return }
            leaveOpenChunks(work)
            queue(work.job(.suspend), of: work)
            work.end(.suspended)
        }
    }

    // MARK: Last steps that failed

    /// True if there are writers whose last step failed.
    var hasUnsettled: Bool { unsettledCount.load(ordering: .acquiring) > 0 }

    /// The last step of a writer failed: it is made up for later. Until then what its file takes stays reserved.
    func settleLater(_ work: PartialWork) {
        guard work.place != nil else { return }
        unsettled.withLock { works in
            if !works.contains(where: { $0 === work }) { works.append(work) }
            unsettledCount.store(works.count, ordering: .releasing)
        }
    }

    /// Adds what is left to do to the open batch. For the committer's thread, which must not wait for room there.
    func settle() {
        let due = unsettled.withLock { works in
            defer { works = [] }
            unsettledCount.store(0, ordering: .releasing)
            return works
        }
        for work in due {
            do {
                let admission = try pending.add(work.job(.suspend), mayWait: false, isPatient: true)
                if case .added = admission { continue }
                settleLater(work)
            } catch {
                // The store is being closed: a sweep does the rest.
                settleLater(work)
            }
        }
    }

    /// A step of a writer could not be committed: its body is left to others as it is.
    func release(_ work: PartialWork) {
        if let claim = work.place?.claim { leases.release(claim) }
    }
}
