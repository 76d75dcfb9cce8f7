/// The primary cache key (RFC 9111 section 2): the target URI, and the method if it is not GET or HEAD.
///
/// Normalisation covers only forms that RFC 9110 section 4.2.3 calls equivalent *and* that no server can distinguish:
/// case of scheme and host, the default port, an empty path. Paths and queries stay byte by byte as sent: the origin
/// interprets dots, slashes and percent-encoding, and a key that merged URIs which the origin distinguishes would let
/// one poison another.
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

    /// The key as text, unambiguous: the URI, preceded by the method and a space if there is a method.
    public var description: String { method.map { "\($0) \(uri)" } ?? uri }

    /// The same URI for another method.
    func with(method: String?) -> CacheKey { CacheKey(origin: origin, target: target, method: method) }
}
