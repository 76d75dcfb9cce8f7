/// Something a store did on its own.
public enum StoreEvent: Sendable {
    /// An entry was displaced.
    case displaced(key: Key, length: ByteCount, reason: DisplacementReason)
    /// A body's bytes did not match its digest, or its file was gone; the entries that used it are misses now.
    case damaged(digest: Digest, reason: String)
    /// Files of an open store that died were swept.
    case swept(published: Int, restored: Int, removed: Int)
    /// What an unclean end of the machine left was looked after: body files compared with their digests, those that did
    /// not match, and files without a record that were removed.
    case scrubbed(compared: Int, damaged: Int, orphans: Int)
    /// The index turned out to be damaged while the store was in use. Every further call throws the error, with
    /// `corruption`.
    case indexDamaged(LarderError)
    /// Some of the puts and removals of a batch could not be committed, for one cause: `LarderError.keys` has their
    /// keys.
    case commitFailed(LarderError)
    /// The store's own work fails; told once for each cause. It is tried again, see `Statistics.failures`.
    case failing(StandingFailure.Work, LarderError)
    /// Work that was `failing` was done.
    case recovered(StandingFailure.Work)
    /// Rows of the order of displacement led to no entry, or to one of another place: they were removed.
    case rowsRemoved(count: Int)
}
