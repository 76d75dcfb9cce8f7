import HTTPTypes

/// A response as a cache keeps it: everything that the rules need to decide on its use.
public struct StoredResponse: Sendable, Hashable {
    /// Status and fields, all values in order, without the fields that are not stored (RFC 9111 section 3.1). A
    /// stored part of a representation has the status 200.
    public var head: HTTPResponse
    /// The method of the request that it answers for: GET, or one of ``CachingOptions/extraMethods``.
    public var method: HTTPRequest.Method
    /// The secondary key.
    public var selecting: SelectingFields
    /// When the request was sent that fetched or last freshened it.
    public var requestTime: Instant
    /// When the response was received: this one, or the one that last freshened it.
    public var responseTime: Instant
    /// The stored bytes.
    public var body: BodyExtent
    /// The policy parsed from the fields.
    public var policy: StoredPolicy
    /// True if it was invalidated (RFC 9111 section 4.4): it has to be validated before it is used again.
    public var isInvalidated: Bool

    /// Makes a stored response from its parts, for instance when it is read back from a store.
    /// - Parameters:
    ///   - head: status and fields, without those that are not stored.
    ///   - method: the method of the request that it answers for. Default: GET.
    ///   - selecting: the secondary key. Default: none.
    ///   - requestTime: when the request was sent that fetched or last freshened it.
    ///   - responseTime: when the response was received: this one, or the one that last freshened it.
    ///   - body: the stored bytes.
    ///   - policy: the policy parsed from the fields.
    ///   - isInvalidated: true if it has to be validated before it is used again. Default: false.
    public init(
        head: HTTPResponse, method: HTTPRequest.Method = .get, selecting: SelectingFields = .none, requestTime: Instant,
        responseTime: Instant,
        body: BodyExtent, policy: StoredPolicy, isInvalidated: Bool = false
    ) {
        self.head = head
        self.method = method
        self.selecting = selecting
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.body = body
        self.policy = policy
        self.isInvalidated = isInvalidated
    }

    /// The entity tag; nil if there is none, more than one, or a broken one.
    public var entityTag: EntityTag? { head.headerFields.single(.eTag).flatMap { EntityTag($0) } }

    /// The validator that `If-Range` may name (RFC 9110 section 13.1.5): the strong one. Nil: there is none.
    package var strongValidator: [UInt8]? {
        guard policy.hasStrongValidator else { return nil }
        return entityTag?.bytes ?? head.headerFields.single(.lastModified)
    }

    /// The groups it belongs to (RFC 9875 section 2); groups are the same only within one origin.
    public var groups: [String] { head.headerFields.combined(.cacheGroups).flatMap { StringList.parse($0) } ?? [] }
}
