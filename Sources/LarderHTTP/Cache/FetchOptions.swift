import HTTPTypes
import Larder

/// The urgency of a fetch among those that wait for one host.
public enum FetchPriority: UInt8, Sendable, Hashable, Comparable {
    /// After all others.
    case low
    /// Between the others.
    case normal
    /// Before all others.
    case high

    /// Orders from less urgent to more urgent.
    public static func < (left: FetchPriority, right: FetchPriority) -> Bool { left.rawValue < right.rawValue }
}

/// The progress of a body.
public struct FetchProgress: Sendable, Hashable {
    /// Bytes read so far.
    public let bytes: Int64
    /// Bytes in all, if the number is known.
    public let total: Int64?
}

/// Settings of one fetch that differ from the cache's configuration. Nil: as configured.
public struct FetchOptions: Sendable {
    /// The policy for reading the store, writing to it and asking the origin. Default: the cache's.
    public var policy: CachePolicy
    /// The number of a registered policy, which replaces the way in which ``policy`` uses stored responses.
    public var policyID: Int?
    /// Overrides the response's lifetime, in seconds.
    public var secondsToCache: Int64?
    /// False stores the response even if it forbids that.
    public var respectsCacheControl: Bool?
    /// The storage policy: it decides if the response is kept across sessions.
    public var storagePolicy: StoragePolicy?
    /// The policy that makes the key.
    public var keyPolicy: KeyPolicy?
    /// True: no connection is attempted; without a usable stored response the fetch ends with
    /// ``FetchError/Code/notCached``.
    public var isOffline: Bool
    /// Tags for the entry, in addition to those of the response.
    public var tags: [String]
    /// Time limits.
    public var timeouts: Timeouts?
    /// Its urgency. Default: normal.
    public var priority: FetchPriority
    /// Called for every piece of the body that is read, on the reader's task.
    public var onProgress: (@Sendable (FetchProgress) -> Void)?

    /// Makes options. Each parameter sets the property of its name, and has the default that the property states.
    public init(
        policy: CachePolicy = .useDefault, policyID: Int? = nil, secondsToCache: Int64? = nil,
        respectsCacheControl: Bool? = nil, storagePolicy: StoragePolicy? = nil, keyPolicy: KeyPolicy? = nil,
        isOffline: Bool = false, tags: [String] = [], timeouts: Timeouts? = nil, priority: FetchPriority = .normal,
        onProgress: (@Sendable (FetchProgress) -> Void)? = nil
    ) {
        self.policy = policy
        self.policyID = policyID
        self.secondsToCache = secondsToCache
        self.respectsCacheControl = respectsCacheControl
        self.storagePolicy = storagePolicy
        self.keyPolicy = keyPolicy
        self.isOffline = isOffline
        self.tags = tags
        self.timeouts = timeouts
        self.priority = priority
        self.onProgress = onProgress
    }
}
