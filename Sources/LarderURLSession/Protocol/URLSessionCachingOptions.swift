import Foundation
import LarderHTTP

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Options for sessions that use a cache.
public struct URLSessionCachingOptions: Sendable {
    /// The way in which a body reaches the session on Linux. On Apple's systems URLSession takes every body in pieces,
    /// and ignores this option.
    public enum Delivery: Sendable, Hashable {
        /// The body arrives in one piece, so that tasks with a completion handler and the async calls get all of it.
        /// Bodies longer than ``URLSessionCachingOptions/wholeBodyLimit`` fail with
        /// `URLError.dataLengthExceedsMaximum`.
        case whole
        /// The body arrives in pieces, in bounded memory and without a limit. Use it for sessions whose tasks all
        /// report to a delegate: Linux' Foundation gives a completion handler only the last piece that a protocol
        /// loads.
        case pieces
    }

    /// The way in which a body reaches the session on Linux. Default: ``Delivery/whole``.
    public var delivery: Delivery
    /// The longest body that is delivered in one piece, in bytes. Default: 256 MiB.
    public var wholeBodyLimit: Int
    /// Adds `Cache-Status` (RFC 9211) to responses, and the age of a stored response in `Age`. Default: false, the
    /// fields are those that the network sent.
    public var showsCacheFields: Bool
    /// Follows redirects on Linux, where a delegate cannot be asked. False returns them as answers. On Apple's systems
    /// the session follows redirects and asks its delegate. Default: true.
    public var followsRedirects: Bool
    /// Selects the requests that use the cache; the others load without it. Called for each request, from any thread.
    /// Default: all requests with `http` and `https`.
    public var appliesTo: @Sendable (URLRequest) -> Bool
    /// Options for requests in addition to those of `URLRequest`. Its `policy` applies to requests with
    /// `useProtocolCachePolicy`, and its `timeouts` only to waiting in the queue of the cache. Default: the options of
    /// the cache.
    public var fetch: FetchOptions

    /// Makes options. Each parameter sets the property of its name, and has the default that the property states.
    public init(
        delivery: Delivery = .whole, wholeBodyLimit: Int = 256 << 20, showsCacheFields: Bool = false,
        followsRedirects: Bool = true, fetch: FetchOptions = FetchOptions(),
        appliesTo: @escaping @Sendable (URLRequest) -> Bool = { _ in true }
    ) {
        self.delivery = delivery
        self.wholeBodyLimit = wholeBodyLimit
        self.showsCacheFields = showsCacheFields
        self.followsRedirects = followsRedirects
        self.fetch = fetch
        self.appliesTo = appliesTo
    }
}
