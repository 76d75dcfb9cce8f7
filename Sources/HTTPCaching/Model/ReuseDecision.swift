import HTTPTypes

/// The decision on a request, given the responses stored for its URI.
public enum ReuseDecision: Sendable, Hashable {
    /// Answer with a stored response. If ``ServedResponse/background`` is set, validate afterwards.
    case serve(ServedResponse)
    /// Send the forwarded request: the client's own, a validation, or one for missing bytes (see
    /// ``ForwardedRequest/purpose-swift.property``).
    case forward(ForwardedRequest)
    /// Answer 504 (Gateway Timeout): the request has `only-if-cached` (RFC 9111 section 5.2.1.7), or the cache is
    /// disconnected and has nothing it may serve.
    case refuse(HTTPResponse)
}

/// A response made from a stored one.
public struct ServedResponse: Sendable, Hashable {
    /// The content to send after the head.
    public enum Content: Sendable, Hashable {
        /// Nothing: an answer to HEAD, 304 or 416.
        case none
        /// The stored body from first to last byte.
        case whole
        /// One range of the representation.
        case range(Range<Int64>)
        /// Several ranges as `multipart/byteranges`.
        case multipart(MultipartRanges)
    }

    /// The position of the stored response in the array that was passed in.
    public var index: Int
    /// Status and fields, including `Age`. The joining layer adds `Cache-Status` (see ``cacheStatus(name:)``), `Via`
    /// and the fields that belong to the connection.
    public var head: HTTPResponse
    /// The content to send after the head.
    public var content: Content
    /// The current age in milliseconds (RFC 9111 section 4.2.3).
    public var ageMilliseconds: Int64
    /// The freshness lifetime in milliseconds.
    public var lifetimeMilliseconds: Int64
    /// Nil for a fresh or just validated response; otherwise the reason that it may be served stale.
    public var stale: CacheRules.StalePermission?
    /// The validation to run in the background after `stale-while-revalidate`; nil otherwise.
    public var background: ForwardedRequest?

    /// Seconds of freshness left, negative when stale (RFC 9211 section 2.6).
    public var ttlSeconds: Int64 {
        let left = lifetimeMilliseconds.subtractingSaturating(ageMilliseconds)
        return left >= 0 ? left / 1_000 : (left + 1) / 1_000 - 1
    }

    /// The member for `Cache-Status` if the response is served without asking the origin.
    ///
    /// - Parameter name: the name of the cache in the member (RFC 9211 section 2).
    /// - Returns: a member with `hit`, and the freshness left.
    public func cacheStatus(name: String) -> CacheStatus {
        CacheStatus(cacheName: name, outcome: .hit, ttlSeconds: ttlSeconds)
    }
}
