extension Engine {
    /// What only an engine that may write has: its hold on the directory, the queues, and the parts that change the
    /// store. Each part gets those that it may call, and no others.
    final class Writing: EnginePart {
        let context: EngineContext
        let lock: InstanceLock
        let ledger: Ledger
        let room: Room
        let reaper: Reaper
        let pending: PendingSet
        let touchBuffer: TouchBuffer
        let leases: LeaseBook
        let staged: StagedFiles
        let snapshots: HeldSnapshots
        let space: IndexSpace
        let watermarks: Watermarks
        let log: DisplacementLog
        let transactions: Transactions
        private let displacement: Displacement
        let fullDisk: FullDisk
        let roomMaker: RoomMaker
        let stager: Stager
        let submission: Submission
        let memoryStore: MemoryStore
        let partials: PartialBodies
        let recovery: Recovery
        let quarantine: Quarantine
        let checkpoints: Checkpoints
        let maintenance: Maintenance
        let orphans: OrphanBlobs
        let versions: Versions
        let removals: Removals
        private let compressionMark = CompressionMark()

        /// Makes sure that only code that knows compressed bodies opens the store.
        func allowCompression() throws { try compressionMark.make(in: files, transactions) }

        /// What an open takes for itself before there is an engine.
        struct Resources {
            let lock: InstanceLock
            let ledger: Ledger
            let room: Room
            let reaper: Reaper
            let pending: PendingSet
        }

        /// The parts below `Damage`, which the others are made with.
        struct Core {
            let resources: Resources
            let pending: PendingSet
            let touchBuffer = TouchBuffer()
            let leases: LeaseBook
            let staged: StagedFiles
            let snapshots: HeldSnapshots
            let space: IndexSpace
            let log: DisplacementLog
            let transactions: Transactions
            let recovery: Recovery
            let quarantine: Quarantine

            init(context: EngineContext, resources: Resources) {
                let (instance, ledger) = (resources.lock.instance, resources.ledger)
                self.resources = resources
                pending = resources.pending
                leases = LeaseBook(context: context, instance: instance)
                staged = StagedFiles(
                    context: context, instance: instance, ledger: ledger, reaper: resources.reaper)
                snapshots = HeldSnapshots(context: context, ledger: ledger)
                space = IndexSpace(context: context, snapshots: snapshots, reserve: resources.room.reserve)
                log = DisplacementLog(context: context)
                transactions = Transactions(
                    context: context, room: resources.room, ledger: ledger, reaper: resources.reaper,
                    pending: pending, leases: leases, snapshots: snapshots, space: space, staged: staged, log: log)
                recovery = Recovery(
                    context: context, instance: instance, ledger: ledger, transactions: transactions)
                quarantine = Quarantine(context: context, ledger: ledger)
            }
        }

