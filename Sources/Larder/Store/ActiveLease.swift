/// A lease that keeps an entry out of displacement: an element of `Attributes.leases`.
///
/// Any process may release or extend it a moment later.
public struct ActiveLease: Sendable, Hashable {
    /// The subject of a lease.
    public enum Subject: Sendable, Hashable {
        /// The key of the entry.
        case key
        /// One of its tags.
        case tag(String)
        /// Its content, in all entries that have it.
        case content
    }

    /// The holder, which may end the lease before its time.
    public enum Holder: Sendable, Hashable {
        /// A `Lease` of a process that has the store open, this one or another.
        case process
        /// A `Lease` of a process that ended without releasing it: it holds until its time.
        case endedProcess
        /// No holder: a `WriteBatch` took it, and it holds until its time.
        case timeOnly
    }

    /// The subject of the lease.
    public let subject: Subject
    /// When the lease ends at the latest, unless it is extended.
    public let expires: Timestamp
    /// The holder, which may end it earlier.
    public let holder: Holder
}
