import LMDB

/// The steps of `Store.collect`.
struct Collector {
    let engine: Engine
    let version: UInt16?
    let isDryRun: Bool
    /// The byte budget that a dry run goes by. Nil: the store's.
    let supposed: ByteCount?
    var report: CollectionReport
    /// Bytes that a real run would free, as far as a dry one can tell.
    private(set) var estimatedFreed: Int64 = 0

    var estimatedAfter: ByteCount { ByteCount(report.allocatedBefore.bytes - estimatedFreed) }

    init(
        engine: Engine, version: UInt16?, isDryRun: Bool, supposed: ByteCount?, report: CollectionReport
    ) {
        self.engine = engine
        self.version = version
        self.isDryRun = isDryRun
        self.supposed = supposed
        self.report = report
    }

    mutating func run(
        _ step: CollectionStep, compact: Bool, writing: Engine.Writing?, progress: (CollectionReport) throws -> Void
    ) throws {
        switch step {
        case .sweep: try sweep(writing)
        case .expired: report.expiredEntries = try remove(.expired, nil, progress) { $0.expiredEntries = $1 }
        case .versions:
            if let version {
                report.otherVersionEntries = try remove(.otherVersions, version, progress) {
                    $0.otherVersionEntries = $1
                }
            }
        case .dangling: try removeDangling(progress)
        case .orphans: try removeOrphans(writing, progress)
        case .displace: try displace(writing, progress)
        case .compact: try self.compact(writing, everything: compact)
        }
    }

    // MARK: Steps

    private mutating func sweep(_ writing: Engine.Writing?) throws {
        guard !isDryRun, let writing else { return try countStale(writing) }
        // The size before is that of now, and what the open has swept is gone already.
        let earlier = writing.recovery.takeSwept()
        report.allocatedBefore = ByteCount(report.allocatedBefore.bytes + earlier.bytes)
        try writing.recovery.sweepDead()
        try engine.context.clearDeadReaders()
        try writing.quarantine.tidy()
        report.staleFiles = earlier.files + writing.recovery.takeSwept().files
    }

    /// Files in `staging/` and `trash/` whose owner is dead.
    private mutating func countStale(_ writing: Engine.Writing?) throws {
        var alive: [UInt64: Bool] = [:]
        if let writing { alive[writing.lock.instance] = true }
        func isAlive(_ instance: UInt64) throws -> Bool {
            if let known = alive[instance] { return known }
            let result = try InstanceLock.isAlive(instance, staging: engine.files.staging)
            alive[instance] = result
            return result
        }
        for name in try engine.files.staging.ownFiles(.staging) {
            if let token = StagingToken(name: name), try !isAlive(token.instance) {
                try note(stale: name, in: engine.files.staging)
            }
        }
        for name in try engine.files.trash.ownFiles(.trash) {
            if let parts = Layout.parseTrash(name), try !isAlive(parts.token.instance) {
                try note(stale: name, in: engine.files.trash)
            }
        }
    }

    private mutating func note(stale name: String, in directory: Directory) throws {
        report.staleFiles += 1
        estimatedFreed += try FileSystem.status(name, in: directory)?.allocated ?? 0
    }

    private mutating func remove(
        _ selection: Selection, _ version: UInt16?, _ progress: (CollectionReport) throws -> Void,
        _ note: (inout CollectionReport, Int) -> Void
    ) throws -> Int {
        let filter = try engine.descriptions.filter(selection, version: version)
        var walk = EntryWalk(filter)
        var count = 0
        // Of a dry run: how many entries of each body go. The body goes with the last.
        var released: [UInt64: UInt64] = [:]
        defer { estimatedFreed += bytes(of: released) }
        while !walk.isOver {
            let limit = try engine.context.removalLimit()
            let batch = try engine.read { transaction in
                let batch = try walk.next(engine.index, transaction, limit: limit)
                if isDryRun {
                    for key in batch.keys {
                        let record = try engine.index.entry(key.key, transaction)
                        if let body = record?.embedded {
                            estimatedFreed += Int64(body.bytes.count)
                        } else if let blob = record?.blob {
                            released[blob, default: 0] += 1
                        }
                    }
                }
                return batch
            }
            if isDryRun {
                count += batch.keys.count
            } else if !batch.keys.isEmpty {
                count += try engine.requireWriting().removals.remove(batch.keys[...], filter)
            }
            note(&report, count)
            try progress(report)
        }
        return count
    }

    /// What the files of bodies take whose last entry goes.
    private func bytes(of released: [UInt64: UInt64]) -> Int64 {
        let sum = try? engine.read { transaction in
            try released.reduce(Int64(0)) { sum, pair in
                guard let head = try engine.index.blob(pair.key, transaction) else {
                    return sum
                }
                let shared = try engine.index.shared(head.digest, transaction)
                if let shared, shared.references > pair.value { return sum }
                return sum + (head.location == .file ? head.allocated : head.storedLength).asBytes
            }
        }
        return sum ?? 0
    }

