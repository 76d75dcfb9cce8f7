import LMDB

/// One open store of this process: what every `Store` of the same path shares. It makes the parts, wires them, and
/// opens and closes them; `docs/architecture.md` says which does what, `docs/concurrency.md` on which thread.
final class Engine: EnginePart, @unchecked Sendable {
    // SAFETY: immutable except for `committer` and `scrubber`. `start()` sets those before any other thread sees the
    // engine; after that only `close()` uses them, whose body `EngineContext.markClosed` lets one thread into, once.
    let context: EngineContext
    let storeID: String
    let memory: MemoryTable
    let computations = Computations()
    let damage: Damage
    let bodies: Bodies
    let descriptions: Descriptions
    let lookups: Lookups
    let partials: PartialLookups
    let versions: Versions
    /// Nil in a read-only engine, which has none of the writing parts.
    let writing: Writing?
    let presence: Presence
    let tier: MemoryTier
    private var committer: WorkerThread?
    private var scrubber: Scrubber?

    /// - Parameters:
    ///   - state: the counters as of the open.
    ///   - resources: what an engine that may write has taken; nil opens read-only.
    init(context: EngineContext, storeID: String, state: StoreState, presence: Presence, resources: Writing.Resources?)
    {
        self.context = context
        self.storeID = storeID
        self.presence = presence
        let limit = Int(clamping: context.configuration.memoryLimit.bytes)
        tier = MemoryTier(limit, context.configuration)
        let memory = MemoryTable(limit: limit, tier: tier)
        let core = resources.map { Writing.Core(context: context, resources: $0) }
        let damage = Damage(
            context: context, suspects: state.suspects,
            changes: core.map {
                Damage.Changes(transactions: $0.transactions, recovery: $0.recovery, quarantine: $0.quarantine)
            })
        let descriptions = Descriptions(context: context, memory: memory, damage: damage, leases: core?.leases)
        bodies = Bodies(context: context, damage: damage, tier: tier)
        lookups = Lookups(
            context: context, memory: memory, bodies: bodies, damage: damage, descriptions: descriptions,
            uses: core.map { Lookups.Uses(pending: $0.pending, touches: $0.touchBuffer) })
        let writing = core.map {
            Writing(context: context, core: $0, memory: memory, damage: damage, descriptions: descriptions)
        }
        partials = PartialLookups(
            context: context, damage: damage, touches: core?.touchBuffer, living: writing?.partials)
        self.memory = memory
        self.descriptions = descriptions
        self.damage = damage
        self.writing = writing
        versions = writing?.versions ?? Versions(context: context, changes: nil)
    }

    // MARK: Opening and closing

    /// Starts the threads.
    /// - Parameter walksBehind: true if the pages of the index have yet to be looked at.
    func start(walksBehind: Bool) throws(LarderError) {
        if let problem = context.counterFile.problem {
            logger(.opening).warning(
                "the store's counters are not shared", metadata: ["error": "\(problem)", "path": "\(path)"])
        }
        if let writing {
            let memory = memory
            committer = try WorkerThread { writing.makeCommitter(memory).run() }
        }
        logger(.opening).debug(
            "opened the store", metadata: ["path": "\(path)", "isReadOnly": "\(configuration.isReadOnly)"])
        guard configuration.isScrubbing else { return }
        if walksBehind || writing != nil && !damage.suspects.isEmpty {
            scrubber = try Scrubber(
                context: context, damage: damage,
                changes: writing.map {
                    Scrubber.Changes(ledger: $0.ledger, transactions: $0.transactions, orphans: $0.orphans)
                },
                isAlone: presence.isAlone, walksPages: walksBehind)
        }
    }

    /// Writes what is pending, ends the threads and unmaps the index. Idempotent.
    func close() throws {
        guard context.markClosed() else { return }
        defer {
            tier.removeAll()
            index.environment.close()
            presence.release()
        }
        let hasWalked = scrubber?.stop() ?? configuration.isScrubbing
        scrubber = nil
        guard let writing else { return }
        writing.partials.suspendAll()
        writing.pending.close()
        committer?.join()
        committer = nil
        try writing.close(hasWalked: hasWalked)
    }

    // MARK: Guards

    /// The writing parts. Throws `closed` or `readOnly`.
    func requireWriting() throws(LarderError) -> Writing {
        try context.requireOpen()
        guard let writing else { throw context.readOnly() }
        return writing
    }
}
