/// The thread that writes what is pending: group commit, access times, displacement in the background, checkpoints.
final class Committer: EnginePart, @unchecked Sendable {
    // SAFETY: made, used and released by the thread that runs `run()`.
    let context: EngineContext
    private let memory: MemoryTable
    private let pending: PendingSet
    private let touchBuffer: TouchBuffer
    private let leases: LeaseBook
    private let staged: StagedFiles
    private let snapshots: HeldSnapshots
    private let watermarks: Watermarks
    private let log: DisplacementLog
    private let transactions: Transactions
    private let displacement: Displacement
    private let roomMaker: RoomMaker
    private let maintenance: Maintenance
    private let partials: PartialBodies
    /// Between tries to make up for last steps of writers.
    private var partialPause = Backoff()
    /// Between tries of displacement that fails.
    private var pause = Backoff()
    private var expiry = Pace()
    /// The latest transaction with changes that were pending.
    private var latest: UInt64 = 0

    private static let idleSeconds = 1.0
    /// Removals and unpinnings in one job that go ahead in a store that is full of pins.
    private static let freeingLimit = 64
    /// Entries displaced in the transaction of a batch while the store is above its watermarks.
    private static let displacementSlice = 64

    init(
        context: EngineContext, memory: MemoryTable, pending: PendingSet, touchBuffer: TouchBuffer,
        leases: LeaseBook, staged: StagedFiles, snapshots: HeldSnapshots, watermarks: Watermarks,
        log: DisplacementLog, transactions: Transactions, displacement: Displacement, roomMaker: RoomMaker,
        maintenance: Maintenance, partials: PartialBodies
    ) {
        self.context = context
        self.memory = memory
        self.pending = pending
        self.touchBuffer = touchBuffer
        self.leases = leases
        self.staged = staged
        self.snapshots = snapshots
        self.watermarks = watermarks
        self.log = log
        self.transactions = transactions
        self.displacement = displacement
        self.roomMaker = roomMaker
        self.maintenance = maintenance
        self.partials = partials
    }

    func run() {
        while true {
            let work = pending.next(idle: idleSeconds, isShared: partials.isShared)
            process(work.batch, isClosing: work.isClosing)
            transactions.dropReleasedLeases()
            if work.isClosing, work.batch.isEmpty { return }
            if !work.isClosing {
                settlePartialsIfDue()
                removeExpiredIfDue()
                maintenance.wakeIfDue()
            }
        }
    }

    /// How long to wait for work.
    private var idleSeconds: Double {
        let now = configuration.clock.uptime()
        var remaining = expiry.remaining(at: now)
        if watermarks.isDisplacing { remaining = min(remaining, pause.remaining(at: now)) }
        return min(Double(remaining) / 1e9, Self.idleSeconds)
    }

    /// True if entries should be displaced now: above the watermarks, and not right after that failed.
    private var isDisplacing: Bool {
        watermarks.isDisplacing
            && pause.remaining(at: configuration.clock.uptime()) == 0
    }

    // MARK: Batches

    /// The touches that go with this commit: all, or none yet.
    private func dueTouches(isForced: Bool, isDisplacing: Bool) -> [TouchTable.Line] {
        let now = uptime.uptime()
        let isDue = isForced || touchBuffer.isDue(at: now, isDisplacing: isDisplacing)
        return isDue ? touchBuffer.drain(at: now) : []
    }

