import Foundation
import Larder
import LarderHTTP
import Locks

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A `URLCache` that keeps its responses in a store, for code that is handed a `URLCache`.
///
///     let cache = StoreURLCache(store)
///     cache.storeCachedResponse(CachedURLResponse(response: response, data: data), for: request)
///     let stored = cache.cachedResponse(for: request)
///
/// One response for each URL and method is kept, as `URLCache` does it; whether it may still be used is the business of
/// the caller. An `HTTPCache` knows that itself: prefer `URLSessionConfiguration.useCache(_:_:)`. On Apple's
/// systems a session with this as its `urlCache` reads and writes it; on Linux a session reads it and never writes.
///
/// A response of the policy `allowedInMemoryOnly` stays in memory, within `Configuration.memoryLimit` of the store.
/// Entries of others in the store, those of an `HTTPCache` included, are left alone, and count into
/// ``currentDiskUsage``. Waits for the disk on the calling thread. Safe to use from any thread.
public final class StoreURLCache: URLCache, @unchecked Sendable {
    // SAFETY: every property is a constant of a type that is Sendable. What `URLCache` itself has is not used: each of
    // its methods and properties is overridden.

    /// The store behind it.
    public let store: Store
    private let onError: (@Sendable (any Error) -> Void)?
    private let isOff = Atomic<Bool>(false)

    /// Where the keys of its entries begin.
    private static let prefix = "urlcache "

    /// Makes a cache over a store.
    ///
    /// - Parameters:
    ///   - store: an open store, which stays the caller's to close.
    ///   - onError: called with what could not be read or stored, as the methods of `URLCache` cannot throw:
    ///     `LarderError`, or `URLError` for what is not a whole response of HTTP. Called on the thread of the call.
    ///     Default: nil.
    public init(_ store: Store, onError: (@Sendable (any Error) -> Void)? = nil) {
        self.store = store
        self.onError = onError
        #if canImport(FoundationNetworking)
            // A path where no directory can be made: otherwise one is made among the caches of the user.
            super.init(memoryCapacity: 0, diskCapacity: 0, diskPath: "/dev/null/none")
        #else
            super.init(memoryCapacity: 0, diskCapacity: 0, diskPath: nil)
        #endif
    }

    /// Runs a call of the store; passes what it throws to `onError`.
    private func attempt<R>(_ body: () throws -> R?) -> R? {
        do {
            return try body()
        } catch {
            onError?(error)
            return nil
        }
    }

    /// The key of a request; nil for one that is not HTTP, whose response is never here.
    private static func key(_ request: URLRequest) throws -> Key? {
        guard let url = request.url else {
            throw URLError(.badURL, nil, "a request without a URL has no cached response")
        }
        guard let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https",
            var parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
        else { return nil }
        // RFC 9110 section 4.2.3.
        parts.scheme = scheme
        parts.host = parts.host?.lowercased()
        parts.fragment = nil
        if parts.port == (scheme == "http" ? 80 : 443) { parts.port = nil }
        if parts.path.isEmpty { parts.path = "/" }
        return Key("\(prefix)\(request.httpMethod ?? "GET") \(parts.string ?? url.absoluteString)")
    }

    /// The key under which a response may be stored, and the response.
    private static func checked(
        _ request: URLRequest, _ cached: CachedURLResponse
    ) throws -> (Key, HTTPURLResponse) {
        guard let key = try key(request) else {
            throw URLError(.unsupportedURL, request.url, "only responses of HTTP are stored")
        }
        guard cached.response.url != nil else {
            throw URLError(.badURL, request.url, "a response without a URL is not stored")
        }
        guard let response = cached.response as? HTTPURLResponse else {
            throw URLError(.badServerResponse, request.url, "a response without a status is not stored")
        }
        if response.statusCode == 206 || response.statusCode == 304 {
            throw URLError(
                .badServerResponse, request.url, "a response with status \(response.statusCode) is not complete")
        }
        // What URLSession has decoded keeps the length of the coded content.
        if request.httpMethod != "HEAD", response.statusCode != 204,
            response.value(forHTTPHeaderField: "Content-Encoding") == nil,
            let text = response.value(forHTTPHeaderField: "Content-Length"), let length = Int64(text),
            cached.data.count < length
        {
            throw URLError(
                .badServerResponse, request.url, "the response has \(cached.data.count) of \(length) bytes")
        }
        return (key, response)
    }

    // MARK: Responses

