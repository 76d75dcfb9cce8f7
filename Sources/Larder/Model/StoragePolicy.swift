/// How long an entry may stay, whatever its lifetime.
public enum StoragePolicy: UInt8, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    /// Until it expires, is displaced or is removed.
    case permanent = 0
    /// As `permanent`, but gone when the store that put it is closed, or at the next open if that process died.
    case session = 1
    /// Never written to disk: gone when the store is closed, seen by this process only. Within
    /// `Configuration.memoryLimit` the expired are displaced first, then the least recently used; pinned and leased
    /// ones stay. Cannot be put `durable`.
    case memoryOnly = 2

    /// The name.
    public var description: String {
        switch self {
        case .permanent: "permanent"
        case .session: "session"
        case .memoryOnly: "memoryOnly"
        }
    }
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

/// What a put, a removal or another change waits for.
public enum Durability: Sendable, Hashable {
    /// The call returns when this process sees the entry. A crash never corrupts the store; the last moments before it
    /// may be lost. With power also what was committed since the index was last synced, some seconds, and bodies in
    /// files written since the last checkpoint, about 30 seconds.
    case relaxed
    /// The call returns when the entry survives power loss. Concurrent callers share one sync.
    case durable
}

/// When the bytes of a body are checked against its digest on reading.
public enum Verification: Sendable, Hashable {
    /// Only by `Store.check`.
    case never
    /// Bodies written shortly before the machine went down uncleanly, once.
    case afterUncleanShutdown
    /// On every read; costs 0.6 ms a MiB.
    case always
}
