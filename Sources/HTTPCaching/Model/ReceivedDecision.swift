import HTTPTypes

/// The effect of a response from the next hop: changes of the store, and the answer to the client.
public struct ReceivedDecision: Sendable, Hashable {
    /// A stored response with new fields.
    public struct Update: Sendable, Hashable {
        /// Its position.
        public var index: Int
        /// The response to store in its place; the body stays.
        public var response: StoredResponse
    }

    /// A whole representation put together from stored parts and the part that is arriving (RFC 9111 section 3.4).
    public struct Combination: Sendable, Hashable {
        /// The position of the stored response.
        public var index: Int
        /// The head to send; its status is 200.
        public var head: HTTPResponse
        /// The stored positions.
        public var stored: ByteRanges
        /// The arriving positions: the first of the missing ones.
        public var received: Range<Int64>
        /// The positions that are still missing, ascending. Fetch each with the `Range` and the `If-Range` of the
        /// request that was sent; it has to be a part of the same representation.
        public var missing: [Range<Int64>]
    }

    /// The answer to the client.
    public enum Answer: Sendable, Hashable {
        /// The response as received.
        case asReceived
        /// A stored response. ``ServedResponse/index`` is its position; if ``updates`` contains it, the updated version
        /// is sent.
        case serve(ServedResponse)
        /// Both parts in the order of their positions.
        case combined(Combination)
        /// Nothing yet: the answer cannot be used. Ask again with this forwarded request, at most once per request: it
        /// has neither preconditions nor a range of the cache's own.
        case fetch(ForwardedRequest)
        /// None: the next hop answered a question that was not asked. The client gets a 502 (Bad Gateway).
        case unusable
    }

    /// Stored responses to update.
    public var updates: [Update] = []
    /// The positions of stored responses to remove.
    public var removals: [Int] = []
    /// The keys and groups to invalidate.
    public var invalidation: Invalidation?
    /// The response to store when its body has arrived.
    public var store: NewResponse?
    /// The reason that nothing is stored; nil if something is stored or there was nothing to store.
    public var obstacle: StoringObstacle?
    /// The answer to the client.
    public var answer = Answer.asReceived

    /// A decision that changes nothing and passes the response on.
    public init() {}
}

/// The stored responses that an unsafe request invalidates (RFC 9111 section 4.4, RFC 9875).
public struct Invalidation: Sendable, Hashable {
    /// The keys whose stored responses are to be removed or marked invalid, all variants. The key of the target comes
    /// first.
    public var keys: [CacheKey]
    /// The groups, within ``origin``, whose stored responses are to be removed or marked invalid.
    public var groups: [String]
    /// The origin of the target URI, such as `https://example.org`.
    public var origin: String
}
