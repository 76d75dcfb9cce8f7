import Locks

/// What this process has promised and the index does not hold yet: the open batch, which grows, and the one that the
/// committer is writing. Readers of this process look here first.
final class PendingSet: @unchecked Sendable {
    // SAFETY: every variable is touched only under `monitor`; `count` and `filter` are atomic, and the rest is
    // immutable.
    private let monitor = Monitor(conditions: 4)
    /// What threads wait for.
    private enum Condition {
        /// The committer: for something to do.
        static let work = 0
        /// Callers: for room in the open batch.
        static let room = 1
        /// Callers: for the end of a batch.
        static let completion = 2
        /// The committer: for as many durable operations as came the last time.
        static let company = 3
    }
    private let count = Atomic<Int>(0)
    private let filter = PendingFilter()
    private var open = Batch(generation: 1)
    private var committing: Batch?
    private var completed: UInt64 = 0
    private var opened: UInt64 = 0
    private var isUrgent = false
    private var isClosing = false
    private var isStopped = false
    /// Jobs that wait for room in the open batch, by their tickets: the first one is next. With the batch that was open
    /// when each came.
    private var line: [(ticket: UInt64, arrival: UInt64)] = []
    private var nextTicket: UInt64 = 0
    /// Puts and removals that were left behind by a batch: the batch that was open when each came. They go before jobs
    /// that came later.
    private var overdue: [UInt64] = []
    /// The transaction that has the batch which is being written, once its commit begins. 0: none yet.
    private var committingAs: UInt64 = 0
    /// The latest transaction with changes that are no longer pending.
    private var committedAs: UInt64 = 0
    private var unreported: [UInt32: CommitFailures] = [:]
    private var waiters: [(generation: UInt64, continuation: CheckedContinuation<Void, Never>)] = []

    private var memoryLimit: Int
    private var countLimit: Int
    private let delay: UInt64
    /// How long the latest commits took, and when the one under way began: under load batches wait for more company,
    /// since a commit of 2,000 operations writes little more than one of 200.
    private var commitTime: UInt64 = 0
    private var began: UInt64 = 0
    /// How long a slow commit takes lately: see `CommitPace`.
    private var slowCommitTime: UInt64 = 0
    /// Operations of the latest durable batch, and while the committer waits for as many again, that number.
    private var durableCount = 0
    private var gathering = 0
    private let uptime: @Sendable () -> UInt64

    /// - Parameters:
    ///   - memoryLimit: bytes at which callers wait for the committer.
    ///   - delay: nanoseconds a relaxed put may wait for company before its batch is committed.
    init(memoryLimit: Int, countLimit: Int, delay: UInt64, uptime: @escaping @Sendable () -> UInt64) {
        self.memoryLimit = memoryLimit
        self.countLimit = countLimit
        self.delay = delay
        self.uptime = uptime
    }

    /// Changes the size at which a batch is full.
    func setLimits(memory: Int, count: Int) {
        monitor.locked {
            if memory > memoryLimit || count > countLimit { monitor.signal(Condition.room) }
            memoryLimit = memory
            countLimit = count
        }
    }

    // MARK: Readers

    /// What is pending under `key`, noting the hit when `use` is given. Nil: ask the index.
    @inline(__always)
    func lookup(_ key: Key, use: UInt64?) -> Lookup? {
        if count.load(ordering: .acquiring) == 0 || !filter.mayHave(key) { return nil }
        return monitor.locked { find(key, use: use) }
    }

    /// Whether something is pending under `key`, and the put, if it is one that is wanted. Notes the hit on that.
    @inline(__always)
    func put(_ key: Key, use: UInt64?, where isWanted: (PendingPut) -> Bool) -> (isPending: Bool, put: PendingPut?) {
        if count.load(ordering: .acquiring) == 0 || !filter.mayHave(key) { return (false, nil) }
        return monitor.locked {
            guard let found = find(key, use: nil) else { return (false, nil) }
            guard case .put(let put) = found, isWanted(put) else { return (true, nil) }
            if use != nil { _ = find(key, use: use) }
            return (true, put)
        }
    }

