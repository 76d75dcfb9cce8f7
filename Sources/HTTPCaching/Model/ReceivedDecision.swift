import HTTPTypes

/// What a response from the next hop changes, and what the client gets.
public struct ReceivedDecision: Sendable, Hashable {
    /// A stored response with new fields.
    public struct Update: Sendable, Hashable {
        /// Its position.
        public var index: Int
        /// What to store in its place; the body stays.
        public var response: StoredResponse
    }

    /// A whole representation put together from stored parts and the part that is arriving (RFC 9111 section 3.4).
    public struct Combination: Sendable, Hashable {
        /// The position of the stored response.
        public var index: Int
        /// The head to send; its status is 200.
        public var head: HTTPResponse
        /// The positions that are stored.
        public var stored: ByteRanges
        /// The positions that are arriving: the first that were missing.
        public var received: Range<Int64>
        /// The positions that are still missing, ascending. Each is to be fetched with the `Range` and the `If-Range`
        /// of the request that was sent, and has to be a part of the same representation.
        public var missing: [Range<Int64>]
    }

    /// What the client gets.
    public enum Answer: Sendable, Hashable {
        /// The response as it was received.
        case asReceived
        /// A stored response; ``ServedResponse/index`` is its position, and where ``updates`` names it, that version
        /// is meant.
        case serve(ServedResponse)
        /// Both parts in the order of their positions.
        case combined(Combination)
        /// Nothing yet: the answer is of no use, ask again with this forwarded request. At most once per request: it
        /// has neither preconditions nor a range of the cache's own.
        case fetch(ForwardedRequest)
        /// None: the next hop answered a question that was not asked. To the client that is a 502 (Bad Gateway).
        case unusable
    }

    /// Stored responses to update.
    public var updates: [Update] = []
    /// The positions of stored responses to remove.
    public var removals: [Int] = []
    /// What to invalidate.
    public var invalidation: Invalidation?
    /// The response to store when its body has arrived.
    public var store: NewResponse?
    /// Why nothing is stored; nil when something is stored or there was nothing to store.
    public var obstacle: StoringObstacle?
    /// What the client gets.
    public var answer = Answer.asReceived

    /// A decision that changes nothing and passes the response on.
    public init() {}
}

/// What an unsafe request changes (RFC 9111 section 4.4, RFC 9875).
public struct Invalidation: Sendable, Hashable {
    /// The keys whose stored responses are to be removed or marked invalid, all variants. The target's comes first.
    public var keys: [CacheKey]
    /// The groups, within ``origin``, whose stored responses are to be removed or marked invalid.
    public var groups: [String]
    /// The origin of the target URI, such as `https://example.org`.
    public var origin: String
}
