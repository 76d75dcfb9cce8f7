/// What a writer of a body in progress has, and what followers of this process look at.
///
/// Bytes are written once: what is there stays, and a write fills the gaps only. So a range that was ever reported
/// never changes, and the digest of what came in order is known without another read.
final class PartialWork: @unchecked Sendable {
    // SAFETY: `hash` and `hashed` are touched by the holder of `turn` only, which writers take for as long as disks
    // take. `state` is touched only under `lock`, which no one holds while waiting. The rest is immutable.
    let key: Key
    let indexKey: [UInt8]
    let version: UInt16?
    private let configuration: Configuration
    private let bodies: PartialBodies
    private let turn = Turn()
    private let lock = Monitor()
    private var state: State
    private var hash = IncrementalDigest()
    /// How many bytes from the start of the body are in `hash`.
    private var hashed: Int64 = 0

    private struct State {
        var file: StagedFile?
        var place: Place?
        var progress: EntryRecord.Progress
        var metadata: [UInt8]
        /// Options that the index does not have yet.
        var options: PutOptions?
        /// How often options were given.
        var uses = 0
        /// What the file is charged with: what the index counts, and what is reserved beside that.
        var charge: Int64 = 0
        var reserved: Int64 = 0
        /// True if a job that has not begun will tell the index of all this.
        var isQueued = false
        var ending: Ending?
        var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
        var nextWaiter: UInt64 = 0
    }

    /// Where the body is in the index.
    struct Place {
        let blob: UInt64
        let token: StagingToken
        let claim: [UInt8]
    }

    /// How the work came to its end.
    enum Ending {
        case committed
        case suspended
        case cancelled
        case gone
        case closed
    }

    /// What a change tells the index.
    struct Snapshot {
        let place: Place?
        let progress: EntryRecord.Progress
        let options: PutOptions?
        let uses: Int
        let charge: Int64
    }

    init(
        key: Key, metadata: [UInt8], total: Int64?, version: UInt16?, configuration: Configuration,
        _ bodies: PartialBodies
    ) {
        self.key = key
        indexKey = IndexKey.bytes(for: key)
        self.version = version
        self.configuration = configuration
        self.bodies = bodies
        state = State(progress: EntryRecord.Progress(total: total), metadata: metadata)
    }

    // MARK: What is there

    var progress: EntryRecord.Progress { lock.locked { state.progress } }
    var metadata: [UInt8] { lock.locked { state.metadata } }
    var ending: Ending? { lock.locked { state.ending } }
    /// What reads the bytes; it stays good when the work is over.
    var content: BodyFile? { lock.locked { state.file?.content } }
    var place: Place? { lock.locked { state.place } }

    /// What the index has to learn.
    /// - Parameter isTold: later changes need another job.
    func snapshot(isTold: Bool) -> Snapshot {
        lock.locked {
            if isTold { state.isQueued = false }
            return Snapshot(
                place: state.place, progress: told(state.progress), options: state.options, uses: state.uses,
                charge: state.charge)
        }
    }

    /// What others may know of: the part that is in the file. Under the lock.
    private func told(_ progress: EntryRecord.Progress) -> EntryRecord.Progress {
        guard let seal = state.file?.seal else { return progress }
        var told = progress
        told.ranges = seal.written(progress.ranges)
        return told
    }

    // MARK: Beginning

    var nextToken: StagingToken { bodies.nextToken() }

    var lockedElsewhere: LarderError {
        LarderError(.locked, "another writer is writing the body of \(key): follow it instead", key: key)
    }

    /// True if what a writer left can be a part of the body that this one writes.
    func continues(_ record: EntryRecord) -> Bool {
        guard let found = record.progress else { return false }
        guard let total = progress.total else { return true }
        return found.total.map { $0 == total } ?? (found.ranges.end <= total)
    }

    /// What the record of a body becomes that is taken over: all but the metadata is as this writer wants it.
    func takeOver(
        _ record: inout EntryRecord, _ options: PutOptions, _ mutation: Mutation, _ instance: UInt64
    ) throws {
        var options = options
        options.metadata = record.metadata
        try set(options, in: &record, mutation, instance)
    }

    /// Sets what an entry has beside its body.
    func set(
        _ options: PutOptions, in record: inout EntryRecord, _ mutation: Mutation, _ instance: UInt64
    ) throws {
        record.metadata = options.metadata
        record.tags = options.tags
        record.isPinnedByTag = try mutation.hasPinnedTag(options.tags)
        record.isPinned = record.isPinned || options.isPinned
        record.expires = configuration.expiry(options.lifetime, at: mutation.now).microseconds
        record.policy = options.storagePolicy
        record.session = options.storagePolicy == .session ? instance : 0
    }