    /// What is pending under each of the keys for a reader of a snapshot of the index, so that both belong together.
    /// Nil if changes were committed since the snapshot was taken: a newer one has them.
    func lookup(_ keys: [Key], use: UInt64?, snapshot: UInt64) -> [Lookup?]? {
        monitor.locked {
            if snapshot < committedAs { return nil }
            // The snapshot has the batch already.
            let isOver = committingAs > 0 && snapshot >= committingAs
            return keys.map { key in
                if isOver, open.changes[key] == nil { return nil }
                return find(key, use: use)
            }
        }
    }

    /// The bytes of small bodies with these digests that are pending.
    func embeddableBodies(_ digests: Set<Digest>) -> [Digest: [UInt8]] {
        if count.load(ordering: .acquiring) == 0 { return [:] }
        let puts = monitor.locked {
            [open.changes, committing?.changes ?? [:]].flatMap { changes in
                changes.values.compactMap { change in
                    if case .put(let put, _) = change, put.isEmbeddable { put } else { nil }
                }
            }
        }
        // Without the lock, as some of them are hashed here.
        var found: [Digest: [UInt8]] = [:]
        for put in puts {
            if case .inline(let bytes) = put.body, digests.contains(put.digest) { found[put.digest] = bytes }
        }
        return found
    }

    /// True if something that is pending may be under a key with these first bytes. Looks at every pending change.
    func mayHave(prefix: Key) -> Bool {
        if count.load(ordering: .acquiring) == 0 { return false }
        return monitor.locked { open.mayHave(prefix: prefix) || committing?.mayHave(prefix: prefix) ?? false }
    }

    private func find(_ key: Key, use: UInt64?) -> Lookup? {
        if let change = open.changes[key] {
            guard case .put(let put, _) = change else { return .removed }
            if let use { put.use(at: use) }
            return .put(put)
        }
        guard let change = committing?.changes[key] else { return nil }
        guard case .put(let put, _) = change else { return .removed }
        if let use {
            let earlier = open.touches[key]
            open.touches[key] = KeyTouch(hits: (earlier?.hits ?? 0) &+ 1, lastUse: use)
        }
        return .put(put)
    }

    // MARK: Writers

    /// Adds a put to the open batch. While that is full it waits, or returns nil if `mayWait` is false.
    /// - Parameter alongside: runs under the lock, with the put: what has to change together with it for readers and
    ///   other writers of the key. It must not wait for anything. Throws `closed`.
    func add(_ put: PendingPut, mayWait: Bool = true, alongside: () -> Void = {}) throws(LarderError) -> Added? {
        try add(put, .put(put, .none), mayWait, alongside) { earlier in
            switch earlier {
            case .put(let old, _): put.supersede(old)
            case .remove(let removal, _): put.supersede(removal)
            default: break
            }
            return true
        }
    }

    /// As above, for a removal.
    func add(
        _ removal: PendingRemoval, mayWait: Bool = true, alongside: () -> Void = {}
    ) throws(LarderError) -> Added? {
        try add(removal, .remove(removal, .none), mayWait, alongside) { earlier in
            // An entry of another application version does not belong to the caller.
            if case .put(let put, _) = earlier, !removal.covers(put.version) { return false }
            if let earlier = earlier.pending { removal.supersede(earlier) }
            return true
        }
    }

    /// - Parameter supersede: takes over from what was to be done under the key; false leaves that as it is.
    private func add(
        _ pending: PendingChange, _ change: Change, _ mayWait: Bool, _ alongside: () -> Void,
        supersede: (Change) -> Bool
    ) throws(LarderError) -> Added? {
        let (key, isDurable, memory) = (pending.key, pending.isDurable, change.memory)
        var isOver = false
        let result: Added? = monitor.locked {
            // Who waits for the commit anyway should be in the next one.
            if mayWait, !isDurable { pace() }
            guard waitForRoom(memory, for: key, mayWait) else { return nil }
            isOver = isClosing || isStopped
            if isOver { return nil }
            if !open.isWanted { opened = uptime() }
            if let earlier = open.changes[key], !supersede(earlier) { return Added(generation: 0, replaced: nil) }
            var replaced: PendingPut?
            if let old = open.changes.updateValue(change, forKey: key) {
                open.memory -= old.memory
                if case .put(let put, _) = old { replaced = put }
            } else {
                filter.add(key, open.generation)
                count.wrappingAdd(1, ordering: .releasing)
            }
            // Readers that do not find the key there any more find it here.
            alongside()
            open.memory += memory
            open.isDurable = open.isDurable || isDurable
            let wasUrgent = isUrgent
            if isDurable { isUrgent = true }
            if gathering > 0, open.callers >= gathering { monitor.signal(Condition.company) }
            if open.changes.count == 1 || isUrgent != wasUrgent || open.memory >= memoryLimit / 2
                || open.count >= countLimit / 2
            {
                monitor.signal(Condition.work)
            }
            return Added(generation: open.generation, replaced: replaced)
        }
        if isOver { throw LarderError(.closed, "the store was closed", key: key) }
        return result
    }

