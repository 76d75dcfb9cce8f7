import HTTPCaching
import HTTPTypes
import HTTPWire
import Larder

/// The answer to a fetch: the response for the client, and its source.
public struct FetchResponse: Sendable {
    /// The source of an answer.
    public enum Source: String, Sendable, Hashable {
        /// The origin, now.
        case network
        /// The store; fresh.
        case hit
        /// The store, after the origin confirmed that it is still current.
        case revalidated
        /// The store; stale, which the response or the policy allows.
        case stale
        /// The store, because the origin failed.
        case fallback
    }

    /// Status and fields for the client: end-to-end fields, `Age`, `Via` and `Cache-Status` included.
    public var head: HTTPResponse {
        get { form.response }
        _modify { yield &form.response }
    }
    /// The head in the form that it has: who only writes it need not have objects made of it.
    package var form: HeadForm
    /// The content.
    public var body: ResponseBody
    /// The source of the answer.
    public var source: Source
    /// The status of the stored response that was used; nil for an answer from the network.
    public var storedStatus: Int?
    /// The status with which the origin answered now; nil if it was not asked or gave no answer.
    public var originStatus: Int?
    /// The reason that the origin gave no answer now, if a stored one hides that; nil if it was not asked.
    public var originError: FetchError?
    /// The age in seconds (RFC 9111 section 4.2.3); nil for an answer that was not stored.
    public var ageSeconds: Int64?
    /// Seconds of freshness left, negative when stale; nil if it is not known.
    public var freshSeconds: Int64?
    /// The contents of `Cache-Status` (RFC 9211).
    public var cacheStatus: CacheStatus?
    /// True if the response is being stored.
    public var isStored: Bool
    /// For an answer without content, a 304 or one to HEAD: the gzip member that is stored for what a GET gets, where
    /// one is.
    package var unsentMember: Body?

    /// An answer without a cache.
    package init(head: HTTPResponse, body: ResponseBody, source: Source) {
        self.init(
            .objects(head), body: body, source: source, storedStatus: nil, originStatus: nil, originError: nil,
            ageSeconds: nil, freshSeconds: nil, cacheStatus: nil, isStored: true)
    }

    init(
        _ form: HeadForm, body: ResponseBody, source: Source, storedStatus: Int?, originStatus: Int?,
        originError: FetchError? = nil, ageSeconds: Int64?, freshSeconds: Int64?, cacheStatus: CacheStatus?,
        isStored: Bool
    ) {
        self.form = form
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

    /// True if the cache refused to ask the origin: `only-if-cached` (RFC 9111 section 5.2.1.7).
    package var isRefusal: Bool { source == .network && originStatus == nil && !isStored }
}
