/// A lease that keeps an entry out of displacement, as `Attributes.leases` tells of it.
///
/// Any process may release or extend it at the next moment.
public struct ActiveLease: Sendable, Hashable {
    /// What was leased.
    public enum Subject: Sendable, Hashable {
        /// The key of the entry.
        case key
        /// One of its tags.
        case tag(String)
        /// Its content, in whichever entries it is.
        case content
    }

    /// Who may end the lease before its time.
    public enum Holder: Sendable, Hashable {
        /// A `Lease` of a process that has the store open, this one or another.
        case process
        /// A `Lease` of a process that ended without releasing it: it holds until its time.
        case endedProcess
        /// None: a `WriteBatch` took it, and it holds until its time.
        case timeOnly
    }

    /// What was leased.
    public let subject: Subject
    /// When the lease ends at the latest, unless it is extended.
    public let expires: Timestamp
    /// Who may end it before.
    public let holder: Holder
}