    /// Adds a job to the open batch, which is committed at once. While that is full it waits, unless it may not.
    /// - Parameters:
    ///   - isPatient: no caller waits for it, so the batch need not be committed for a while.
    ///   - memoryKeys: keys of entries in memory that it goes by.
    ///   - alongside: runs under the lock, with the job, and changes those; false if they are others by now. It must
    ///     not wait for anything.
    /// - Throws: `closed`.
    func add(
        _ job: PendingJob, mayWait: Bool = true, isPatient: Bool = false, memoryKeys: some Collection<Key> = [],
        alongside: () -> Bool = { true }
    ) throws(LarderError) -> Admission {
        var isOver = false
        let admission = monitor.locked { () -> Admission in
            // Small ones that fit would keep a large one, which needs an empty batch, waiting without end.
            let ticket = nextTicket
            nextTicket += 1
            let arrival = open.generation
            line.append((ticket, arrival))
            defer {
                line.removeAll { $0.ticket == ticket }
                // For the job behind it, or for puts that waited until there is none.
                monitor.signal(Condition.room)
            }
            guard waitForRoom(job.memory, mayWait, while: { isBehind(ticket, arrival) }) else { return .full }
            isOver = isClosing || isStopped
            if isOver { return .full }
            if let claimant = claimant(of: memoryKeys) { return .claimed(claimant) }
            guard alongside() else { return .stale }
            if !open.isWanted { opened = uptime() }
            open.append(job, isPatient: isPatient)
            if !isPatient { isUrgent = true }
            if gathering > 0, open.callers >= gathering { monitor.signal(Condition.company) }
            monitor.signal(Condition.work)
            return .added(open.generation)
        }
        if isOver { throw LarderError(.closed, "the store was closed") }
        return admission
    }

    /// As above, where nothing is left for the disk.
    func unlessClaimed(_ keys: some Collection<Key>, _ change: () -> Bool) -> Admission {
        monitor.locked {
            if let claimant = claimant(of: keys) { return .claimed(claimant) }
            return change() ? .added(0) : .stale
        }
    }

    /// The generation of a batch with a job that has one of the keys: it may replace what is in memory.
    private func claimant(of keys: some Collection<Key>) -> UInt64? {
        if keys.contains(where: { open.claims($0) }) {
            isUrgent = true
            monitor.signal(Condition.work)
            return open.generation
        }
        guard let committing, keys.contains(where: { committing.claims($0) }) else { return nil }
        return committing.generation
    }

    /// True while other jobs are before one in the line, or a put that came no later and was left behind by a batch.
    private func isBehind(_ ticket: UInt64, _ arrival: UInt64) -> Bool {
        line.first?.ticket != ticket || overdue.contains { $0 <= arrival }
    }

    /// As below, for a put or removal. A job that waits for an empty batch is next. But a put that was left behind by a
    /// batch goes before the jobs that came later: those that keep coming would leave no room for it.
    private func waitForRoom(_ bytes: Int, for key: Key, _ mayWait: Bool) -> Bool {
        let arrival = open.generation
        var isOverdue = false
        let hasRoom = waitForRoom(bytes, mayWait) {
            if !isOverdue, open.generation > arrival {
                isOverdue = true
                overdue.append(arrival)
            }
            guard let first = line.first else { return open.claims(key) }
            return open.claims(key) || !isOverdue || first.arrival < arrival
        }
        if isOverdue, let place = overdue.firstIndex(of: arrival) {
            overdue.remove(at: place)
            if !line.isEmpty { monitor.signal(Condition.room) }
        }
        return hasRoom
    }

