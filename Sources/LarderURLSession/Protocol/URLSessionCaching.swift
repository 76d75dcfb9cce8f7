import Foundation
import Larder
import LarderHTTP
import Locks

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The cache of the sessions of one configuration. `URLSessionConfiguration.useCache(_:_:)` and `useSharedCache(_:)`
/// return it.
///
/// You need not keep a reference to it. Safe to use from any thread.
public final class URLSessionCaching: Sendable {
    private struct State {
        /// Nil: the shared one.
        var cache: HTTPCache?
        var isSuspended = false
        /// The loads under way, weakly: a load is kept by its task.
        var loads: [ObjectIdentifier: WeakLoad] = [:]
    }

    private struct WeakLoad {
        weak var load: CachedLoad?
    }

    private let state: Mutex<State>
    let options: URLSessionCachingOptions
    let settings: SessionSettings

    /// - Parameter cache: nil for the shared one of the moment.
    init(_ cache: HTTPCache?, _ options: URLSessionCachingOptions, _ settings: SessionSettings) {
        state = Mutex(State(cache: cache))
        self.options = options
        self.settings = settings
    }

    /// The cache in use; nil if that is the shared one and the program has not set one.
    public var cache: HTTPCache? { state.withLock { $0.cache } ?? .shared }

    /// True if requests that begin now load through a cache.
    var isActive: Bool { !isSuspended && cache != nil }

    /// True from ``suspend()`` to ``resume(_:)``.
    public var isSuspended: Bool { state.withLock { $0.isSuspended } }

    /// Counts a load as one under way. Throws while no cache may be used.
    func begin(_ load: CachedLoad, _ url: URL?) throws {
        try state.withLock { state in
            if state.isSuspended { throw URLError(.networkConnectionLost, url, "the cache is suspended") }
            state.loads[ObjectIdentifier(load)] = WeakLoad(load: load)
        }
    }

    func end(_ load: CachedLoad) { state.withLock { $0.loads[ObjectIdentifier(load)] = nil } }

    /// Ends the loads in progress and closes the store, so that the process holds no lock on a file. An app on Apple's
    /// systems calls this before the system suspends it. Until ``resume(_:)``, new requests load without a cache.
    ///
    /// Tasks in progress fail with `URLError.networkConnectionLost`. On iOS, tvOS, watchOS and visionOS this method
    /// asks the system for the time it needs (`ProcessInfo.performExpiringActivity`).
    ///
    /// - Throws: what the store cannot report in another way when it is closed: `LarderError`.
    public func suspend() async throws {
        let loads = state.withLock { state in
            state.isSuspended = true
            defer { state.loads = [:] }
            return state.loads.values.compactMap(\.load)
        }
        #if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
            let isDone = DispatchSemaphore(value: 0)
            ProcessInfo.processInfo.performExpiringActivity(withReason: "closing a cache") { isExpired in
                // The process is not suspended while this waits.
                if !isExpired { isDone.wait() }
            }
            defer { isDone.signal() }
        #endif
        for load in loads { await load.end(.networkConnectionLost, "the cache was suspended") }
        guard let cache else { return }
        cache.cancelAll()
        await cache.drain()
        try await cache.store.close()
    }

    /// Loads through a cache again.
    ///
    /// - Parameter cache: a cache over a store that was opened after ``suspend()``. With `useSharedCache(_:)` it
    ///   becomes the shared one.
    public func resume(_ cache: HTTPCache) {
        let isShared = state.withLock { state in
            state.isSuspended = false
            if state.cache != nil { state.cache = cache }
            return state.cache == nil
        }
        if isShared { HTTPCache.shared = cache }
    }

    /// Loads a request through the cache into a new file, in bounded memory, as a replacement for
    /// `URLSession.download(for:)`. Cookies, credentials and redirects work as in a session of the configuration.
    ///
    /// - Parameters:
    ///   - request: what to load.
    ///   - file: the path for the body. The file must not exist.
    /// - Returns: the response, whatever its status.
    /// - Throws: `URLError`, and `CocoaError` where the file cannot be written. No file is left then.
    @discardableResult
    public func download(for request: URLRequest, to file: URL) async throws -> HTTPURLResponse {
        let load = CachedLoad(self, request)
        try begin(load, request.url)
        defer { end(load) }
        let response: HTTPURLResponse
        let body: ResponseBody
        do {
            (response, body) = try await load.response(priority: .normal)
        } catch {
            if isSuspended { throw URLError(.networkConnectionLost, request.url, "the cache was suspended") }
            if let error = error as? FetchError { throw URLError(error, request.url) }
            throw error
        }
        try Data().write(to: file, options: .withoutOverwriting)
        do {
            let handle = try FileHandle(forWritingTo: file)
            defer { try? handle.close() }
            for try await piece in body { try handle.write(contentsOf: piece) }
        } catch {
            try? FileManager.default.removeItem(at: file)
            if isSuspended { throw URLError(.networkConnectionLost, request.url, "the cache was suspended") }
            if let error = error as? FetchError { throw URLError(error, request.url) }
            throw error
        }
        return response
    }

    /// Removes everything stored for the URL of a request, with all methods and variants. Use it for requests that
    /// change a resource and cannot pass through the cache, such as upload tasks on Linux (RFC 9111 section 4.4).
    ///
    /// - Parameter request: its URL counts.
    /// - Throws: `FetchError.Code.invalidURL`, and `LarderError` when the store cannot be written.
    public func invalidate(_ request: URLRequest) async throws {
        _ = try await cache?.purge(request.url?.absoluteString ?? "")
    }
}

/// The settings of a configuration when it got its cache.
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
