import LarderHTTP
import NIOCore
import Locks

/// Which connections there are, and which tasks wait for one.
///
/// A place is one connection that may exist. It is taken before the connection is opened, and given back when the
/// connection is closed or was never made. An open connection passes from exchange to exchange without giving it back.
/// A server that speaks HTTP/2 has one connection for all requests, and another where all streams of the others are
/// taken.
final class ConnectionPool: Sendable {
    typealias Endpoint = NIOTransport.Endpoint

    /// What a request gets.
    enum Grant: Sendable {
        /// A connection that was used before.
        case kept(Connection)
        /// Leave to open a stream; to be given back with ``endStream(_:)``.
        case stream(HTTP2Session)
        /// Leave to open a connection.
        case place
    }

    typealias Outcome = Result<Grant, TransportError>

    struct Waiter {
        let id: Int
        /// Takes no connection that was used before.
        let isForNew: Bool
        /// Where a connection is wanted most.
        let eventLoop: any EventLoop
        let continuation: CheckedContinuation<Outcome, Never>
    }

    private let state: Mutex<PoolState>

    /// - Parameter sessionsPerHost: 0 where HTTP/2 is not asked for.
    init(connectionsPerHost: Int, waitingPerHost: Int, sessionsPerHost: Int = 0) {
        state = Mutex(
            PoolState(
                connectionsPerHost: connectionsPerHost, waitingPerHost: waitingPerHost,
                sessionsPerHost: sessionsPerHost))
    }