    private func process(_ batch: PendingSet.Batch, isClosing: Bool) {
        let isDisplacing = isDisplacing
        let touches = dueTouches(isForced: batch.isForced || isClosing, isDisplacing: isDisplacing)
        let began = uptime.uptime()
        defer { touchBuffer.noteWritten(touches.count, in: uptime.uptime() &- began) }
        let uses = Self.ordered(batch, touches)
        guard !uses.isEmpty || !batch.isEmpty || isDisplacing else { return }
        var failure: LarderError?
        do {
            if batch.isDurable, uses.contains(where: \.namesFiles) {
                reach("batch.before-staging-sync")
                try Sync.names(files.staging)
                reach("batch.after-staging-sync")
            }
            failure = commit(uses)
        } catch {
            // Nothing is committed on top of names that may not be there after a power loss.
            failure = translate(error)
            for use in uses { fail(use, translate(error)) }
        }
        do {
            if batch.isDurable {
                reach("batch.before-index-sync")
                // The commit has done so already if it replaced files.
                try transactions.syncIndexIfNeeded()
                reach("batch.after-index-sync")
            }
        } catch {
            // What was committed may not survive power loss: no durable put of the batch is a success.
            failure = translate(error)
            for use in uses { use.pending?.failDurably(translate(error)) }
            for job in batch.jobs where job.isDurable { job.fail(translate(error)) }
        }
        let lost = uses.compactMap(\.pending).filter { $0.failure != nil }
        if let failure {
            failed(.commit, failure)
            tell(lost, failure)
        } else if !batch.isEmpty, succeeded(.commit) {
            // What was in the way of commits was most likely in the way of this, too.
            pause.reset()
        }
        countCommit(of: batch, failed: lost.count, since: began)
        // The callers of durable changes hear of their failures themselves.
        pending.finish(batch, failed: lost.filter { !$0.isDurable }, as: latest)
    }

    /// Tells the observers what could not be committed: once for each cause, with the keys concerned.
    private func tell(_ failed: [PendingChange], _ failure: LarderError) {
        var failures = CommitFailures()
        for change in failed { failures.add(change) }
        for error in failures.errors.isEmpty ? [failure] : failures.errors {
            configuration.observer?(.commitFailed(error))
        }
    }

    /// A put that failed and is not tried again gives back what it had staged.
    private func fail(_ use: Use, _ failure: LarderError) {
        use.pending?.fail(failure)
        if case .job(let job) = use { job.fail(failure) }
        for file in use.stagedFiles { staged.discard(file) }
    }

    /// Everything that happened since the last commit, in the order of the last use of each entry.
    private static func ordered(_ batch: PendingSet.Batch, _ touches: [TouchTable.Line]) -> [Use] {
        var uses: [(UInt64, Use)] = touches.map { ($0.lastUse, .touch($0)) }
        for (key, touch) in batch.touches { uses.append((touch.lastUse, .touchKey(key, touch))) }
        for change in batch.changes.values {
            switch change {
            case .put(let put, _): uses.append((put.lastUse, .change(change, put)))
            case .remove(let removal, _): uses.append((removal.uptime, .change(change, removal)))
            default: preconditionFailure("other changes belong to jobs")
            }
        }
        return uses.sorted { $0.0 < $1.0 }.map(\.1) + batch.jobs.map(Use.job)
    }

    /// Commits the uses, in order: in one transaction if that fits the budget as it is. Returns the last failure.
    private func commit(_ uses: [Use]) -> LarderError? {
        if uses.isEmpty, !isDisplacing { return nil }
        var failure: LarderError?
        for part in parts(uses) {
            do {
                guard let lack = try apply(part, makingRoom: false) else {
                    succeeded(.touches)
                    continue
                }
                // Puts make room. Displacing entries only to note that others were used would be absurd: touches go in
                // parts that fit, or not at all.
                if part.allSatisfy(\.isTouch) {
                    try applyTouches(part)
                } else {
                    _ = try apply(part, makingRoom: true, lacking: lack)
                }
            } catch {
                if part.allSatisfy(\.isTouch) {
                    failed(.touches, error)
                } else {
                    failure = commitSingly(part) ?? failure
                }
            }
        }
        return failure
    }

    /// Touches in one transaction at most: each may copy a page, and LMDB never releases that memory.
    private static let touchLimit = 2048

    /// The uses in pieces with no more touches than the headroom has pages: more would hardly ever fit.
    private func parts(_ uses: [Use]) -> [ArraySlice<Use>] {
        var limit = Self.touchLimit
        if let budget = try? context.budget(), budget.bytes != .unlimited {
            limit = min(limit, Int(max(16, budget.headroomPages)))
        }
        var parts: [ArraySlice<Use>] = []
        var start = 0
        var touches = 0
        for (position, use) in uses.enumerated() where use.isTouch {
            touches += 1
            if touches > limit {
                parts.append(uses[start..<position])
                start = position
                touches = 1
            }
        }
        return parts + [uses[start...]]
    }

    /// The number of operations in a row that may fail for a cause outside them, before the rest of the batch is given
    /// up.
    private static let failureLimit = 8