    /// Waits until the open batch has room for `bytes`; false if it would have to and may not. Under the lock.
    private func waitForRoom(_ bytes: Int, _ mayWait: Bool, while isInTheWay: () -> Bool) -> Bool {
        while !isClosing, !isStopped,
            isInTheWay() || open.count > 0 && (open.memory + bytes > memoryLimit || open.count >= countLimit)
        {
            isUrgent = true
            monitor.signal(Condition.work)
            if !mayWait { return false }
            monitor.wait(Condition.room)
        }
        return true
    }

    private func pace() {
        guard committing != nil, open.memory > memoryLimit / 2 || open.count > countLimit / 2 else { return }
        let filled = max(Double(open.memory) / Double(memoryLimit), Double(open.count) / Double(countLimit))
        let pause = CommitPace.pause(filled: filled, elapsed: uptime() &- began, commitTime: slowCommitTime)
        if pause > 0 { monitor.wait(Condition.room, seconds: Double(pause) / 1e9) }
    }

    /// Waits until the batch `generation` is committed.
    func wait(for generation: UInt64) {
        monitor.locked {
            while completed < generation, !isStopped {
                monitor.wait(Condition.completion)
            }
        }
    }

    /// As `wait`, without holding a thread.
    func wait(for generation: UInt64) async {
        await withCheckedContinuation { continuation in
            let isOver = monitor.locked {
                if completed >= generation || isStopped { return true }
                waiters.append((generation, continuation))
                return false
            }
            if isOver { continuation.resume() }
        }
    }

    /// Asks for everything pending to be committed now; returns the generation to wait for.
    /// - Parameter force: true makes a commit even if nothing is pending, for the touches.
    func requestFlush(force: Bool = false) -> UInt64 {
        monitor.locked {
            if force, !isClosing, !isStopped { open.isForced = true }
            if open.isEmpty { return committing?.generation ?? completed }
            isUrgent = true
            monitor.signal(Condition.work)
            return open.generation
        }
    }

    /// True if the open batch has something that must be committed.
    var isDue: Bool { monitor.locked { open.isWanted } }

    /// Jobs whose callers wait.
    var waitingJobs: Int { monitor.locked { open.jobs.count + (committing?.jobs.count ?? 0) } }

    /// Jobs that wait for room in the open batch.
    var jobsInLine: Int { monitor.locked { line.count } }

    /// The latest batch that is over.
    var completedGeneration: UInt64 { monitor.locked { completed } }

    /// What could not be committed of what `owner` put and removed without waiting, once; nil for `owner`: of all.
    func takeFailure(of owner: UInt32?) -> LarderError? {
        monitor.locked {
            guard let owner else {
                defer { unreported = [:] }
                return unreported.values.reduce(into: CommitFailures()) { $0.add($1) }.error
            }
            return unreported.removeValue(forKey: owner)?.error
        }
    }

    /// No further operations; the committer writes what there is and ends.
    func close() {
        monitor.locked {
            isClosing = true
            monitor.signal(Condition.work)
            monitor.signal(Condition.room)
        }
    }

    // MARK: The committer

    /// Waits for work: a batch that is due, or `idle` seconds without one.
    /// - Parameter isShared: whether other processes have the store open: what is pending here is not there for them.
    func next(idle: Double, isShared: Bool) -> Work {
        monitor.locked {
            let start = uptime()
            while !isClosing, !isUrgent {
                if !open.isWanted {
                    let waited = Double(uptime() &- start) / 1e9
                    if waited >= idle { break }
                    monitor.wait(Condition.work, seconds: idle - waited)
                } else {
                    let age = uptime() &- opened
                    let usual = currentDelay(isShared ? min(delay, Self.longestShared) : delay)
                    let delay = open.isPatient ? max(usual, Self.patience) : usual
                    if age >= delay || open.memory >= memoryLimit / 2 || open.count >= countLimit / 2 {
                        break
                    }
                    monitor.wait(Condition.work, seconds: Double(delay - age) / 1e9)
                }
            }
            gather()
            isUrgent = false
            let batch = open
            if !batch.isEmpty {
                began = uptime()
                committing = batch
                open = Batch(generation: batch.generation + 1)
                // Callers that waited for room in the open batch continue while this one is written.
                monitor.signal(Condition.room)
            }
            return Work(batch: batch, isClosing: isClosing)
        }
    }

