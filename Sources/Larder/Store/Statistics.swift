import LMDB

/// The size of a store. The figures are exact and need no counting: each is kept up to date as the store changes.
public struct Statistics: Sendable, Hashable {
    /// Number of entries on disk.
    public var entryCount: Int
    /// Number of different bodies.
    public var blobCount: Int
    /// Sum over entries of their body's length.
    public var logicalBytes: ByteCount
    /// Sum over different bodies of the bytes stored for them.
    public var storedBytes: ByteCount
    /// Bytes that compression saves: summed over different bodies, their lengths less what is stored for them.
    public var compressionGain: ByteCount
    /// `st_blocks` x 512 summed over every regular file of the store's directory.
    public var allocatedBytes: ByteCount
    /// The part of these bytes that the index takes, inline bodies included.
    public var indexBytes: ByteCount
    /// Pages of the index in use; the rest of `indexBytes` is room that puts reuse and `collect(compact:)` gives back.
    public var liveIndexBytes: ByteCount
    /// Number of bodies in files of their own.
    public var fileCount: Int
    /// Bytes in files being written, waiting to be removed, or in quarantine.
    public var transientBytes: ByteCount
    /// The limits in force.
    public var budget: Budget
    /// Entries that this process displaced since it opened the store, those of policy `memoryOnly` included.
    public var displacedCount: Int
    /// Work of this process on the store that fails at the moment; empty if none does.
    public var failures: [StandingFailure] = []
    /// Number of entries of policy `memoryOnly` in this process; no other figure includes them.
    public var memoryEntryCount: Int
    /// Memory that they take, of `Configuration.memoryLimit`.
    public var memoryBytes: ByteCount
    /// Copies of bodies and what was made of bodies, in the rest of that memory, in this process.
    public var memoryTier = MemoryTierStatistics()
    /// The activity of all processes on the store: hits, misses, puts, displacement, failures, latencies.
    public var counters = StoreCounters()

    /// Bytes that sharing bodies saves.
    package var savedBytes: ByteCount {
        ByteCount(logicalBytes.bytes - storedBytes.bytes - compressionGain.bytes)
    }
}

/// What the memory above the disk holds beside entries of policy `memoryOnly`, and how often something was found there,
/// since this process opened the store.
public struct MemoryTierStatistics: Sendable, Hashable {
    /// Bodies, and values made of bodies.
    public var count = 0
    /// Memory that they take.
    public var bytes = ByteCount.zero
    /// Lookups that found what they asked for there.
    public var hits = 0
    /// Lookups that did not.
    public var misses = 0
}

extension Store {
    /// The size of the store. Commits the pending changes of this process first, so that the figures are exact. O(1) in
    /// the entries; the few files in `staging/`, `trash/` and `quarantine/` are examined.
    /// - Throws: `closed`, `io`, `readersFull`.
    @available(*, noasync, message: "Use `perform`, which waits off the cooperative threads.")
    public func statistics() throws -> Statistics {
        try requireOpen()
        engine.commitPending()
        return try engine.statistics()
    }
}
