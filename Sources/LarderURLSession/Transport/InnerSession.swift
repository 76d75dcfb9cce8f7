import Foundation
import LarderHTTP
import Locks

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The session that sends the requests of a transport.
final class InnerSession: Sendable {
    private struct State {
        /// Requests whose task is being made: a session that is invalidated must make no more (Linux' Foundation ends
        /// the process).
        var starting = 0
        var isClosed = false
    }

    private let session: URLSession
    private let delegate = SessionDelegate()
    private let state = Mutex(State())

    /// - Parameter given: copied.
    init(_ given: URLSessionConfiguration) {
        let configuration = given.copy() as? URLSessionConfiguration ?? .ephemeral
        // No caching below the cache, and no protocol that would ask it.
        configuration.urlCache = nil
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.protocolClasses = configuration.protocolClasses?.filter { !($0 is CachingURLProtocol.Type) }
        // Cookies and credentials are added before the cache is asked, so that `Vary` can select by them.
        // A redirect may have taken them out again. Linux' Foundation keeps what a response sets unless it is never
        // accepted.
        configuration.httpShouldSetCookies = false
        configuration.httpCookieStorage = nil
        configuration.httpCookieAcceptPolicy = .never
        configuration.httpAdditionalHeaders = nil
        configuration.urlCredentialStorage = nil
        #if canImport(FoundationNetworking)
            let queue: OperationQueue = InlineQueue()
        #else
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = 1
        #endif
        session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: queue)
    }

    deinit { close() }

    /// Starts a request; false after `close()`.
    func start(_ request: URLRequest, _ exchange: SessionExchange) -> Bool {
        let isOpen = state.withLock { state in
            if state.isClosed { return false }
            state.starting += 1
            return true
        }
        guard isOpen else { return false }
        #if canImport(FoundationNetworking)
            TaskThread.run { [self] in begin(request, exchange) }
        #else
            begin(request, exchange)
        #endif
        return true
    }

    private func begin(_ request: URLRequest, _ exchange: SessionExchange) {
        let task = session.dataTask(with: request)
        delegate.register(task.taskIdentifier, exchange)
        exchange.begin(task)
        task.resume()
        let (isClosed, isLast) = state.withLock { state in
            state.starting -= 1
            return (state.isClosed, state.isClosed && state.starting == 0)
        }
        if isClosed { exchange.giveUp() }
        if isLast { session.finishTasksAndInvalidate() }
    }

    /// Ends the requests that are under way. A session keeps its delegate until it is invalidated.
    func close() {
        let isIdle = state.withLock { state in
            defer { state.isClosed = true }
            return !state.isClosed && state.starting == 0
        }
        delegate.giveUpAll()
        // Not `invalidateAndCancel()`: a task must not be cancelled twice, see `SessionExchange`.
        if isIdle { session.finishTasksAndInvalidate() }
    }
}

/// Passes what a session reports on to the exchange it belongs to.
private final class SessionDelegate: NSObject, URLSessionDataDelegate, Sendable {
    private let running = Mutex<[Int: SessionExchange]>([:])

    func register(_ task: Int, _ exchange: SessionExchange) {
        running.withLock { $0[task] = exchange }
    }

    func giveUpAll() {
        for exchange in running.withLock({ Array($0.values) }) { exchange.giveUp() }
    }

    private func exchange(_ task: URLSessionTask) -> SessionExchange? {
        running.withLock { $0[task.taskIdentifier] }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
        if let response = response as? HTTPURLResponse { exchange(dataTask)?.received(response) }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        exchange(dataTask)?.received(data)
    }

    /// A redirect is an answer: the cache stores it, and the one who asked follows it.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        #if canImport(FoundationNetworking)
            // Asked only when the whole 401 is there. No disposition makes that the answer: the default handling waits
            // for credentials forever, the others fail the task.
            exchange(task)?.endedUnfinished(task.response)
        #else
            completionHandler(.performDefaultHandling, nil)
        #endif
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        running.withLock { $0.removeValue(forKey: task.taskIdentifier) }?.ended(error, task.response)
    }
}

#if canImport(FoundationNetworking)
    /// Runs what is added where it is added: on the queue of the session. A queue of its own would take pieces of a
    /// body without a limit. All sessions of a process share one queue, so nothing here may wait.
    private final class InlineQueue: OperationQueue, @unchecked Sendable {
        // SAFETY: has no state of its own.
        override func addOperation(_ block: @escaping @Sendable () -> Void) { block() }
    }
#endif