    /// One body too many, or a failing disk, must not take more of a batch with it than necessary.
    ///
    /// Files come first. On a full disk only a commit makes them displaceable, and they may have the reserve for that
    /// (`FullDisk.committing`): what comes after them finds room.
    private func commitSingly(_ uses: ArraySlice<Use>) -> LarderError? {
        var last: LarderError?
        var failures = 0
        for use in uses.filter(\.isPutOfFile) + uses.filter({ !$0.isPutOfFile && !$0.isTouch }) {
            if failures == Self.failureLimit, let last {
                fail(use, last)
                continue
            }
            do {
                _ = try apply(CollectionOfOne(use)[...], makingRoom: true)
                failures = 0
                if case .change(.put(let put, _), _) = use { pending.publish(put, as: latest) }
            } catch {
                let failure = translate(error)
                // If a batch does not fit, its caller gets the error. The store itself has no problem.
                if case .job = use, failure.code == .noSpace || failure.code == .tooLarge {
                    fail(use, failure)
                    continue
                }
                last = failure
                // Where there is no room for one body there may be some for a smaller one.
                failures = failure.code == .noSpace || failure.code == .tooLarge ? 0 : failures + 1
                fail(use, failure)
                // The removal that came before the put still applies.
                guard case .change(.put(let put, _), _) = use, let removal = put.removal else { continue }
                let use = Use.change(.remove(removal, .none), removal)
                _ = try? apply(CollectionOfOne(use)[...], makingRoom: true)
            }
        }
        return last
    }

    private func applyTouches(_ touches: ArraySlice<Use>) throws {
        if try apply(touches, makingRoom: false) == nil || touches.count == 1 { return }
        let middle = touches.startIndex + touches.count / 2
        try applyTouches(touches[..<middle])
        try applyTouches(touches[middle...])
    }

    /// Nil if the transaction was committed; what it lacks if it does not fit and may not make room.
    /// - Parameter lacking: what it lacked when it was tried before.
    private func apply(_ uses: some Collection<Use>, makingRoom: Bool, lacking: Room.Lack? = nil) throws -> Room.Lack? {
        guard watermarks.mayDisplace, pause.remaining(at: configuration.clock.uptime()) == 0 else {
            return try apply(uses, makingRoom, lacking, displacing: false)
        }
        do {
            // Beside a held snapshot displacement gains little, so it waits until a put needs room.
            if try snapshots.held() != nil {
                pause.failed(at: configuration.clock.uptime())
                return try apply(uses, makingRoom, lacking, displacing: false)
            }
            let lack = try apply(uses, makingRoom, lacking, displacing: true)
            if lack == nil { pause.reset() }
            succeeded(.displacement)
            return lack
        } catch {
            pause.failed(at: configuration.clock.uptime())
            if uses.isEmpty {
                failed(.displacement, error)
                return nil
            }
            // The batch must not fail for the sake of displacement. If it fails by itself, that failure is reported.
            let lack = try apply(uses, makingRoom, lacking, displacing: false)
            failed(.displacement, error)
            return lack
        }
    }

    /// Readers see at once what jobs did, and so do the jobs that may follow in another transaction.
    private func noteCommitted(_ uses: some Collection<Use>, as transaction: UInt64) {
        // A transaction that changed nothing leaves no snapshot, and readers would wait for one.
        let last = (try? index.environment.latestTransaction()) ?? 0
        latest = min(transaction, last)
        let jobs = uses.compactMap { if case .job(let job) = $0 { job } else { nil } }
        if jobs.isEmpty { return }
        for job in jobs { job.noteCommitted() }
        pending.publish(jobs, in: memory, as: latest)
    }

