/// An event in a store, as this process caused or saw it: `Store.events(buffering:)`, `Configuration.observer`.
///
/// The events do not include the work of other processes on the store; `Statistics.counters` does. New cases may be
/// added: a `switch` needs a `default`.
public enum StoreEvent: Sendable {
    /// A call put a body under a key, and readers of this process see it. A relaxed put may still fail: then
    /// `commitFailed` follows. Not for observers.
    case stored(key: Key, length: ByteCount)
    /// A call removed the entry under a key. Not for observers.
    case removed(key: Key)
    /// A call removed every entry: `Store.clear()`. Not for observers.
    case cleared(count: Int)
    /// An entry was displaced.
    case displaced(key: Key, length: ByteCount, reason: DisplacementReason)
    /// A body's bytes did not match its digest, or its file was missing; the entries that used it are misses now.
    case damaged(digest: Digest, reason: String)
    /// Files of an open store that died were swept.
    case swept(published: Int, restored: Int, removed: Int)
    /// The scan after an unclean shutdown finished: body files compared with their digests, those that did not match,
    /// and files without a record that were removed.
    case scrubbed(compared: Int, damaged: Int, orphans: Int)
    /// A checkpoint was made: the body files written before it survive power loss.
    case checkpointed(files: Int)
    /// The index turned out to be damaged while the store was in use. Every further call throws the error, with
    /// `corruption`.
    case indexDamaged(LarderError)
    /// Some of the puts and removals of a batch could not be committed, for one cause: `LarderError.keys` has their
    /// keys.
    case commitFailed(LarderError)
    /// The store's own work fails; reported once for each cause. The store retries it, see `Statistics.failures`.
    case failing(StandingFailure.Work, LarderError)
    /// Work that was `failing` succeeded.
    case recovered(StandingFailure.Work)
    /// Rows of the order of displacement led to no entry, or to an entry with another place: they were removed.
    case rowsRemoved(count: Int)
    /// The reader of `Store.events(buffering:)` was too slow: this many of the oldest events were dropped before the
    /// next one. Not for observers.
    case missed(count: Int)
}
