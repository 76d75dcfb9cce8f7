/// Whether a cache is dedicated to one user or reused by several (RFC 9111 section 1).
public enum CacheMode: UInt8, Sendable, Hashable {
    /// Dedicated to a single user, like a browser's: `private` responses may be stored, `s-maxage` and
    /// `proxy-revalidate` do not apply.
    case `private` = 0
    /// Reused by more than one user, like a gateway's: the restrictions on private and authenticated responses apply.
    case shared = 1
}
