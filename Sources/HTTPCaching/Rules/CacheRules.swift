import HTTPTypes

/// The rules of HTTP caching as functions of their arguments: RFC 9111, the parts of RFC 9110 that concern a cache,
/// RFC 5861, 8246, 9211, 9213 and 9875.
///
/// Nothing here reads a clock, does I/O or keeps state: the same arguments give the same answer, on any thread. No
/// input traps.
///
/// The life of a request in a cache that uses it:
/// 1. ``cacheKey(for:)``: nil means forward and store nothing.
/// 2. Load the responses stored under the key, and call ``reuse(_:hasContent:stored:now:isDisconnected:)``.
/// 3. A served response is sent. Otherwise the decision has the request to forward.
/// 4. Every response that comes back goes to ``received(_:for:stored:requestTime:responseTime:lifetimeSeconds:)``, a
/// failure to get one to ``failed(_:stored:now:)``. The result has the responses to update, remove, invalidate, store
/// and send.
/// 5. When the body of something to store has arrived, ``NewResponse/finished(receivedBytes:isComplete:)`` makes the
///    stored response.
public struct CacheRules: Sendable {
    /// The options of the cache.
    public let options: CachingOptions
    let fingerprint: UInt32
    /// The fields with directives for this cache.
    package let directiveFields: FieldNameSet

    /// Makes rules for a cache.
    ///
    /// - Parameter options: the options of the cache. Default: those of a shared cache.
    public init(_ options: CachingOptions = CachingOptions()) {
        self.options = options
        fingerprint = options.fingerprint
        directiveFields = FieldNameSet(["cache-control"] + options.targetedFields.map(\.canonicalName))
    }

    /// The most header fields of a message that the rules process, 10,000. A request with more is passed on, a response
    /// with more is not stored: `HTTPFields` ends the process at 65,535, and adding the cache's own fields must not
    /// reach that.
    public static let maximumFields = 10_000

    var isShared: Bool { options.mode == .shared }

    /// True if a method is safe (RFC 9110 section 9.2.1).
    ///
    /// - Parameter method: compared with regard to case.
    /// - Returns: false for a method that neither the specifications nor the options name.
    public func isSafe(_ method: HTTPRequest.Method) -> Bool {
        switch method.rawValue {
        case "GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "QUERY", "REPORT", "SEARCH": true
        default: options.extraSafeMethods.contains(method.rawValue) || options.extraMethods.contains(method.rawValue)
        }
    }

    /// True if the caching requirements of a status code are implemented here (RFC 9111 section 3): 200, 203, 204, 206,
    /// 300, 301, 302, 303, 307, 308, 404, 405, 410, 414, 501 and the extra ones.
    ///
    /// - Parameter status: a status code.
    /// - Returns: true if the status alone allows storing a response.
    public func understands(status: Int) -> Bool {
        switch status {
        case 200, 203, 204, 206, 300, 301, 302, 303, 307, 308, 404, 405, 410, 414, 501: true
        default: options.extraStatusCodes.contains(status)
        }
    }

    /// Whether a status code is heuristically cacheable (RFC 9110 section 15.1).
    static func isHeuristicallyCacheable(status: Int) -> Bool {
        switch status {
        case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }
}
