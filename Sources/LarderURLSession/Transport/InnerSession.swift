import Foundation
import LarderHTTP
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A session that sends requests of the cache.
final class InnerSession: Sendable {
    private let session: URLSession
    private let delegate = SessionDelegate()

    init(_ configuration: URLSessionConfiguration) {
        #if canImport(FoundationNetworking)
            let queue: OperationQueue = InlineQueue()
        #else
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = 1
        #endif
        session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: queue)
    }

    /// Starts a request; `onEnd` runs after the last call of its exchange.
    func start(_ request: URLRequest, _ exchange: Exchange, onEnd: @escaping @Sendable () -> Void) {
        let task = session.dataTask(with: request)
        delegate.register(task.taskIdentifier, exchange, onEnd)
        exchange.begin(task)
        task.resume()
    }

    /// A session keeps its delegate until it is invalidated.
    func close() {
        delegate.giveUpAll()
        let session = session
        // Not from the session's own queue, for which this waits on Linux.
        DispatchQueue.global().async { session.invalidateAndCancel() }
    }
}

/// Passes what a session reports on to the exchange it belongs to.
private final class SessionDelegate: NSObject, URLSessionDataDelegate, Sendable {
    private typealias Running = (exchange: Exchange, onEnd: @Sendable () -> Void)
    private let running = Mutex<[Int: Running]>([:])

    func register(_ task: Int, _ exchange: Exchange, _ onEnd: @escaping @Sendable () -> Void) {
        running.withLock { $0[task] = (exchange, onEnd) }
    }

    func giveUpAll() {
        for (exchange, _) in running.withLock({ Array($0.values) }) { exchange.giveUp() }
    }

    private func exchange(_ task: URLSessionTask) -> Exchange? {
        running.withLock { $0[task.taskIdentifier]?.exchange }
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
            exchange(task)?.ended(nil, task.response)
            Exchange.cancel(task)
        #else
            completionHandler(.performDefaultHandling, nil)
        #endif
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let ended = running.withLock({ $0.removeValue(forKey: task.taskIdentifier) }) else { return }
        ended.exchange.ended(error, task.response)
        ended.onEnd()
    }
}

#if canImport(FoundationNetworking)
    /// Runs what is added where it is added: on the queue of the session, which so waits for the delegate.
    private final class InlineQueue: OperationQueue, @unchecked Sendable {
        // SAFETY: has no state of its own.
        override func addOperation(_ block: @escaping @Sendable () -> Void) { block() }
    }
#endif
