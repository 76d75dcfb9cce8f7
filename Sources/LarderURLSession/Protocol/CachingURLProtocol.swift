import Foundation
import LarderHTTP

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Loads the requests of a session through a cache. Each configuration has a subclass of its own: ``CachingClasses``.
class CachingURLProtocol: URLProtocol {
    private var load: CachedLoad?
    private var isStarted = false

    override class func canInit(with request: URLRequest) -> Bool {
        guard let scheme = request.url?.scheme?.lowercased(), scheme == "http" || scheme == "https",
            let caching = CachingClasses.caching(of: self), caching.isActive, !request.bypassesCache,
            caching.options.appliesTo(request)
        else { return false }
        #if canImport(FoundationNetworking)
            // The content of an upload task is not in its request, and cannot be seen from here: leave the request to
            // URLSession.
            let uploads: Set<String> = ["POST", "PUT", "PATCH"]
            if uploads.contains(request.httpMethod ?? "GET"), request.httpBody == nil, request.httpBodyStream == nil {
                return false
            }
        #endif
        // A web socket does not exchange HTTP messages.
        return request.value(forHTTPHeaderField: "Upgrade") == nil
    }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override class func requestIsCacheEquivalent(_ a: URLRequest, to b: URLRequest) -> Bool { false }

    /// Begins, or hands what has arrived to the session: on Linux `resume()` calls this whenever it is called, on the
    /// queue of the session, where alone its client may be called.
    override func startLoading() {
        if isStarted { return deliver() }
        isStarted = true
        guard let caching = CachingClasses.caching(of: type(of: self)) else {
            return fail(.unsupportedURL, "the cache of this session was removed")
        }
        #if canImport(FoundationNetworking)
            if task is URLSessionDownloadTask {
                return fail(
                    .unsupportedURL,
                    "a download task cannot load through a cache on Linux: use URLSessionCaching.download(for:to:), or "
                        + "URLRequest.bypassingCache to load without the cache")
            }
            if task is URLSessionUploadTask {
                return fail(
                    .unsupportedURL,
                    "the cache cannot see the content of an upload task on Linux: use a data task with httpBody, or "
                        + "URLRequest.bypassingCache to load without the cache")
            }
        #endif
        let load = CachedLoad(caching, request)
        self.load = load
        load.start(task, waking: waker())
    }

    private func fail(_ code: URLError.Code, _ message: String) {
        client?.urlProtocol(self, didFailWithError: URLError(code, request.url, message))
    }

    override func stopLoading() {
        #if canImport(FoundationNetworking)
            // Also called when the task is suspended; then no event is delivered until it is resumed.
            if let state = task?.state, state == .running || state == .suspended { return }
        #endif
        load?.cancel()
    }

    /// What makes `deliver()` run where the client of the protocol may be called.
    private func waker() -> @Sendable () -> Void {
        #if canImport(FoundationNetworking)
            guard let task else { return {} }
            return {
                TaskThread.run {
                    // A suspended task must stay suspended.
                    if task.state == .running { task.resume() }
                }
            }
        #else
            // SAFETY: `self` is only used on the run loop of the thread that called `startLoading()`, which is where
            // URLSession calls this object.
            nonisolated(unsafe) let target = self
            nonisolated(unsafe) let loop = CFRunLoopGetCurrent()
            nonisolated(unsafe) let mode =
                (loop.flatMap { CFRunLoopCopyCurrentMode($0) }?.rawValue ?? CFRunLoopMode.defaultMode.rawValue)
            return {
                CFRunLoopPerformBlock(loop, mode) { target.deliver() }
                CFRunLoopWakeUp(loop)
            }
        #endif
    }

    private func deliver() {
        guard let load, let client else { return }
        #if canImport(FoundationNetworking)
            // One that was cancelled meanwhile gets its error from URLSession.
            if let state = task?.state, state != .running { return }
        #endif
        for event in load.takeEvents() {
            switch event {
            // Nothing is to be stored a second time.
            case .response(let response):
                client.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
            case .data(let data): client.urlProtocol(self, didLoad: data)
            case .redirect(let request, let response):
                client.urlProtocol(self, wasRedirectedTo: request, redirectResponse: response)
            case .finished: client.urlProtocolDidFinishLoading(self)
            case .failed(let error): client.urlProtocol(self, didFailWithError: error)
            }
        }
        load.eventsWereDelivered()
    }
}
