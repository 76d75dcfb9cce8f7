import CLarder
import LMDB
import Locks

/// What commits of this process have changed, so that what a lookup found in one snapshot counts in a later one: no
/// other process has committed in between, and this one has not changed what was found.
///
/// Changes are known by bucket: see `ChangedBuckets`. 32 KiB for each open store.
final class OwnCommits: @unchecked Sendable {
    // SAFETY: `words` is memory of its own until `deinit`; all access is through C atomics.
    /// For each bucket the latest commit of this process that changed it.
    private let words = UnsafeMutablePointer<UInt64>.allocate(capacity: ChangedBuckets.count)
    /// The latest commit of this process that is known to be one.
    private let end = Atomic<UInt64>(0)
    /// Every commit after this one, up to `end`, is of this process.
    private let start = Atomic<UInt64>(0)

    init() { words.initialize(repeating: 0, count: ChangedBuckets.count) }

    deinit { words.deallocate() }

    /// A transaction with these changes is about to be committed. Call it under the writer lock.
    func willCommit(_ transaction: WriteTransaction) {
        let number = transaction.reading.id
        // Each commit has the next number.
        if number &- 1 != end.load(ordering: .relaxed) { start.store(number &- 1, ordering: .relaxed) }
        if transaction.changes.isAll { start.store(number, ordering: .relaxed) }
        transaction.changes.forEach { clarder_store(words + $0, number) }
    }

    /// It was committed. A reader that does not see this yet takes the commit for another process's.
    func didCommit(_ number: UInt64) { end.store(number, ordering: .releasing) }

    /// True if commits between two snapshots are all of this process.
    @inline(__always)
    func areAll(from old: UInt64, to new: UInt64) -> Bool {
        // This first: whatever the commits up to it changed is seen after it.
        new <= end.load(ordering: .acquiring) && old >= start.load(ordering: .relaxed) && old <= new
    }

    /// True if none of these commits changed what a key with that hash leads to, nor any later one: that is not looked
    /// into. Call it after `areAll`.
    @inline(__always)
    func isUnchanged(_ hash: UInt64, since snapshot: UInt64) -> Bool {
        clarder_load(words + ChangedBuckets.bucket(hash)) <= snapshot
    }
}
