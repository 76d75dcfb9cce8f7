/// A failure of the store's own work that lasts: it is reported once when it begins and once when it ends, and
/// `Statistics.failures` lists it until then. The store retries by itself, with increasing delays.
public struct StandingFailure: Sendable, Hashable {
    /// Work that a store does on its own.
    public enum Work: String, Sendable, Hashable, CaseIterable {
        /// Writing batches of puts and removals, and syncing those that are durable.
        case commit
        /// Moving committed body files to their place.
        case publication
        /// Noting uses of entries.
        case touches
        /// Displacement in the background.
        case displacement
        /// Removal of expired entries in the background.
        case expiry
        /// Checkpoints.
        case checkpoint
        /// Deletion of released leases: they hold until their time is over.
        case leases
    }

    /// The work that fails.
    public var work: Work
    /// The code of the latest error.
    public var code: LarderError.Code
    /// The latest error in words.
    public var message: String
    /// Store time of the first failure.
    public var since: Timestamp
    /// Number of failures since then, at least 1.
    public var count: Int
}