    /// - Parameter displaces: entries that are to go do so in the same transaction.
    private func apply(
        _ uses: some Collection<Use>, _ makingRoom: Bool, _ lacking: Room.Lack?, displacing displaces: Bool
    ) throws -> Room.Lack? {
        let uptime = uptime.uptime()
        var transaction: UInt64 = 0
        var (start, hasGrown) = (UInt64(0), false)
        var fill = Watermarks.Fill()
        let change: (Mutation) throws -> [Victim] = { [self] mutation in
            transaction = mutation.reading.id
            start = mutation.state.nextStamp
            for case .job(let job) in uses {
                mutation.completesPending = true
                if job.removesContent { mutation.keysOfContent = [:] }
            }
            for use in uses { try apply(use, mutation, uptime) }
            hasGrown = mutation.lastPut > 0
            fill = try watermarks.fill(mutation)
            let victims = try displaces ? displace(in: mutation, fill, before: start, hasGrown: hasGrown) : []
            if !victims.isEmpty { fill = try watermarks.fill(mutation) }
            return victims
        }
        let purpose = try purpose(of: uses)
        let outcome: Transactions.Attempt<[Victim]> =
            makingRoom || purpose == .housekeeping
            ? .committed(try roomMaker.mutate(purpose, lacking: lacking, change))
            : try transactions.tryCommit(purpose, change)
        switch outcome {
        case .lacks(let lack):
            if hasGrown { watermarks.level.noteLack(at: fill) }
            return lack
        case .committed(let victims):
            noteCommitted(uses, as: transaction)
            log.report(victims)
            if hasGrown, !makingRoom { watermarks.level.noteFit(at: fill) }
            watermarks.steer(
                fill, since: start, hasGrown: hasGrown,
                displacedNothing: displaces && watermarks.isDisplacing && victims.isEmpty)
            return nil
        }
    }

    /// Displaces what takes the store over its watermarks, or over the level at which a batch has room.
    private func displace(
        in mutation: Mutation, _ fill: Watermarks.Fill, before start: UInt64, hasGrown: Bool
    ) throws -> [Victim] {
        let limit = try context.removalLimit()
        if watermarks.isDisplacing {
            var order = VictimOrder.byUse(before: watermarks.mark)
            return try mutation.displace(&order, limit: min(Self.displacementSlice, limit), bytes: fill.overLow).victims
        }
        let excess = watermarks.level.excess(of: fill.live)
        guard hasGrown, excess > 0 else { return [] }
        var order = VictimOrder.byUse(before: start)
        return try mutation.displace(&order, limit: limit, bytes: excess).victims
    }

    private func purpose(of uses: some Collection<Use>) throws -> Transactions.Purpose {
        var purpose = Transactions.Purpose.housekeeping
        for use in uses {
            switch use {
            case .change(.put, _): return .put
            case .change: break
            case .job(let job):
                let limit = try max(Self.freeingLimit, context.removalLimit())
                switch job.purpose(limit: limit) {
                case .put: return .put
                case .touch: purpose = .touch
                case .housekeeping: break
                }
            case .touch, .touchKey: purpose = .touch
            }
        }
        return purpose
    }

    private func apply(_ use: Use, _ mutation: Mutation, _ uptime: UInt64) throws {
        switch use {
        case .job(let job):
            try job.apply(to: mutation, leases)
        case .change(let change, _):
            _ = try change.apply(to: mutation, leases)
        case .touch(let touch):
            try mutation.touch(touch, at: uptime)
        case .touchKey(let key, let touch):
            guard let record = try mutation.record(IndexKey.bytes(for: key)) else { return }
            try mutation.touch(
                TouchTable.Line(stamp: record.stamp, lastUse: touch.lastUse, hits: touch.hits), at: uptime)
        }
    }

    // MARK: Bodies in progress

    /// Tries last steps of writers again that failed, with growing pauses while they fail.
    private func settlePartialsIfDue() {
        let now = configuration.clock.uptime()
        guard partials.hasUnsettled else {
            if partialPause.remaining(at: now) == 0 { partialPause.reset() }
            return
        }
        guard partialPause.remaining(at: now) == 0 else { return }
        partialPause.failed(at: now)
        partials.settle()
    }

    // MARK: Expired entries

    /// Removes a slice of the entries that have expired. Puts come first: as long as there are more, a quarter of the
    /// time goes into it.
    private func removeExpiredIfDue() {
        let time = configuration.clock
        guard expiry.remaining(at: time.uptime()) == 0 else { return }
        let began = uptime.uptime()
        do {
            let isMore = try displacement.removeExpired()
            succeeded(.expiry)
            expiry.done(at: time.uptime(), took: uptime.uptime() &- began, isMore: isMore)
        } catch {
            expiry.failed(at: time.uptime())
            failed(.expiry, error)
        }
    }
}