    /// The body has its place in the index.
    func start(_ file: StagedFile, _ place: Place, _ record: EntryRecord, charge: Int64, counted: Int64) {
        lock.locked {
            state.file = file
            state.place = place
            if let progress = record.progress { state.progress = progress }
            state.metadata = record.metadata
            state.charge = charge
            state.reserved = charge - counted
        }
        bodies.reserve(charge - counted)
    }

    // MARK: Writing

    /// Writes the bytes that are not there yet. Call it in turn.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws {
        try requireOpen()
        if bytes.isEmpty { return }
        let (known, file) = lock.locked { (state.progress, state.file) }
        let range = try bodies.range(of: bytes.count, at: offset, known.total, key)
        let gaps = known.ranges.gaps(in: range)
        guard let file, !gaps.isEmpty else { return }
        var new = known
        new.ranges.insert(range)
        if new.ranges.count > EntryRecord.Progress.maximumRanges {
            throw LarderError(
                .tooLarge,
                "the body of \(key) is in \(known.ranges.count) separate ranges, the most there can be: "
                    + "fill gaps first",
                key: key)
        }
        let growth = bodies.growth(file, from: known.ranges, to: new.ranges)
        try bodies.writing(file, endingAt: known.ranges.end, growth, key, { try self.settle(known, reserved: $0) }) {
            for gap in gaps {
                let part = Int(gap.lowerBound - offset)..<Int(gap.upperBound - offset)
                try bodies.write(
                    UnsafeRawBufferPointer(rebasing: bytes[part]), to: file, at: gap.lowerBound, total: known.total)
            }
        }
        try settle(new, reserved: growth)
        // Only now: after a failure other bytes may be written there.
        for gap in gaps where gap.lowerBound == hashed {
            let part = Int(gap.lowerBound - offset)..<Int(gap.upperBound - offset)
            hash.update(UnsafeRawBufferPointer(rebasing: bytes[part]))
            hashed = gap.upperBound
        }
        tell()
    }

    /// The file has changed: charges it with what it takes now, of which `reserved` bytes are reserved already.
    private func settle(_ progress: EntryRecord.Progress, reserved: Int64) throws {
        guard let file = lock.locked({ state.file }) else { return }
        let charge: Int64
        do {
            charge = try bodies.charge(file, progress.ranges)
        } catch {
            // At most that much, until it can be looked at again.
            account(for: lock.locked { state.charge } + reserved, reserved: reserved, progress: nil)
            throw error
        }
        account(for: charge, reserved: reserved, progress: progress)
    }

    /// The file has changed, and nothing was reserved for that.
    func settleCharge() throws { try settle(progress, reserved: 0) }

    private func account(for charge: Int64, reserved: Int64, progress: EntryRecord.Progress?) {
        let waiters = lock.locked { () -> [CheckedContinuation<Void, Never>] in
            if isGone {
                bodies.reserve(-reserved)
                return []
            }
            bodies.reserve(charge - state.charge - reserved)
            state.reserved += charge - state.charge
            state.charge = charge
            guard let progress else { return [] }
            state.progress = progress
            return takeWaiters()
        }
        for waiter in waiters { waiter.resume() }
    }

    /// True if the index will never count the file again. Under the lock.
    private var isGone: Bool { state.ending == .gone || state.ending == .closed }

    /// Replaces what is stored with the body.
    /// - Parameter note: in turn; returns what is used.
    func use(_ note: () -> PutOptions) throws {
        try turn.locked {
            try requireOpen()
            let options = note()
            lock.locked {
                state.options = options
                state.uses += 1
                state.metadata = options.metadata
            }
            tell()
        }
    }

    /// Sees to it that the index hears of what has changed, with the next batch.
    private func tell() {
        let isQueued = lock.locked { () -> Bool in
            defer { state.isQueued = true }
            return state.isQueued
        }
        if !isQueued { bodies.queue(job(.advance), of: self) }
    }

    func requireOpen() throws {
        switch ending {
        case nil: return
        case .gone?: throw gone
        case _?:
            throw LarderError(.closed, "the writer of \(key) was committed, suspended or cancelled before", key: key)
        }
    }

    var gone: LarderError {
        LarderError(
            .gone, "the body in progress of \(key) was removed, displaced or replaced by another put", key: key)
    }

    // MARK: Jobs

    /// A job that does this, and nothing else.
    func job(_ kind: PartialChange.Kind, isDurable: Bool = false) -> PendingJob {
        var changes: [Change] = [.partial(PartialChange(kind, of: self))]
        switch kind {
        case .begin, .advance: break
        case .suspend, .complete, .abandon: if let claim = place?.claim { changes.append(.endLease(claim)) }
        }
        return PendingJob(changes, isDurable: isDurable)
    }

    /// The index counts these bytes now, so they are not reserved any more.
    /// - Parameter uses: how often options had been given by then: those are not set again over what others change.
    func noteTold(charge told: Int64, transferred: Int64, uses: Int) {
        lock.locked {
            if uses == state.uses { state.options = nil }
            state.reserved -= transferred
            // Nothing but this changes what the index counts, save a repair.
            let due = isGone ? 0 : state.charge - told
            bodies.reserve(due - state.reserved)
            state.reserved = due
        }
    }

    /// The file is another's now, or going.
    func noteReleased(transferred: Int64) {
        lock.locked {
            bodies.reserve(-(state.reserved - transferred))
            state.reserved = 0
            state.charge = 0
        }
    }

    /// A job failed: the next one brings what it would have brought.
    func noteFailed() { lock.locked { state.isQueued = false } }

    /// The last step failed: others may take the body over, and the index still has to learn what its file takes.
    func leaveUnsettled() {
        bodies.release(self)
        bodies.settleLater(self)
    }

    // MARK: Ending

    /// Runs a step of a writer, one thread at a time.
    func inTurn<R>(_ body: () throws -> R) rethrows -> R { try turn.locked(body) }

    /// As the synchronous form, on a thread of a pool. While another step takes its time, no thread waits.
    func inTurn<R: Sendable>(on pool: IOPool, _ body: @escaping @Sendable () throws -> R) async throws -> R {
        try await turn.locked(on: pool, body)
    }

    /// The work is over. Followers hear of it.
    func end(_ ending: Ending) {
        let waiters = lock.locked { () -> [CheckedContinuation<Void, Never>] in
            if state.ending != nil { return [] }
            state.ending = ending
            switch ending {
            case .gone, .closed:
                bodies.reserve(-state.reserved)
                state.reserved = 0
            case .committed: state.progress.total = state.progress.length
            case .suspended, .cancelled: break
            }
            return takeWaiters()
        }
        bodies.leave(self)
        // Where the last step ends the claim, this does nothing.
        if ending == .gone { bodies.release(self) }
        for waiter in waiters { waiter.resume() }
    }

    /// The digest of a complete body: of what came in order it is known, and the rest is read. Call it in turn.
    func digest(length: Int64) throws -> Digest {
        var hash = hash
        var offset = hashed
        guard let file = content else { return hash.finalize() }
        var buffer = [UInt8](repeating: 0, count: Int(min(max(length - offset, 0), 256 << 10)))
        while offset < length {
            // No further: behind the last byte an encrypted file is damaged.
            let wanted = try buffer.withUnsafeMutableBytes { buffer in
                let part = buffer[..<Int(min(Int64(buffer.count), length - offset))]
                return try file.readSound(into: UnsafeMutableRawBufferPointer(rebasing: part), at: offset, path: nil)
            }
            if wanted == 0 {
                throw LarderError(.io, "the file of the body of \(key) became shorter while it was written", key: key)
            }
            buffer.withUnsafeBytes { hash.update(UnsafeRawBufferPointer(rebasing: $0[..<wanted])) }
            offset += Int64(wanted)
        }
        return hash.finalize()
    }

    /// The file with exactly `length` bytes, synced if it is to be durable. Call it in turn.
    func seal(_ digest: Digest, length: Int64, isDurable: Bool) throws -> StagedFile? {
        guard var file = lock.locked({ state.file }) else { return nil }
        try bodies.seal(file, digest, length: length, isDurable: isDurable)
        try settle(progress, reserved: 0)
        file.length = length
        file.allocated = lock.locked { state.charge }
        return file
    }

    // MARK: Followers

    private func takeWaiters() -> [CheckedContinuation<Void, Never>] {
        defer { state.waiters = [:] }
        return Array(state.waiters.values)
    }

    /// Waits until the byte at `offset` is there, or the work is over, or the task is cancelled.
    func wait(for offset: Int64) async {
        let number = lock.locked { () -> UInt64 in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDue = lock.locked { () -> Bool in
                    if state.ending != nil || state.progress.ranges.end(from: offset) > offset || Task.isCancelled {
                        return true
                    }
                    state.waiters[number] = continuation
                    return false
                }
                if isDue { continuation.resume() }
            }
        } onCancel: {
            lock.locked { state.waiters.removeValue(forKey: number) }?.resume()
        }
    }
}
