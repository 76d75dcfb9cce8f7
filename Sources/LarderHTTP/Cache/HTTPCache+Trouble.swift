import Larder

/// How the store behind a cache is.
extension HTTPCache {
    /// Times that the store could not be read or written since the cache was made. A body over a limit does not count.
    public var storeFailures: UInt64 { changes.watch.failures }

    /// The store, and what the cache has seen of it.
    package var health: StoreHealth { StoreHealth(store, changes.watch) }

    /// What is wrong with the store now. Waits for the disk, on no thread of the cooperative pool.
    ///
    /// Failures of reading and writing are listed here until the same work succeeds again; those of the store's own
    /// work until the store reports them over.
    ///
    /// - Returns: one item for each kind of work that fails; empty when all is well.
    public func storeTroubles() async -> [StoreTrouble] { await health.troubles() }
}
