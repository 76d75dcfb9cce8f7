import Dispatch
import Foundation
import HTTPTypes
import LarderHTTP
import Locks

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What the requests of a transport take up in memory.
final class SessionBytes: Sendable {
    private let value = Atomic<Int>(0)

    /// Bytes that were received and not read yet.
    var count: Int { value.load(ordering: .relaxed) }
    func add(_ bytes: Int) { value.add(bytes, ordering: .relaxed) }
}

/// One request of a session: what it receives on the session's queue, and the one who reads it in a task.
///
/// It cancels its task at most once. On Linux `URLSessionTask.cancel()` marks the task in one step on the queue of the
/// session and reports the error in another. A second call that waits for the queue at that moment lets the completion
/// of the task in between, and Foundation then ends the process (TaskRegistry.swift:118).
final class SessionExchange: Sendable {
    /// Status and fields.
    struct Head: Sendable {
        var status: Int
        var fields: HTTPFields
    }

    private struct State {
        /// Until it ends or is cancelled.
        var task: URLSessionDataTask?
        var head: Head?
        var headWaiter: CheckedContinuation<Result<Head, TransportError>, Never>?
        var pieces: [Data] = []
        var held = 0
        /// What is not held in memory, behind ``pieces``.
        var overflow = Overflow()
        var end: Result<Void, TransportError>?
        var waiter: CheckedContinuation<Result<[UInt8]?, TransportError>, Never>?
        /// The task is suspended.
        var isFull = false
        var isGivenUp = false
    }

    /// Bytes that are held in memory for a slow reader.
    static let limit = 512 << 10
    /// Bytes that a read takes out of the overflow.
    private static let overflowPiece = 256 << 10

    let endpoint: String
    private let held: SessionBytes
    private let overflowLimit: Int64
    private let state = Mutex(State())

    init(_ endpoint: String, _ held: SessionBytes, overflowLimit: Int64) {
        self.endpoint = endpoint
        self.held = held
        self.overflowLimit = overflowLimit
    }

    // MARK: The session's side

    func begin(_ task: URLSessionDataTask) {
        let isGivenUp = state.withLock { state in
            if !state.isGivenUp { state.task = task }
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

    /// Takes a piece. While the reader has enough the task is suspended; on Linux, where that drops the connection, the
    /// piece goes into the overflow.
    func received(_ data: Data) {
        guard !data.isEmpty else { return }
        let (waiter, stopped) = state.withLock {
            state -> (CheckedContinuation<Result<[UInt8]?, TransportError>, Never>?, URLSessionDataTask?) in
            if state.isGivenUp || state.end != nil { return (nil, nil) }
            if let waiter = state.waiter {
                state.waiter = nil
                return (waiter, nil)
            }
            #if canImport(FoundationNetworking)
                if state.overflow.count > 0 || state.held >= Self.limit { return (nil, overflow(data, &state)) }
                hold(data, &state)
                return (nil, nil)
            #else
                hold(data, &state)
                guard state.held >= Self.limit, !state.isFull else { return (nil, nil) }
                state.isFull = true
                // Under the lock, so that a reader does not resume it before.
                state.task?.suspend()
                return (nil, nil)
            #endif
        }
        waiter?.resume(returning: .success([UInt8](data)))
        guard let stopped else { return }
        Self.cancel(stopped)
    }

    private func hold(_ data: Data, _ state: inout State) {
        state.pieces.append(data)
        state.held += data.count
        held.add(data.count)
    }

    /// Puts a piece into the overflow. Returns the task where that cannot be done, which ends the request.
    private func overflow(_ data: Data, _ state: inout State) -> URLSessionDataTask? {
        let why: String
        if state.overflow.count + Int64(data.count) > overflowLimit {
            why =
                "its reader is \(state.overflow.count) bytes behind; the limit is \(overflowLimit) (overflowLimit)"
        } else {
            do {
                try state.overflow.append(data)
                return nil
            } catch {
                why = "data that its reader has not taken cannot be written to a temporary file: \(error)"
            }
        }
        state.end = .failure(
            TransportError(
                .overloaded, mayHaveBeenSeen: true, endpoint: endpoint, "the body from \(endpoint) was given up: \(why)"
            ))
        defer { state.task = nil }
        return state.task
    }

    /// The response is there, but its task does not end by itself.
    func endedUnfinished(_ response: URLResponse?) {
        let task = state.withLock { state in
            defer { state.task = nil }
            return state.task
        }
        ended(nil, response)
        if let task { Self.cancel(task) }
    }

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
        state.withLock { state -> Result<[UInt8]?, TransportError>? in
            guard state.pieces.isEmpty else {
                var bytes: [UInt8] = []
                bytes.reserveCapacity(state.held)
                for piece in state.pieces { bytes.append(contentsOf: piece) }
                held.add(-state.held)
                state.held = 0
                state.pieces = []
                if state.isFull { state.task?.resume() }
                state.isFull = false
                return .success(bytes)
            }
            if state.overflow.count > 0 {
                return Result { try state.overflow.take(Self.overflowPiece) }.mapError(unreadable)
            }
            if state.isGivenUp { return .failure(Self.cancelled(endpoint)) }
            switch state.end {
            case .success?: return .success(nil)
            case .failure(let error)?: return .failure(error)
            case nil:
                state.waiter = waiter
                return nil
            }
        }
    }

    private func unreadable(_ error: any Error) -> TransportError {
        TransportError(
            .incompleteResponse, mayHaveBeenSeen: true, endpoint: endpoint,
            "a part of the body from \(endpoint) cannot be read back from a temporary file: \(error)", cause: error)
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
            state.overflow = Overflow()
            defer {
                state.headWaiter = nil
                state.waiter = nil
                state.task = nil
            }
            return (state.headWaiter, state.waiter, state.task)
        }
        headWaiter?.resume(returning: .failure(Self.cancelled(endpoint)))
        waiter?.resume(returning: .failure(Self.cancelled(endpoint)))
        if let task { Self.cancel(task) }
    }

    /// Cancels on a thread that holds nothing: `URLSessionTask.cancel()` waits for the session's queue on Linux, and
    /// that queue may be about to resume the Swift task whose cancellation handler this is.
    private static func cancel(_ task: URLSessionTask) {
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
    private let exchange: SessionExchange
    init(_ exchange: SessionExchange) { self.exchange = exchange }
    deinit { exchange.giveUp() }

    func next() async throws(TransportError) -> [UInt8]? { try await exchange.next() }
}
