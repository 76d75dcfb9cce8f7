import Foundation
import LarderHTTP

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// How sessions use a cache.
public struct URLSessionCachingOptions: Sendable {
    /// How a body reaches the session on Linux. URLSession of Apple's systems takes every body in pieces, and ignores
    /// this.
    public enum Delivery: Sendable, Hashable {
        /// In one piece, so that tasks with a completion handler and the async calls get all of it. Bodies longer than
        /// ``URLSessionCachingOptions/wholeBodyLimit`` fail with `URLError.dataLengthExceedsMaximum`.
        case whole
        /// In pieces, in bounded memory and without a limit. For sessions whose tasks all report to a delegate: Linux'
        /// Foundation hands a completion handler only the last piece that a protocol loads.
        case pieces
    }

    /// How a body reaches the session on Linux. Default: ``Delivery/whole``.
    public var delivery: Delivery
    /// The longest body that is delivered in one piece, in bytes. Default: 256 MiB.
    public var wholeBodyLimit: Int
    /// Whether responses show what the cache has to say: `Cache-Status` (RFC 9211), and the age of a stored response in
    /// `Age`. Default: false, the fields are those that the network sent.
    public var showsCacheFields: Bool
    /// Whether redirects are followed on Linux, where a delegate cannot be asked. False makes them answers. On Apple's
    /// systems the session follows them, and asks its delegate. Default: true.
    public var followsRedirects: Bool
    /// Which requests load through the cache; the others load as without it. Called for each, from any thread. Default:
    /// all with `http` and `https`.
    public var appliesTo: @Sendable (URLRequest) -> Bool
    /// What requests want of the cache in addition to what `URLRequest` says. Its `policy` counts for requests with
    /// `useProtocolCachePolicy`; its `timeouts` only for waiting in the queue of the cache. Default: all as the cache
    /// says.
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