        init(
            context: EngineContext, core: Core, memory: MemoryTable, damage: Damage, descriptions: Descriptions
        ) {
            self.context = context
            lock = core.resources.lock
            ledger = core.resources.ledger
            room = core.resources.room
            reaper = core.resources.reaper
            pending = core.pending
            touchBuffer = core.touchBuffer
            leases = core.leases
            staged = core.staged
            snapshots = core.snapshots
            space = core.space
            log = core.log
            transactions = core.transactions
            recovery = core.recovery
            quarantine = core.quarantine
            watermarks = Watermarks(context: context, room: room, reaper: reaper)
            displacement = Displacement(
                context: context, transactions: transactions, snapshots: snapshots, space: space, memory: memory,
                log: log)
            fullDisk = FullDisk(
                context: context, reaper: reaper, pending: pending, staged: staged, space: space,
                reserve: room.reserve, ledger: ledger, displacement: displacement, recovery: recovery,
                quarantine: quarantine)
            roomMaker = RoomMaker(
                context: context, room: room, ledger: ledger, reaper: reaper, pending: pending, staged: staged,
                snapshots: snapshots, space: space, transactions: transactions, displacement: displacement,
                recovery: recovery,
                touches: Touches(context: context, buffer: touchBuffer, transactions: transactions),
                quarantine: quarantine, fullDisk: fullDisk, log: log)
            stager = Stager(
                context: context, ledger: ledger, staged: staged, room: roomMaker, fullDisk: fullDisk)
            submission = Submission(
                context: context, pending: pending, memory: memory, touches: touchBuffer, staged: staged)
            memoryStore = MemoryStore(
                context: context, table: memory, pending: pending, submission: submission, staged: staged,
                leases: leases, descriptions: descriptions, log: log)
            partials = PartialBodies(
                context: context, submission: submission, pending: pending, staged: staged, stager: stager,
                room: roomMaker, fullDisk: fullDisk, ledger: ledger, leases: leases, damage: damage)
            checkpoints = Checkpoints(context: context, transactions: transactions, damage: damage)
            maintenance = Maintenance(checkpoints: checkpoints, transactions: transactions)
            orphans = OrphanBlobs(context: context, transactions: transactions)
            versions = Versions(context: context, changes: Versions.Changes(room: roomMaker, ledger: ledger))
            removals = Removals(
                context: context, transactions: transactions, versions: versions)
        }

        /// The committer, for its thread.
        func makeCommitter(_ memory: MemoryTable) -> Committer {
            Committer(
                context: context, memory: memory, pending: pending, touchBuffer: touchBuffer, leases: leases,
                staged: staged, snapshots: snapshots, watermarks: watermarks, log: log, transactions: transactions,
                displacement: displacement, roomMaker: roomMaker, maintenance: maintenance, partials: partials)
        }

        // MARK: Closing

        /// Leaves everything in order, after the committer has ended.
        /// - Parameter hasWalked: false if pages of the index have not been looked at, or were found damaged.
        func close(hasWalked: Bool) throws {
            maintenance.close()
            pending.stop()
            reach("close.batch-written")
            var failure: (any Error)? = pending.takeFailure(of: nil)
            do {
                transactions.dropReleasedLeases()
                try recovery.endSession()
                reach("close.session-ended")
                if !ledger.others.isEmpty { try checkpoints.makeIfCrowded() }
                if clock.mustBeRecorded { try transactions.housekeep { $0.noteChange(trees: 1) } }
                reaper.drain()
            } catch {
                failure = failure ?? error
            }
            reaper.close()
            reach("close.reaped")
            if failure == nil, hasWalked { noteClosed() }
            if !hasWalked, !context.hasSeenDamage { WalkRecord(ledger.words).end() }
            ledger.release()
            reach("close.slot-freed")
            do {
                try lock.remove()
            } catch {
                failure = failure ?? error
            }
            reach("close.lock-removed")
            logger(.opening).debug("closed the store", metadata: ["path": "\(path)"])
            if let failure { throw failure }
        }

        /// The last store to close has everything on disk, and says so: the next open need not look at the pages of
        /// the index, and a new start of the machine makes no file suspect. Without the note it does both, so failures
        /// are told to the log only.
        private func noteClosed() {
            guard !context.hasSeenDamage, ledger.others.isEmpty else { return }
            do {
                try checkpoints.makeForClose()
                reach("close.synced")
                // All is on disk up to this transaction, unless another store has committed files since, and closed.
                let last = try read { try $0.statistics(index.unpublished).entries == 0 ? $0.id : nil }
                guard let last, ledger.others.isEmpty else { return }
                let trust = IndexTrust(files: files, configuration: configuration)
                ClosedNote(ledger.words).set(try trust.mark(index.environment, last: last))
                // Another store may have been opened since, and has cleared the note already.
                if !ledger.others.isEmpty { ClosedNote(ledger.words).set(0) }
            } catch {
                logger(.opening).warning(
                    "not everything could be synced when the store closed", metadata: ["error": "\(error)"])
            }
        }
    }
}