    /// A connection, a stream or a place; waits for one in order, until the deadline.
    /// - Parameters:
    ///   - isNew: takes no kept connection; an idle one is closed for its place if need be.
    ///   - timer: an event loop for the deadline; of those that are kept, a connection of this one is preferred.
    func acquire(
        _ endpoint: Endpoint, _ deadline: NIODeadline, isNew: Bool = false, timer: any EventLoop
    ) async throws(TransportError) -> Grant {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        return try await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let waiter = Waiter(id: id, isForNew: isNew, eventLoop: timer, continuation: continuation)
                let (now, unwanted) = state.withLock { $0.acquire(endpoint, waiter) }
                unwanted?.closeSoon()
                if let now { return continuation.resume(returning: now) }
                timer.scheduleTask(deadline: deadline) { self.giveUp(id, endpoint, .timedOut) }
            }
        } onCancel: {
            giveUp(id, endpoint, .cancelled)
        }.get()
    }

    /// A connection that is idle on an event loop, if there is one.
    func takeIdle(_ endpoint: Endpoint, on eventLoop: any EventLoop) -> Connection? {
        state.withLock { $0.hosts[endpoint]?.takeIdle(only: eventLoop) }
    }

    /// Leave to open a connection that speaks HTTP/1.1 from the start, where none is idle and no one waits for one.
    func takePlace(_ endpoint: Endpoint) -> Bool { state.withLock { $0.takePlace(endpoint) } }

    /// Takes back a connection that can be used again.
    /// - Returns: false where it is not wanted; to be closed.
    func keep(_ connection: Connection) -> Bool {
        let (isKept, waiter) = state.withLock { $0.keep(connection) }
        waiter?.continuation.resume(returning: .success(.kept(connection)))
        return isKept
    }

    /// Hears what happened to a place: what its connection speaks, or nil when there is none.
    func settle(_ endpoint: Endpoint, _ outcome: ConnectionOpening.Outcome?) {
        change(endpoint) { host in
            switch outcome {
            case .connection: host.version = .http1
            case .session(let session):
                host.version = .unknown
                // The first stream is for who opened the connection.
                host.sessions.append(PoolState.SessionUse(session: session, active: 1, limit: session.firstLimit))
            case nil:
                host.version = host.version == .asking ? .unknown : host.version
                host.rest()
            }
        }
    }

    /// Gives those who wait what there is by now: after a while in which no further connection was tried.
    func lookAgain(_ endpoint: Endpoint) { change(endpoint) { _ in } }

    /// Takes back the place of a connection that has closed.
    func vacate(_ endpoint: Endpoint, _ channel: any Channel) {
        change(endpoint) { host in
            host.idle.removeAll { $0.channel === channel }
            host.sessions.removeAll { $0.session.channel === channel }
            host.places -= 1
        }
    }

    /// Takes back the place of a connection that was never made.
    func giveUpPlace(_ endpoint: Endpoint) {
        change(endpoint) { host in
            if host.version == .asking { host.version = .unknown }
            host.rest()
            host.places -= 1
        }
    }

    // MARK: HTTP/2

    /// A stream has ended, or was never opened.
    func endStream(_ session: HTTP2Session) {
        change(session) { $0.active -= 1 }
    }

    /// The server said how many streams it allows.
    func setLimit(_ limit: Int, _ session: HTTP2Session) {
        change(session) { $0.limit = limit }
    }

    /// A session takes no more streams.
    /// - Parameter ifUnused: leaves one alone that has streams, or is about to have one.
    /// - Returns: whether it takes none any more.
    @discardableResult
    func retire(_ session: HTTP2Session, ifUnused: Bool = false) -> Bool {
        var isRetired = true
        change(session.endpoint) { host in
            guard let index = host.sessions.firstIndex(where: { $0.session === session }) else { return }
            isRetired = !ifUnused || host.sessions[index].active <= 0
            if isRetired { host.sessions.remove(at: index) }
        }
        return isRetired
    }

    /// Whether an endpoint has been reached and speaks HTTP/2.
    func hasSession(_ endpoint: Endpoint) -> Bool { state.withLock { $0.hosts[endpoint]?.sessions.isEmpty == false } }

    private func change(_ session: HTTP2Session, _ body: (inout PoolState.SessionUse) -> Void) {
        change(session.endpoint) { host in
            guard let index = host.sessions.firstIndex(where: { $0.session === session }) else { return }
            body(&host.sessions[index])
        }
    }

    // MARK: The end

    /// Refuses everything from now on.
    /// - Returns: the connections that are idle, to be closed; and the sessions, to be closed when their streams end.
    func close() -> (idle: [Connection], sessions: [HTTP2Session]) {
        let (idle, sessions, waiting) = state.withLock { $0.close() }
        for (endpoint, waiter) in waiting {
            waiter.continuation.resume(returning: .failure(PoolState.closed(endpoint)))
        }
        return (idle, sessions)
    }

    /// Places that are taken at an endpoint, and requests that wait for one.
    func load(_ endpoint: Endpoint) -> (places: Int, idle: Int, waiting: Int) {
        state.withLock { state in
            let host = state.hosts[endpoint] ?? PoolState.Host()
            return (host.places, host.idle.count, host.waiting.count)
        }
    }

    /// Streams that are open or about to be at an endpoint that speaks HTTP/2.
    func streams(_ endpoint: Endpoint) -> Int {
        state.withLock { $0.hosts[endpoint]?.sessions.reduce(0) { $0 + $1.active } ?? 0 }
    }

    /// Changes what is known of an endpoint, and gives those who wait what there is then.
    private func change(_ endpoint: Endpoint, _ body: (PoolState.Host) -> Void) {
        let granted = state.withLock { $0.change(endpoint, body) }
        for (waiter, grant) in granted { waiter.continuation.resume(returning: .success(grant)) }
    }

    private func giveUp(_ id: Int, _ endpoint: Endpoint, _ code: TransportError.Code) {
        let (waiter, isConnected) = state.withLock { state -> (Waiter?, Bool) in
            guard let place = state.hosts[endpoint]?.waiting.firstIndex(where: { $0.id == id }) else {
                return (nil, false)
            }
            return (state.hosts[endpoint]?.waiting.remove(at: place), state.hosts[endpoint]?.sessions.isEmpty == false)
        }
        let error: TransportError
        if code == .cancelled {
            error = .cancelled(endpoint, mayHaveBeenSeen: false)
        } else if isConnected {
            // The origin can be reached: its streams are taken.
            error = TransportError(
                .overloaded, mayHaveBeenSeen: false, endpoint: "\(endpoint)",
                "no stream of \(endpoint) became free in time")
        } else {
            error = TransportError(
                code, mayHaveBeenSeen: false, endpoint: "\(endpoint)",
                "no connection to \(endpoint) became free in time")
        }
        waiter?.continuation.resume(returning: .failure(error))
    }
}
