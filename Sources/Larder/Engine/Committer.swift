/// The thread that writes what is pending: group commit, access times, displacement in the background, checkpoints.
final class Committer {
    private let engine: Engine
    private let pending: PendingSet
    private var lastCheckpoint: UInt64
    private var checkpointedFiles: UInt64 = 0
    /// Pinned tags, read in each transaction that puts entries with tags.
    private static let displacementSlice = 64
    private static let idleSeconds = 1.0
    private static let checkpointInterval: UInt64 = 30 * 1_000_000_000

    init(engine: Engine) {
        self.engine = engine
        // `run` is only started on engines that write.
        pending = engine.writing!.pending
        lastCheckpoint = engine.uptime.uptime()
    }

    func run() {
        while true {
            let work = pending.next(idle: engine.isDisplacing.load(ordering: .relaxed) ? 0 : Self.idleSeconds)
            process(work.batch)
            if work.isClosing, work.batch.isEmpty { return }
            if !work.isClosing { maintain() }
        }
    }

    // MARK: Batches

    private func process(_ batch: PendingSet.Batch) {
        let touches = engine.writing!.touches.drain()
        let isDisplacing = engine.isDisplacing.load(ordering: .relaxed)
        let tokens = engine.published.withLock { tokens in
            let taken = tokens
            tokens.removeAll()
            return taken
        }
        guard !batch.isEmpty || !touches.isEmpty || isDisplacing || !tokens.isEmpty else { return }
        var failure: LarderError?
        do {
            let uses = Self.ordered(batch, touches)
            try commit(uses, batch.touches, tokens, isDurable: batch.isDurable)
            if batch.isDurable { try engine.index.environment.sync() }
        } catch {
            engine.published.withLock { $0 += tokens }
            failure = engine.translate(error)
        }
        if let failure {
            engine.logger.error("puts were dropped", metadata: ["error": "\(failure)"])
            engine.configuration.observer?(.commitFailed(failure))
        }
        pending.finish(batch, failure: failure)
    }

    fileprivate enum Use {
        case touch(TouchBuffer.Touch)
        case put(PendingPut)
        case remove(Key)
    }

    /// Everything that happened since the last commit, in the order of the last use of each entry.
    private static func ordered(_ batch: PendingSet.Batch, _ touches: [TouchBuffer.Touch]) -> [Use] {
        var uses: [(UInt64, Use)] = touches.map { ($0.lastUse, .touch($0)) }
        for (key, operation) in batch.operations {
            switch operation {
            case .put(let put): uses.append((put.lastUse, .put(put)))
            case .remove(let uptime): uses.append((uptime, .remove(key)))
            }
        }
        return uses.sorted { $0.0 < $1.0 }.map(\.1)
    }

    private func commit(
        _ uses: [Use], _ keyTouches: [Key: PendingSet.KeyTouch], _ tokens: [StagingToken], isDurable: Bool
    ) throws {
        if isDurable, uses.contains(where: \.isStaged) { try Sync.names(engine.files.staging) }
        do {
            try apply(uses[...], keyTouches, tokens)
        } catch let error as LarderError where error.code == .noSpace && uses.count > 1 {
            // One body too many must not take the rest of the batch with it.
            var last: LarderError?
            for use in uses {
                do {
                    try apply(CollectionOfOne(use)[...], [:], [])
                } catch {
                    drop(use)
                    last = engine.translate(error)
                }
            }
            if let last { throw last }
        } catch {
            for use in uses { drop(use) }
            throw error
        }
    }

    /// Gives back what a put that failed for good had staged.
    private func drop(_ use: Use) {
        guard case .put(let put) = use, case .staged(let file) = put.body else { return }
        engine.discard(file, engine.writing!)
    }

