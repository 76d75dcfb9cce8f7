import Foundation
import LarderHTTP

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A cache as the sessions of one configuration use it: what `URLSessionConfiguration.useCache(_:_:)` returns.
///
/// Need not be kept. Safe to use from any thread.
public final class URLSessionCaching: Sendable {
    /// The cache behind it.
    public let cache: HTTPCache
    let options: URLSessionCachingOptions
    let settings: SessionSettings

    init(_ cache: HTTPCache, _ options: URLSessionCachingOptions, _ settings: SessionSettings) {
        self.cache = cache
        self.options = options
        self.settings = settings
    }

    /// Loads a request through the cache into a new file, in bounded memory: what `URLSession.download(for:)` is for.
    /// With cookies, credentials and redirects as in a session of the configuration.
    ///
    /// - Parameters:
    ///   - request: what to load.
    ///   - file: where the body goes. Must not exist.
    /// - Returns: the response, whatever its status.
    /// - Throws: `URLError`, and `CocoaError` where the file cannot be written. No file is left then.
    @discardableResult
    public func download(for request: URLRequest, to file: URL) async throws -> HTTPURLResponse {
        let load = CachedLoad(self, request)
        let (response, body) = try await load.response(priority: .normal)
        try Data().write(to: file, options: .withoutOverwriting)
        do {
            let handle = try FileHandle(forWritingTo: file)
            defer { try? handle.close() }
            for try await piece in body { try handle.write(contentsOf: piece) }
        } catch {
            try? FileManager.default.removeItem(at: file)
            if let error = error as? FetchError { throw URLError(error, request.url) }
            throw error
        }
        return response
    }

    /// Removes what is stored for the URL of a request, all methods and variants. For requests that change a resource
    /// and cannot go through the cache, such as upload tasks on Linux (RFC 9111 section 4.4).
    ///
    /// - Parameter request: its URL counts.
    /// - Throws: `FetchError.Code.invalidURL`, and `LarderError` when the store cannot be written.
    public func invalidate(_ request: URLRequest) async throws {
        _ = try await cache.purge(request.url?.absoluteString ?? "")
    }
}

/// What a configuration said when it got its cache.
struct SessionSettings: Sendable {
    var additionalFields: [String: String]
    var cookies: HTTPCookieStorage?
    var addsCookies: Bool
    var acceptsCookies: Bool
    var credentials: URLCredentialStorage?
    var requestTimeout: TimeInterval
    var resourceTimeout: TimeInterval
    var cachePolicy: URLRequest.CachePolicy

    init(_ configuration: URLSessionConfiguration) {
        additionalFields = (configuration.httpAdditionalHeaders ?? [:]).reduce(into: [:]) {
            $0["\($1.key)"] = "\($1.value)"
        }
        cookies = configuration.httpCookieStorage
        addsCookies = configuration.httpShouldSetCookies
        acceptsCookies = configuration.httpCookieAcceptPolicy != .never
        credentials = configuration.urlCredentialStorage
        requestTimeout = configuration.timeoutIntervalForRequest
        resourceTimeout = configuration.timeoutIntervalForResource
        cachePolicy = configuration.requestCachePolicy
    }
}
