/// Permissions of a fetch to read the cache, to write to it and to ask the origin: the eight policies, which combine.
///
/// Combine one of the ways to use stored responses (``askIfModifiedWhenStale``, ``askIfModified``,
/// ``onlyLoadIfNotCached``, ``doNotLoad``) with any of ``doNotRead``, ``doNotWrite`` and
/// ``fallbackToCacheIfLoadFails``. If several ways are given, the one that loads least counts: ``doNotLoad``, then
/// ``onlyLoadIfNotCached``, then ``askIfModified``.
///
///     // Ask every time; if that fails, take what is there, stale or not.
///     cache.fetch(request, FetchOptions(policy: [.askIfModified, .fallbackToCacheIfLoadFails]))
public struct CachePolicy: OptionSet, Sendable, Hashable, CustomStringConvertible {
    /// The bits.
    public let rawValue: UInt8

    /// Makes a set from its bits.
    ///
    /// - Parameter rawValue: the sum of the options' raw values.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The cache's own default. Not to be combined.
    public static let useDefault: CachePolicy = []
    /// Takes nothing from the cache.
    public static let doNotRead = CachePolicy(rawValue: 1 << 0)
    /// Puts nothing into the cache.
    public static let doNotWrite = CachePolicy(rawValue: 1 << 1)
    /// Uses fresh responses and validates stale ones, as in RFC 9111. The default.
    public static let askIfModifiedWhenStale = CachePolicy(rawValue: 1 << 2)
    /// Validates stored responses every time.
    public static let askIfModified = CachePolicy(rawValue: 1 << 3)
    /// Uses stored responses, fresh or not.
    public static let onlyLoadIfNotCached = CachePolicy(rawValue: 1 << 4)
    /// Uses stored responses, fresh or not; without one the fetch ends with ``FetchError/Code/notCached``.
    public static let doNotLoad = CachePolicy(rawValue: 1 << 5)
    /// Uses a stored response, fresh or not, if the origin fails.
    public static let fallbackToCacheIfLoadFails = CachePolicy(rawValue: 1 << 6)

    /// Every policy with its name on the command line.
    public static let named: [(name: String, policy: CachePolicy)] = [
        ("default", .useDefault), ("do-not-read", .doNotRead), ("do-not-write", .doNotWrite),
        ("ask-if-modified-when-stale", .askIfModifiedWhenStale), ("ask-if-modified", .askIfModified),
        ("only-load-if-not-cached", .onlyLoadIfNotCached), ("do-not-load", .doNotLoad),
        ("fallback-to-cache-if-load-fails", .fallbackToCacheIfLoadFails),
    ]

    /// The names of its members, joined by `+`.
    public var description: String {
        let names = Self.named.filter { !$0.policy.isEmpty && contains($0.policy) }.map(\.name)
        return names.isEmpty ? "default" : names.joined(separator: "+")
    }

    /// What is stored is used whatever its age.
    var ignoresExpiry: Bool { contains(.onlyLoadIfNotCached) || contains(.doNotLoad) }
}
