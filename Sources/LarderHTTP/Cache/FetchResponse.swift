import HTTPCaching
import HTTPTypes

/// The answer to a fetch: what a client is to see, and where it came from.
public struct FetchResponse: Sendable {
    /// Where an answer came from.
    public enum Source: String, Sendable, Hashable {
        /// The origin, now.
        case network
        /// The store; fresh.
        case hit
        /// The store, after the origin said that it is still right.
        case revalidated
        /// The store; stale, which the response or the policy allows.
        case stale
        /// The store, because the origin failed.
        case fallback
    }

    /// Status and fields for the client: end-to-end fields, `Age`, `Via` and `Cache-Status` included.
    public var head: HTTPResponse
    /// The content.
    public var body: ResponseBody
    /// Where it came from.
    public var source: Source
    /// The status of the stored response that was used; nil for an answer from the network.
    public var storedStatus: Int?
    /// The status with which the origin answered now; nil when it was not asked or gave no answer.
    public var originStatus: Int?
    /// Why the origin gave no answer now, where a stored one hides that; nil when it was not asked.
    public var originError: FetchError?
    /// The age in seconds (RFC 9111 section 4.2.3); nil for an answer that was not stored.
    public var ageSeconds: Int64?
    /// Seconds of freshness left, negative when stale; nil where nothing says.
    public var freshSeconds: Int64?
    /// What was put into `Cache-Status` (RFC 9211).
    public var cacheStatus: CacheStatus?
    /// Whether the response is being stored.
    public var isStored: Bool

    /// An answer that no cache made.
    package init(head: HTTPResponse, body: ResponseBody, source: Source) {
        self.init(
            head: head, body: body, source: source, storedStatus: nil, originStatus: nil, originError: nil,
            ageSeconds: nil, freshSeconds: nil, cacheStatus: nil, isStored: true)
    }

    init(
        head: HTTPResponse, body: ResponseBody, source: Source, storedStatus: Int?, originStatus: Int?,
        originError: FetchError? = nil, ageSeconds: Int64?, freshSeconds: Int64?, cacheStatus: CacheStatus?,
        isStored: Bool
    ) {
        self.head = head
        self.body = body
        self.source = source
        self.storedStatus = storedStatus
        self.originStatus = originStatus
        self.originError = originError
        self.ageSeconds = ageSeconds
        self.freshSeconds = freshSeconds
        self.cacheStatus = cacheStatus
        self.isStored = isStored
    }

    /// Whether the cache refused to ask the origin: `only-if-cached` (RFC 9111 section 5.2.1.7).
    package var isRefusal: Bool { source == .network && originStatus == nil && !isStored }
}