    /// The response that is stored for a request; nil for none, and where the store cannot be read.
    ///
    /// - Parameter request: its URL and method count.
    public override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
        attempt {
            guard let key = try Self.key(request), let entry = try store.get(key, includingExpired: true),
                let head = StoredURLResponse(entry.metadata)
            else { return nil }
            return head.cachedResponse(Data(try entry.body.bytes()))
        }
    }

    /// Stores a response, unless its policy is `notAllowed`. Replaces what was stored for the request.
    ///
    /// Only a whole response of HTTP is stored. `onError` gets a `URLError` for any other: `badURL` for a request or a
    /// response without a URL, `unsupportedURL` for a scheme that is not HTTP, `badServerResponse` for a `URLResponse`
    /// that is not an `HTTPURLResponse`, for status 206 and 304, and for less data than `Content-Length` promises.
    ///
    /// - Parameters:
    ///   - cachedResponse: `userInfo` is kept where it is a property list, and left out otherwise.
    ///   - request: its URL and method count.
    public override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
        guard cachedResponse.storagePolicy != .notAllowed, !isOff.load(ordering: .relaxed) else { return }
        attempt {
            let (key, response) = try Self.checked(request, cachedResponse)
            let head = StoredURLResponse(cachedResponse, response)
            var options = PutOptions(lifetime: .never, metadata: try head.encoded())
            if cachedResponse.storagePolicy == .allowedInMemoryOnly { options.storagePolicy = .memoryOnly }
            try store.put([UInt8](cachedResponse.data), for: key, options)
        }
    }

    /// Removes the response of a request.
    ///
    /// - Parameter request: its URL and method count.
    public override func removeCachedResponse(for request: URLRequest) {
        attempt { _ = try Self.key(request).map { try store.remove($0) } }
    }

    /// Removes the responses that this class stored; what others put into the store stays.
    public override func removeAllCachedResponses() {
        attempt { _ = try store.remove(.prefix(Key(Self.prefix))) }
    }

    /// Removes the responses that were stored after a moment.
    ///
    /// - Parameter date: by the clock of the store.
    public override func removeCachedResponses(since date: Date) {
        let moment = Timestamp(seconds: date.timeIntervalSince1970)
        attempt { _ = try store.remove(.prefix(Key(Self.prefix)) && !.storedBefore(moment)) }
    }

    // MARK: Responses of tasks

    /// As ``cachedResponse(for:)``, for the request of a task. Waits for the disk on a thread of its own.
    public override func getCachedResponse(
        for dataTask: URLSessionDataTask, completionHandler: @escaping (CachedURLResponse?) -> Void
    ) {
        guard let request = dataTask.currentRequest ?? dataTask.originalRequest else { return completionHandler(nil) }
        // SAFETY: called once, as the caller expects it, on another thread, as `URLCache` itself does it.
        nonisolated(unsafe) let completionHandler = completionHandler
        DispatchQueue.global().async { [self] in completionHandler(cachedResponse(for: request)) }
    }

    /// As ``storeCachedResponse(_:for:)``, for the request of a task.
    public override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
        guard let request = dataTask.currentRequest ?? dataTask.originalRequest else { return }
        storeCachedResponse(cachedResponse, for: request)
    }

    /// As ``removeCachedResponse(for:)``, for the request of a task.
    public override func removeCachedResponse(for dataTask: URLSessionDataTask) {
        guard let request = dataTask.currentRequest ?? dataTask.originalRequest else { return }
        removeCachedResponse(for: request)
    }

    // MARK: Capacities

    /// The byte budget of the store; `Int.max` where it has none. Setting it sets the budget of the whole store: at
    /// least `Budget.minimumBytes`. 0 removes the responses of this class and stores no more, until another value is
    /// set.
    public override var diskCapacity: Int {
        get {
            if isOff.load(ordering: .relaxed) { return 0 }
            return attempt { Int(clamping: try store.statistics().budget.bytes.bytes) } ?? 0
        }
        set {
            isOff.store(newValue <= 0, ordering: .relaxed)
            if newValue <= 0 { return removeAllCachedResponses() }
            attempt {
                var budget = try store.statistics().budget
                budget.bytes = max(Budget.minimumBytes, ByteCount(newValue))
                try store.setBudget(budget)
            }
        }
    }

    /// Bytes that the store takes on disk, its index and the entries of others included.
    public override var currentDiskUsage: Int {
        attempt { Int(clamping: try store.statistics().allocatedBytes.bytes) } ?? 0
    }

    /// 0: the store keeps nothing in memory that is on disk as well, as the system does that. Setting it does nothing;
    /// `Configuration.memoryLimit` bounds what is in memory alone.
    public override var memoryCapacity: Int {
        get { 0 }
        set { _ = newValue }
    }

    /// Bytes of the responses that are in memory alone.
    public override var currentMemoryUsage: Int {
        attempt { Int(clamping: try store.statistics().memoryBytes.bytes) } ?? 0
    }
}
