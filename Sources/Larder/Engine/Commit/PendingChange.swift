/// A put or a removal that this process has promised and the index does not have yet.
class PendingChange: @unchecked Sendable {
    // SAFETY: `replacedDurably` changes only under the lock of the `PendingSet`, before the committer takes the batch.
    // `failure` is set by the thread of the committer only, before `PendingSet.finish`, and read by others only after
    // `PendingSet.wait`, which takes the same lock. The rest is immutable.
    let key: Key
    /// The store object to which a failure is reported, if its caller does not wait for the commit.
    let owner: UInt32
    /// The caller waits until the change survives power loss.
    let isDurable: Bool
    /// Durable changes that this one took the place of, whose callers wait for it.
    fileprivate(set) var replacedDurably: [PendingChange] = []
    /// Why the change could not be committed.
    fileprivate(set) var failure: LarderError?

    init(key: Key, owner: UInt32, isDurable: Bool) {
        self.key = key
        self.owner = owner
        self.isDurable = isDurable
    }

    /// Takes over the callers that wait for `earlier`, in whose place this change is committed.
    final func answer(for earlier: PendingChange) {
        replacedDurably += earlier.replacedDurably
        if earlier.isDurable { replacedDurably.append(earlier) }
    }

    /// The change could not be committed, and neither could those that it replaced.
    final func fail(_ error: LarderError) {
        for change in replacedDurably + [self] { change.failure = change.failure ?? error }
    }

    /// The change is committed and may not survive power loss: only callers that wait for durability get the error.
    final func failDurably(_ error: LarderError) {
        for change in replacedDurably + [self] where change.isDurable { change.failure = change.failure ?? error }
    }
}

/// The removal of a key.
final class PendingRemoval: PendingChange, @unchecked Sendable {
    // SAFETY: as for the class above; `versions` changes only under the lock of the `PendingSet`, before the committer
    // takes the batch, and `hasExisted` only there or in the call that makes the removal, which is the one to read it.
    /// Uptime of the call.
    let uptime: UInt64
    /// Only entries of these application versions; nil: of any.
    private(set) var versions: Set<UInt16>?
    /// True if its caller saw an entry that goes with it.
    var hasExisted = false

    init(key: Key, owner: UInt32, version: UInt16?, isDurable: Bool, uptime: UInt64) {
        self.uptime = uptime
        versions = version.map { [$0] }
        super.init(key: key, owner: owner, isDurable: isDurable)
    }

    /// True if the removal is for entries of `version`.
    func covers(_ version: UInt16) -> Bool { versions?.contains(version) ?? true }

    /// Takes the place of a change of the same key that is not committed yet.
    func supersede(_ earlier: PendingChange) {
        answer(for: earlier)
        // A put may have the removal of what it replaced with it.
        guard let removal = earlier as? PendingRemoval ?? (earlier as? PendingPut)?.removal else { return }
        guard let these = versions, let those = removal.versions else {
            versions = nil
            return
        }
        versions = these.union(those)
    }
}
