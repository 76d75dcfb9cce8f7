import Dispatch
import Foundation
import HTTPTypes
import LarderHTTP
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What the requests of a transport take up.
final class HeldBytes: Sendable {
    /// Threads that may wait for slow readers at once, on Linux. Dispatch gives a process 255.
    private static let waitingLimit = 64

    private let value = Atomic<Int>(0)
    private let waiting = Atomic<Int>(0)

    /// Bytes that were received and not read yet.
    var count: Int { value.load(ordering: .relaxed) }
    func add(_ bytes: Int) { value.add(bytes, ordering: .relaxed) }

    /// Runs `body`, which waits, on the calling thread; false, and nothing is done, where too many threads wait already.
    func wait(_ body: () -> Void) -> Bool {
        defer { waiting.subtract(1, ordering: .relaxed) }
        guard waiting.add(1, ordering: .relaxed).newValue <= Self.waitingLimit else { return false }
        body()
        return true
    }
}

/// One request of a session: what it receives on the session's queue, and the one who reads it in a task.
final class Exchange: Sendable {
    /// Status and fields.
    struct Head: Sendable {
        var status: Int
        var fields: HTTPFields
    }

    private struct State {
        var task: URLSessionDataTask?
        var head: Head?
        var headWaiter: CheckedContinuation<Result<Head, TransportError>, Never>?
        var pieces: [Data] = []
        var held = 0
        var end: Result<Void, TransportError>?
        var waiter: CheckedContinuation<Result<[UInt8]?, TransportError>, Never>?
        /// The session holds back what follows.
        var isFull = false
        var isGivenUp = false
    }

    /// Bytes that are held for a slow reader before the session waits.
    static let limit = 512 << 10

    let endpoint: String
    private let held: HeldBytes
    private let state = Mutex(State())
    private let room = DispatchSemaphore(value: 0)

    init(_ endpoint: String, _ held: HeldBytes) {
        self.endpoint = endpoint
        self.held = held
    }

    // MARK: The session's side

    func begin(_ task: URLSessionDataTask) {
        let isGivenUp = state.withLock { state in
            state.task = task
            return state.isGivenUp
        }
        if isGivenUp { Self.cancel(task) }
    }

    func received(_ response: HTTPURLResponse) {
        let head = Head(status: response.statusCode, fields: NetworkFields.fields(response.allHeaderFields))
        let waiter = state.withLock { state -> CheckedContinuation<Result<Head, TransportError>, Never>? in
            guard state.head == nil else { return nil }
            state.head = head
            defer { state.headWaiter = nil }
            return state.headWaiter
        }
        waiter?.resume(returning: .success(head))
    }

    /// Takes a piece. On Linux it waits while the reader has enough: see ``SessionPool``. Elsewhere the task pauses.
    func received(_ data: Data) {
        guard !data.isEmpty else { return }
        let (waiter, pausing) = state.withLock {
            state -> (CheckedContinuation<Result<[UInt8]?, TransportError>, Never>?, URLSessionDataTask?) in
            if state.isGivenUp { return (nil, nil) }
            if let waiter = state.waiter {
                state.waiter = nil
                return (waiter, nil)
            }
            state.pieces.append(data)
            state.held += data.count
            held.add(data.count)
            guard state.held >= Self.limit, !state.isFull else { return (nil, nil) }
            state.isFull = true
            return (nil, state.task)
        }
        waiter?.resume(returning: .success([UInt8](data)))
        guard let pausing else { return }
        #if canImport(FoundationNetworking)
            if !held.wait({ room.wait() }) { fail(pausing) }
        #else
            pausing.suspend()
        #endif
    }

    #if canImport(FoundationNetworking)
        /// Ends a request whose reader is behind, as the readers of too many others are.
        private func fail(_ task: URLSessionTask) {
            state.withLock { state in
                guard state.end == nil else { return }
                state.end = .failure(
                    TransportError(
                        .overloaded, mayHaveBeenSeen: true, endpoint: endpoint,
                        "the body from \(endpoint) was given up: it is read slowly, as those of too many other requests are"
                    ))
            }
            Self.cancel(task)
        }
    #endif

    func ended(_ error: (any Error)?, _ response: URLResponse?) {
        // Some redirects come without the call that reports a head, on Linux: see `docs/urlsession.md`.
        if error == nil, let response = response as? HTTPURLResponse { received(response) }
        let (headWaiter, waiter, result) = state.withLock { state in
            let isHead = state.head == nil
            let result: Result<Void, TransportError> =
                state.end ?? error.map { .failure(TransportError($0, endpoint, afterHead: !isHead)) } ?? .success(())
            state.end = result
            state.task = nil
            defer {
                state.headWaiter = nil
                state.waiter = nil
            }
            return (state.headWaiter, state.waiter, result)
        }
        switch result {
        case .success:
            headWaiter?.resume(returning: .failure(Self.noHead(endpoint)))
            waiter?.resume(returning: .success(nil))
        case .failure(let error):
            headWaiter?.resume(returning: .failure(error))
            waiter?.resume(returning: .failure(error))
        }
    }

