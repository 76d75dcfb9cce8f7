/// The primary cache key (RFC 9111 section 2): the target URI, and the method where it is not GET or HEAD.
///
/// Only what RFC 9110 section 4.2.3 calls equivalent *and* no server can tell apart is normalised: case of scheme and
/// host, the default port, an empty path. Paths and queries stay byte by byte as sent: dots, slashes and
/// percent-encoding are the origin's to interpret, and a key that merged what the origin keeps apart would let one
/// URI poison another.
public struct CacheKey: Sendable, Hashable, CustomStringConvertible {
    /// Scheme, host and port, such as `https://example.org` (RFC 9110 section 4.3.1); the default port is left out.
    public let origin: String
    /// Path and query as sent; starts with `/`.
    public let target: String
    /// The method of a response that only the same method may reuse; nil for GET.
    public let method: String?

    init(origin: String, target: String, method: String? = nil) {
        self.origin = origin
        self.target = target
        self.method = method
    }

    /// The target URI.
    public var uri: String { origin + target }

    /// The key as text, one for one: the URI, after the method and a space where there is a method.
    public var description: String { method.map { "\($0) \(uri)" } ?? uri }

    /// The same URI for another method.
    func with(method: String?) -> CacheKey { CacheKey(origin: origin, target: target, method: method) }
}
