/// The reason that a response is not stored.
public enum StoringObstacle: String, Sendable, Hashable, CaseIterable {
    /// RFC 9111 section 3: the request method is not understood.
    case methodNotUnderstood
    /// RFC 9111 section 3: an interim response (1xx).
    case statusNotFinal
    /// RFC 9111 section 3: 304 without a stored response, or `must-understand` with a status code that is not
    /// understood.
    case statusNotUnderstood
    /// RFC 9111 section 5.2.2.5: `no-store` in the response.
    case noStore
    /// RFC 9111 section 5.2.2.7: `private` in a shared cache.
    case privateResponse
    /// RFC 9111 section 3.5: the request had `Authorization`, and the response does not allow a shared cache to keep
    /// it.
    case authorization
    /// RFC 9111 section 3: neither explicit freshness nor a status code or directive that allows storing.
    case notCacheable
    /// RFC 9111 section 5.2.1.5: `no-store` in the request.
    case requestNoStore
    /// RFC 9111 section 4.1: `Vary` has `*`, or is broken, so that the response never matches.
    case varyMatchesNothing
    /// RFC 9111 section 4.1: an update has a `Vary` that names more fields than those that selected the stored
    /// response.
    case varyChanged
    /// The request had content, which is not part of the key.
    case requestHasContent
    /// RFC 9110 section 9.3.3: a POST response without explicit freshness or without a `Content-Location` equal to
    /// the target URI.
    case postNotReusable
    /// The status code answers the request's fields, content or connection rather than its target.
    case dependsOnRequest
    /// RFC 9111 section 3.3: a part that cannot be kept: not in bytes, multipart, or with a broken `Content-Range`;
    /// or partial responses are not kept at all.
    case partNotUnderstood
    /// RFC 9110 section 15.3.7: a part that answers the client's own `If-Range` may lack the metadata of the
    /// representation, which that client already has.
    case partWithoutMetadata
    /// It sets a cookie (``CachingOptions/SetCookiePolicy``).
    case setsCookie
    /// It is stale from the start and cannot be validated.
    case neverReusable
    /// More than ``CacheRules/maximumFields`` header fields.
    case tooManyFields
    /// The request has no cache key.
    case noKey
    /// A response to HEAD has no body to store; it only updates stored responses (RFC 9111 section 4.3.5).
    case headResponse
}