    /// Callers that wait for durable puts come back together when a batch is done. The first of them is worth half a
    /// commit of waiting for the others: else each commit syncs for one, and the next for the rest.
    private func gather() {
        guard open.isDurable else { return }
        let deadline = uptime() &+ min(commitTime / 2, 2_000_000)
        while !isClosing, open.callers < durableCount {
            let now = uptime()
            if now >= deadline { break }
            gathering = durableCount
            monitor.wait(Condition.company, seconds: Double(deadline - now) / 1e9)
        }
        gathering = 0
        durableCount = open.callers
    }

    /// How long a batch may wait in which there is nothing but jobs that no caller waits for: 50 ms.
    private static let patience: UInt64 = 50_000_000

    /// The longest delay in a store that other processes have open: 10 ms.
    private static let longestShared: UInt64 = 10_000_000

    /// The delay that is wanted, or four times what a commit takes lately, up to ten times the delay.
    private func currentDelay(_ delay: UInt64) -> UInt64 { max(delay, min(commitTime * 4, delay * 10)) }

    /// The commit begins of all that is pending in the batch that is being written: a reader with a snapshot of
    /// `transaction` finds it there. 0: it failed.
    func noteCommit(as transaction: UInt64) { monitor.locked { committingAs = transaction } }

    /// The jobs of the batch that is being written are committed: readers see now what they did. What they have stored
    /// is in memory no more.
    /// - Parameter transaction: the one that has them.
    func publish(_ jobs: [PendingJob], in memory: MemoryTable, as transaction: UInt64) {
        monitor.locked {
            committedAs = max(committedAs, transaction)
            for job in jobs {
                if !memory.isEmpty {
                    for key in job.storedKeys {
                        // The removal that came with a later put to memory.
                        if case .remove(let removal, _)? = open.changes[key], removal.versions == nil { continue }
                        memory.remove(key)
                    }
                }
                let keys = job.keys ?? committing.map { Set($0.changes.keys) } ?? []
                for key in keys where committing?.changes.removeValue(forKey: key) != nil {
                    count.wrappingSubtract(1, ordering: .releasing)
                }
            }
        }
    }

    /// A put of the batch that is being written is committed before the others.
    func publish(_ put: PendingPut, as transaction: UInt64) {
        monitor.locked {
            committedAs = max(committedAs, transaction)
            guard case .put(let own, _)? = committing?.changes[put.key], own === put else { return }
            committing?.changes[put.key] = nil
            count.wrappingSubtract(1, ordering: .releasing)
        }
        put.closeFile()
    }

    /// The batch is in the index, or failed and is not tried again.
    /// - Parameters:
    ///   - failed: changes that failed and whose callers do not wait.
    ///   - transaction: the last one that has changes of the batch.
    func finish(_ batch: Batch, failed: [PendingChange], as transaction: UInt64) {
        guard !batch.isEmpty else { return }
        let ready = monitor.locked { () -> [CheckedContinuation<Void, Never>] in
            // Less what was taken out for the jobs of the batch.
            count.wrappingSubtract(committing?.changes.count ?? 0, ordering: .releasing)
            committing = nil
            filter.clear(batch.generation)
            committingAs = 0
            committedAs = max(committedAs, transaction)
            // Who was paced by this commit is company for the next one.
            monitor.signal(Condition.room)
            let time = uptime() &- began
            commitTime = (commitTime + time) / 2
            slowCommitTime = max(time, slowCommitTime - slowCommitTime / 8)
            completed = batch.generation
            for change in failed { unreported[change.owner, default: CommitFailures()].add(change) }
            return release()
        }
        for continuation in ready { continuation.resume() }
    }

    /// The committer has ended; no caller waits any longer.
    func stop() {
        let ready = monitor.locked { () -> [CheckedContinuation<Void, Never>] in
            isStopped = true
            monitor.signal(Condition.room)
            return release()
        }
        for continuation in ready { continuation.resume() }
    }

    private func release() -> [CheckedContinuation<Void, Never>] {
        monitor.signal(Condition.completion)
        let ready = waiters.filter { completed >= $0.generation || isStopped }
        waiters.removeAll { completed >= $0.generation || isStopped }
        return ready.map(\.continuation)
    }
}