    private static func noHead(_ endpoint: String) -> TransportError {
        TransportError(.malformedResponse, mayHaveBeenSeen: true, endpoint: endpoint, "\(endpoint) sent no response")
    }

    // MARK: The reader's side

    /// The head of the response; waits for it.
    func head() async throws(TransportError) -> Head {
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (waiter: CheckedContinuation<Result<Head, TransportError>, Never>) in
                let result = state.withLock { state -> Result<Head, TransportError>? in
                    if let head = state.head { return .success(head) }
                    if case .failure(let error)? = state.end { return .failure(error) }
                    if state.isGivenUp { return .failure(Self.cancelled(endpoint)) }
                    if state.end != nil { return .failure(Self.noHead(endpoint)) }
                    state.headWaiter = waiter
                    return nil
                }
                if let result { waiter.resume(returning: result) }
            }
        } onCancel: {
            giveUp()
        }
        return try result.get()
    }

    /// The next bytes; nil at the end.
    func next() async throws(TransportError) -> [UInt8]? {
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (waiter: CheckedContinuation<Result<[UInt8]?, TransportError>, Never>) in
                if let result = take(or: waiter) { waiter.resume(returning: result) }
            }
        } onCancel: {
            giveUp()
        }
        return try result.get()
    }

    private func take(
        or waiter: CheckedContinuation<Result<[UInt8]?, TransportError>, Never>
    ) -> Result<[UInt8]?, TransportError>? {
        let (result, resuming) = state.withLock {
            state -> (Result<[UInt8]?, TransportError>?, URLSessionDataTask?) in
            guard state.pieces.isEmpty else {
                var bytes: [UInt8] = []
                bytes.reserveCapacity(state.held)
                for piece in state.pieces { bytes.append(contentsOf: piece) }
                held.add(-state.held)
                state.held = 0
                state.pieces = []
                return (.success(bytes), Self.takeFull(&state, room))
            }
            if state.isGivenUp { return (.failure(Self.cancelled(endpoint)), nil) }
            switch state.end {
            case .success?: return (.success(nil), nil)
            case .failure(let error)?: return (.failure(error), nil)
            case nil:
                state.waiter = waiter
                return (nil, nil)
            }
        }
        resuming?.resume()
        return result
    }

    /// Lets the session continue if it waits. Returns the task to resume, where that is how it is done.
    private static func takeFull(_ state: inout State, _ room: DispatchSemaphore) -> URLSessionDataTask? {
        guard state.isFull else { return nil }
        state.isFull = false
        #if canImport(FoundationNetworking)
            room.signal()
            return nil
        #else
            return state.task
        #endif
    }

    /// Ends the request; what was received is dropped. Safe to call at any time, and from a cancellation handler.
    func giveUp() {
        let (headWaiter, waiter, task) = state.withLock {
            state -> (
                CheckedContinuation<Result<Head, TransportError>, Never>?,
                CheckedContinuation<Result<[UInt8]?, TransportError>, Never>?, URLSessionDataTask?
            ) in
            guard !state.isGivenUp else { return (nil, nil, nil) }
            state.isGivenUp = true
            held.add(-state.held)
            state.held = 0
            state.pieces = []
            _ = Self.takeFull(&state, room)
            defer {
                state.headWaiter = nil
                state.waiter = nil
            }
            return (state.headWaiter, state.waiter, state.task)
        }
        headWaiter?.resume(returning: .failure(Self.cancelled(endpoint)))
        waiter?.resume(returning: .failure(Self.cancelled(endpoint)))
        if let task { Self.cancel(task) }
    }

    /// Cancels on a thread that holds nothing: `URLSessionTask.cancel()` waits for the session's queue on Linux, and
    /// that queue may be about to resume the Swift task whose cancellation handler this is.
    static func cancel(_ task: URLSessionTask) {
        #if canImport(FoundationNetworking)
            TaskThread.run { task.cancel() }
        #else
            task.cancel()
        #endif
    }

    private static func cancelled(_ endpoint: String) -> TransportError {
        TransportError(
            .cancelled, mayHaveBeenSeen: true, endpoint: endpoint, "the request to \(endpoint) was cancelled")
    }
}

/// The one reader of an exchange. Gives the request up when it is dropped.
final class ExchangeReader: Sendable {
    private let exchange: Exchange
    init(_ exchange: Exchange) { self.exchange = exchange }
    deinit { exchange.giveUp() }

    func next() async throws(TransportError) -> [UInt8]? { try await exchange.next() }
}
