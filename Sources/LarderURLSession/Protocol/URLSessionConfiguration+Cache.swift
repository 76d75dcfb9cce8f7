import Foundation
import LarderHTTP

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension URLSessionConfiguration {
    /// Makes the sessions of this configuration load through a cache.
    ///
    ///     let configuration = URLSessionConfiguration.default
    ///     let cache = HTTPCache(store: store, transport: URLSessionTransport(configuration))
    ///     configuration.useCache(cache)
    ///     let session = URLSession(configuration: configuration)
    ///
    /// Call it last, because it uses the headers, cookies, credentials, time limits and cache policy that the
    /// configuration has at this moment. It sets `urlCache` to nil, so that nothing is stored twice, and replaces a
    /// cache set earlier. The cache stays in memory as long as the process runs, or until ``removeCache()``.
    ///
    /// - Parameters:
    ///   - cache: any cache, with any transport. A cache for one user, which is the default of
    ///     `HTTPCacheConfiguration`.
    ///   - options: how it is used.
    /// - Returns: what loads through the same cache without a session, such as downloads on Linux.
    @discardableResult
    public func useCache(
        _ cache: HTTPCache, _ options: URLSessionCachingOptions = URLSessionCachingOptions()
    ) -> URLSessionCaching {
        load(through: cache, options)
    }

    /// Makes the sessions of this configuration load through `HTTPCache.shared`: the one that is set when a
    /// request begins, also after it was replaced. Without one they load as before.
    ///
    /// As ``useCache(_:_:)`` otherwise.
    ///
    /// - Parameter options: how it is used.
    /// - Returns: what loads through the same cache without a session.
    @discardableResult
    public func useSharedCache(
        _ options: URLSessionCachingOptions = URLSessionCachingOptions()
    ) -> URLSessionCaching {
        load(through: nil, options)
    }

    /// - Parameter cache: nil for the shared one of the moment.
    private func load(through cache: HTTPCache?, _ options: URLSessionCachingOptions) -> URLSessionCaching {
        removeCache()
        urlCache = nil
        let caching = URLSessionCaching(cache, options, SessionSettings(self))
        protocolClasses = [CachingClasses.make(caching)] + (protocolClasses ?? [])
        return caching
    }

    #if !canImport(FoundationNetworking)
        /// Makes `HTTPCache.shared` the cache of `URLSession.shared`: `URLProtocol.registerClass(_:)`. Not on Linux,
        /// whose Foundation asks the protocols of a configuration only: ``useSharedCache(_:)``.
        ///
        /// Call it once, before the first request. Cookies, credentials and time limits are those of
        /// `URLSessionConfiguration.default`.
        ///
        /// - Parameter options: how it is used.
        /// - Returns: what loads through the same cache without a session.
        @discardableResult
        public static func useSharedCacheByDefault(
            _ options: URLSessionCachingOptions = URLSessionCachingOptions()
        ) -> URLSessionCaching {
            let caching = URLSessionCaching(nil, options, SessionSettings(.default))
            URLProtocol.registerClass(CachingClasses.make(caching))
            return caching
        }
    #endif

    /// Undoes ``useCache(_:_:)``. Sessions made from this configuration load without the cache from now on.
    public func removeCache() {
        protocolClasses = protocolClasses?.filter { candidate in
            guard let type = candidate as? CachingURLProtocol.Type else { return true }
            CachingClasses.remove(type)
            return false
        }
    }
}

extension URLRequest {
    #if canImport(FoundationNetworking)
        // Linux' Foundation loses the properties of `URLProtocol.setProperty(_:forKey:in:)`, and reads
        // `mainDocumentURL` nowhere.
        private static let bypassScheme = "larder-bypass:"
    #else
        private static let bypassKey = "larder.bypassesCache"
    #endif

    /// The same request, for a task that must load without the cache: on Linux every download task, and an upload task
    /// with a method other than POST, PUT and PATCH. The `mainDocumentURL` of the result means nothing on Linux.
    public var bypassingCache: URLRequest {
        #if canImport(FoundationNetworking)
            var copy = self
            copy.mainDocumentURL = URL(string: Self.bypassScheme)
            return copy
        #else
            guard let copy = (self as NSURLRequest).mutableCopy() as? NSMutableURLRequest else { return self }
            URLProtocol.setProperty(true, forKey: Self.bypassKey, in: copy)
            return copy as URLRequest
        #endif
    }

    var bypassesCache: Bool {
        #if canImport(FoundationNetworking)
            return mainDocumentURL?.absoluteString == Self.bypassScheme
        #else
            return URLProtocol.property(forKey: Self.bypassKey, in: self) != nil
        #endif
    }
}
