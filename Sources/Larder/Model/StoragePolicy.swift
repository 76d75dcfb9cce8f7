/// How long an entry may stay, whatever its lifetime.
public enum StoragePolicy: UInt8, Sendable, Hashable, CaseIterable {
    /// Until it expires, is displaced or is removed.
    case permanent = 0
    /// As `permanent`, but removed when the store that put it is closed, or at the next open if that process died.
    case session = 1
    /// Never written to disk: removed when the store is closed, and visible to this process only. Within
    /// `Configuration.memoryLimit` the expired are displaced first, then the least recently used; pinned and leased
    /// ones stay. Cannot be put `durable`.
    case memoryOnly = 2
}

/// How long an entry is fresh.
public enum Lifetime: Sendable, Hashable {
    /// `Configuration.defaultLifetime`.
    case standard
    /// From the moment of the put.
    case duration(Duration)
    /// Up to a moment.
    case until(Timestamp)
    /// No expiry. `Configuration.maximumLifetime` still applies.
    case never
}

/// The point at which a put, a removal or another change returns.
public enum Durability: Sendable, Hashable {
    /// The call returns when this process sees the entry. A crash never corrupts the store, but may lose the last
    /// moments before it. A power loss also loses commits since the last sync of the index, some seconds, and bodies in
    /// files written since the last checkpoint, about 30 seconds.
    case relaxed
    /// The call returns when the entry survives power loss. Concurrent callers share one sync.
    case durable
}

/// When a read checks the bytes of a body against its digest.
public enum Verification: Sendable, Hashable {
    /// Only by `Store.check`.
    case never
    /// Bodies written shortly before the machine went down uncleanly, once.
    case afterUncleanShutdown
    /// On every read; costs 0.6 ms a MiB.
    case always
}
