/// What an unsafe request changes (RFC 9111 section 4.4, RFC 9875).
public struct Invalidation: Sendable, Hashable {
    /// The keys whose stored responses are to be removed or marked invalid, all variants. The target's comes first.
    public var keys: [CacheKey]
    /// The groups, within ``origin``, whose stored responses are to be removed or marked invalid.
    public var groups: [String]
    /// The origin of the target URI, such as `https://example.org`.
    public var origin: String
}
