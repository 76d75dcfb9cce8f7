/// Changes that the committer applies in one transaction, in order, after the puts and removals of their batch.
///
/// Unlike those they look at what is there, so readers do not see them before the commit, and their caller waits
/// for it.
final class PendingJob: @unchecked Sendable {
    // SAFETY: only the caller changes it until `PendingSet.add`, only the thread of the committer until
    // `PendingSet.finish`, and only the caller after `PendingSet.wait`; the pending set's lock orders them.
    var changes: [Change]
    let isDurable: Bool
    /// Its alterations and puts of content make things smaller.
    private let isHousekeeping: Bool
    /// The keys that it reads or changes; nil: they are not known beforehand.
    let keys: Set<Key>?
    /// Bytes the pending set holds in memory for it.
    let memory: Int
    private(set) var outcomes: [Change.Outcome] = []
    /// True once its transaction is committed: then it is in the store, whatever `failure` says.
    private(set) var isCommitted = false
    /// Why it could not be committed, or is not sure to survive power loss.
    private(set) var failure: LarderError?
    /// True if what was put and removed before is committed with it, even if no part of it is left for the disk.
    let isBatch: Bool

    init(_ changes: [Change], isDurable: Bool, isBatch: Bool = false, isHousekeeping: Bool = false) {
        self.isBatch = isBatch
        self.changes = changes
        self.isDurable = isDurable
        self.isHousekeeping = isHousekeeping
        memory = changes.reduce(0) { $0 + $1.memory }
        removesContent = changes.contains { if case .removeContent = $0 { true } else { false } }
        keys = removesContent ? nil : Set(changes.compactMap(\.key))
    }

    /// True if it removes content, under whatever keys that is.
    let removesContent: Bool

    /// The result of each change, in order.
    var results: [WriteResult] { outcomes.map(\.result) }

    /// Files that the job has staged.
    var stagedFiles: [StagedFile] { changes.compactMap(\.stagedFile) }

    /// Which limit its transaction has to keep: removing and unpinning are the way out of a full store.
    /// - Parameter limit: changes whose pages fit the headroom for certain; a job with more of them makes room like a
    ///   put.
    func purpose(limit: Int) -> Transactions.Purpose {
        var count = 0
        var claims = false
        for change in changes {
            switch change {
            case .over: break
            case .remove, .endLease: count += 1
            case .removeContent(_, let keys, _): count += keys.count
            case .alter(let alteration):
                if isHousekeeping {
                    count += 2
                    break
                }
                if alteration.fields != EntryChange(isPinned: false) { return .put }
                count += 1
            case .put(let put, _):
                guard case .content = put.body, isHousekeeping else { return .put }
                count += 2
            // A row for as long as a computation lasts: not worth displacing anything for.
            case .lease(let request) where request.kind == .computation:
                if isHousekeeping { count += 1 } else { claims = true }
            case .lease: return .put
            case .partial(let step):
                switch step.kind {
                case .begin, .complete: return .put
                // What it counts is reserved already.
                case .advance: claims = true
                // What a writer leaves can be displaced.
                case .suspend, .abandon: count += 1
                }
            }
        }
        return count > limit ? .put : claims ? .touch : .housekeeping
    }

    // MARK: Before the transaction

    /// Ends the job without a commit: all its changes are over.
    func endIfOver() {
        outcomes = changes.compactMap { if case .over(let result) = $0 { .over(result) } else { nil } }
    }

    // MARK: The transaction

    /// Applies the changes; see `Change.apply`.
    func apply(to mutation: Mutation, _ leases: LeaseBook) throws {
        outcomes.removeAll(keepingCapacity: true)
        if isDurable { mutation.noteDurable() }
        for change in changes { outcomes.append(try change.apply(to: mutation, leases)) }
    }

    /// The transaction with its changes is committed.
    func noteCommitted() {
        isCommitted = true
        for case .partial(let step) in changes { step.noteCommitted() }
    }

    /// It could not be committed.
    func fail(_ error: LarderError) {
        failure = failure ?? error
        if isCommitted { return }
        for case .partial(let step) in changes { step.noteFailed() }
    }

    /// The keys under which it has stored something.
    var storedKeys: [Key] {
        zip(changes, outcomes).compactMap { change, outcome in
            switch (change, outcome) {
            case (.put(let put, _), .stored): put.key
            // A writer has begun its body.
            case (.partial(let step), .leased): step.work.key
            default: nil
            }
        }
    }
}
