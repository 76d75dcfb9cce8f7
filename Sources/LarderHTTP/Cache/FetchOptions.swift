import HTTPTypes
import Larder

/// How urgent a fetch is among those that wait for one host.
public enum FetchPriority: UInt8, Sendable, Hashable, Comparable {
    /// Goes after everything else.
    case low
    /// In between.
    case normal
    /// Goes first.
    case high

    /// Less urgent before more urgent.
    public static func < (left: FetchPriority, right: FetchPriority) -> Bool { left.rawValue < right.rawValue }
}

/// How far a body has come.
public struct FetchProgress: Sendable, Hashable {
    /// Bytes that were read.
    public let bytes: Int64
    /// Bytes there are, where that is known.
    public let total: Int64?
}

/// What one fetch wants other than the cache's configuration says. Nil: as configured.
public struct FetchOptions: Sendable {
    /// What may be taken, stored and asked. Default: the cache's.
    public var policy: CachePolicy
    /// The number of a registered policy, which takes the place of ``policy``'s way to use what is stored.
    public var policyID: Int?
    /// Overrides the response's lifetime, in seconds.
    public var secondsToCache: Int64?
    /// False stores whatever the response says.
    public var respectsCacheControl: Bool?
    /// Whether the response is kept across sessions.
    public var storagePolicy: StoragePolicy?
    /// How the key is made.
    public var keyPolicy: KeyPolicy?
    /// True: no connection is attempted; without a usable stored response the fetch ends with
    /// ``FetchError/Code/notCached``.
    public var isOffline: Bool
    /// Tags for the entry, in addition to those that the response brings.
    public var tags: [String]
    /// Time limits.
    public var timeouts: Timeouts?
    /// How urgent it is. Default: normal.
    public var priority: FetchPriority
    /// Told of every piece of the body that is read, on the reader's task.
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
