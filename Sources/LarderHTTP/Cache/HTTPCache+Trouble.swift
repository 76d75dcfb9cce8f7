import Larder

/// How the store behind a cache is.
extension HTTPCache {
    /// Number of times that the store could not be read or written since the cache was made. A body over a limit does
    /// not count.
    public var storeFailures: UInt64 { changes.watch.failures }

    /// The store, and the failures that the cache has seen.
    package var health: StoreHealth { StoreHealth(store, changes.watch) }

    /// The current failures of the store. Waits for the disk, on no thread of the cooperative pool.
    ///
    /// Failures of reading and writing are listed here until the same work succeeds again; those of the store's own
    /// work until the store reports that they are over.
    ///
    /// - Returns: one item for each kind of work that fails; empty if none does.
    public func storeTroubles() async -> [StoreTrouble] { await health.troubles() }
}