    /// Entries whose blob is marked damaged, has no record, or whose file is gone.
    private mutating func removeDangling(_ progress: (CollectionReport) throws -> Void) throws {
        var walk = EntryWalk(.all, version: nil, now: engine.clock.now())
        let engine = engine
        while !walk.isOver {
            var dangling: [([UInt8], UInt64)] = []
            _ = try engine.read { transaction in
                try walk.visit(engine.index, transaction, limit: 1024) { key, record, _ in
                    let head = try engine.index.head(of: record, transaction)
                    if try Collector.isGone(head, record, engine) { dangling.append((key, record.id)) }
                }
            }
            if isDryRun {
                report.danglingEntries += dangling.count
            } else {
                for (key, id) in dangling {
                    report.danglingEntries += try engine.mutate(.housekeeping) { mutation in
                        guard let record = try mutation.record(key), record.id == id else { return 0 }
                        let head = try engine.index.head(of: record, mutation.reading)
                        guard try Collector.isGone(head, record, engine, isLocked: true) else { return 0 }
                        if let head, !head.isDamaged, record.isOf(head) {
                            try mutation.blobs.markDamaged(record.blob)
                        }
                        try mutation.remove(key)
                        return 1
                    }
                }
            }
            try progress(report)
        }
    }

    /// - Parameter isLocked: true under the writer lock, where a file that a removal left behind can be put back.
    private static func isGone(
        _ head: BlobRecord?, _ record: EntryRecord, _ engine: Engine, isLocked: Bool = false
    ) throws -> Bool {
        guard let head, !head.isDamaged, record.isOf(head) else { return true }
        guard head.location == .file else { return false }
        return isLocked ? try engine.damage.isLost(head) : try engine.files.blobStatus(head) == nil
    }

    /// Files in `blobs/` that the index does not have; see `OrphanBlobs`.
    private mutating func removeOrphans(
        _ writing: Engine.Writing?, _ progress: (CollectionReport) throws -> Void
    ) throws {
        for directory in try engine.files.shards() {
            guard !isDryRun, let writing else {
                let orphans = try engine.context.orphanBlobs(in: directory)
                report.orphanBlobs += orphans.count
                for name in orphans { estimatedFreed += try FileSystem.status(name, in: directory)?.allocated ?? 0 }
                if !orphans.isEmpty { try progress(report) }
                continue
            }
            let removed = try writing.orphans.remove(in: directory)
            report.orphanBlobs += removed
            if removed > 0 { try progress(report) }
        }
    }

    private mutating func displace(_ writing: Engine.Writing?, _ progress: (CollectionReport) throws -> Void) throws {
        guard let writing, !isDryRun else { return try estimateDisplacement() }
        while true {
            let before = try engine.state().entryCount
            if try !writing.roomMaker.step(most: 16 << 20) {
                let state = try engine.state()
                // What is left is pinned or leased. That is an error only if it exceeds the budget, not the headroom.
                if try writing.room.excess(adding: 0, state) == 0
                    || writing.room.claimed(state) <= state.budget.bytes.bytes
                {
                    return
                }
                throw engine.context.noRoom()
            }
            report.displacedEntries += Int(clamping: before) - Int(clamping: try engine.state().entryCount)
            try progress(report)
        }
    }

    /// Counts what would be displaced, without what has expired, which is counted already.
    private mutating func estimateDisplacement() throws {
        var budget = try engine.state().budget
        if let supposed { budget.bytes = supposed }
        guard budget.bytes != .unlimited else { return }
        // Free pages of the index go first.
        let taken = try engine.statistics().allocatedBytes.bytes - freeIndexBytes()
        let excess = taken - estimatedFreed - budget.usableBytes
        let found = try engine.displaceable(excess, skippingExpired: true)
        report.displacedEntries = found.count
        estimatedFreed += min(found.bytes, max(0, excess))
    }

    private mutating func compact(_ writing: Engine.Writing?, everything: Bool) throws {
        guard !isDryRun, let writing else {
            estimatedFreed += try freeIndexBytes()
            return
        }
        // Two passes of long runs leave few short ones; compacting takes those too.
        while try writing.space.punch(upTo: 32 << 20, minimumRun: 4) >= 1 << 20 {}
        if everything { while try writing.space.punch(upTo: 32 << 20, minimumRun: 1) >= 64 << 10 {} }
        try writing.space.settleReserve()
        // The list of free pages is itself made of pages; a sync makes the next run see all of them.
        try writing.transactions.syncIndex()
    }

    private func freeIndexBytes() throws -> Int64 {
        try engine.writing?.space.free() ?? engine.context.freeIndexBytes()
    }

    // MARK: Entries in memory

    /// Removes, or counts, what has expired in memory and what other application versions have there.
    mutating func collectMemory(_ writing: Engine.Writing?) throws {
        report.expiredEntries += try collectMemory(.expired, nil, writing)
        report.otherVersionEntries += try collectMemory(.otherVersions, version, writing)
    }

    private func collectMemory(_ selection: Selection, _ version: UInt16?, _ writing: Engine.Writing?) throws -> Int {
        let filter = try engine.descriptions.filter(selection, version: version)
        guard !isDryRun, let writing else { return try engine.descriptions.inMemory(filter).count }
        return try writing.memoryStore.remove(filter)
    }
}