    private func apply(
        _ uses: some Collection<Use>, _ keyTouches: [Key: PendingSet.KeyTouch], _ tokens: [StagingToken]
    ) throws {
        let engine = engine
        let uptime = engine.uptime.uptime()
        let hasPuts = uses.contains { if case .put = $0 { true } else { false } }
        let isDisplacing = engine.isDisplacing.load(ordering: .relaxed)
        let slice = try isDisplacing ? min(Self.displacementSlice, engine.removalLimit()) : 0
        let (victims, fill) = try engine.mutate(hasPuts ? .put : .housekeeping) { mutation in
            for use in uses {
                switch use {
                case .put(let put):
                    try mutation.put(put, pinnedByTag: try mutation.hasPinnedTag(put.options.tags))
                case .remove(let key):
                    try mutation.remove(IndexKey.bytes(for: key))
                case .touch(let touch):
                    let age = Int64(clamping: (max(uptime, touch.lastUse) - touch.lastUse) / 1000)
                    try mutation.touch(
                        stamp: touch.stamp, hits: touch.hits, accessed: mutation.now - .microseconds(age))
                }
            }
            for (key, touch) in keyTouches {
                if let record = try mutation.record(IndexKey.bytes(for: key)) {
                    try mutation.touch(stamp: record.stamp, hits: touch.hits, accessed: mutation.now)
                }
            }
            try engine.clearPublished(mutation, tokens)
            guard slice > 0 else { return ([Victim](), try engine.fill(mutation)) }
            let surplus = try engine.fill(mutation).overLow
            let victims = try Engine.displace(in: mutation, limit: slice, bytes: surplus).0
            return (victims, try engine.fill(mutation))
        }
        engine.report(victims)
        engine.steer(fill, displacedNothing: isDisplacing && victims.isEmpty)
    }

    // MARK: Maintenance

    /// Between batches: ends sessions of time, not of work.
    private func maintain() {
        let now = engine.uptime.uptime()
        guard now &- lastCheckpoint >= Self.checkpointInterval else { return }
        lastCheckpoint = now
        do {
            try engine.checkpointIfNeeded()
        } catch {
            engine.logger.warning("checkpoint failed", metadata: ["error": "\(error)"])
        }
    }
}

extension Committer.Use {
    fileprivate var isStaged: Bool {
        if case .put(let put) = self, case .staged = put.body { return true }
        return false
    }
}

extension Mutation {
    /// True if one of the tags is pinned.
    func hasPinnedTag(_ tags: [String]) throws -> Bool {
        if tags.isEmpty { return false }
        for tag in tags where try reading.get(index.pinnedTags, Array(tag.utf8)) != nil { return true }
        return false
    }
}

extension Engine {
    /// How full the store is beside the watermarks, in bytes: 0 if it is below them.
    struct Fill {
        var overHigh: Int64 = 0
        var overLow: Int64 = 0
    }

    /// How full the store will be after `mutation`. Free pages of the index count as room, and so do files that are about
    /// to be unlinked.
    func fill(_ mutation: Mutation) throws -> Fill {
        guard let writing else { return Fill() }
        let budget = mutation.state.budget
        var fill = Fill()
        if budget.bytes != .unlimited {
            let data = try writing.room.dataAllocated()
            let claimed = try writing.room.claimed(mutation.state) - mutation.stagedBytes - writing.reaper.queuedBytes
            let live = Double(claimed - data + (try mutation.liveIndexBytes()))
            let usable = Double(budget.usableBytes)
            fill.overHigh = Int64(max(0, live - usable * configuration.watermarks.high))
            fill.overLow = Int64(max(0, live - usable * configuration.watermarks.low))
        }
        if budget.freeDiskFloor > .zero {
            let lack = budget.freeDiskFloor.bytes - (try FileSystem.freeBytes(files.root)) - writing.reaper.queuedBytes
            fill.overHigh = max(fill.overHigh, lack)
            fill.overLow = max(fill.overLow, lack)
        }
        return fill
    }

    /// Starts and ends background displacement.
    func steer(_ fill: Fill, displacedNothing: Bool) {
        if fill.overLow == 0 || displacedNothing {
            isDisplacing.store(false, ordering: .relaxed)
        } else if fill.overHigh > 0 {
            isDisplacing.store(true, ordering: .relaxed)
        }
    }
}
