import LarderHTTP
import NIOCore
import Synchronization

/// Which connections there are, and who waits for one.
///
/// A place is one connection that may exist. It is taken before the connection is opened, and given back when the
/// connection is closed for good or was never made; an open one goes from exchange to exchange without giving it back.
final class ConnectionPool: Sendable {
    typealias Endpoint = NIOTransport.Endpoint

    /// What a request gets.
    enum Lease: Sendable {
        /// A connection that was used before.
        case kept(Connection)
        /// Leave to open one.
        case place
    }

    fileprivate struct Waiter {
        let id: Int
        let continuation: CheckedContinuation<Result<Lease, TransportError>, Never>
    }

    fileprivate struct Host {
        /// The last one used is at the end, and used first: the others may go idle and close.
        var idle: [Connection] = []
        var places = 0
        var waiting: [Waiter] = []
    }

    fileprivate struct State {
        var hosts: [Endpoint: Host] = [:]
        var isClosed = false
        var nextID = 0
    }

    fileprivate let connectionsPerHost: Int
    fileprivate let waitingPerHost: Int
    private let state = Mutex(State())

    init(connectionsPerHost: Int, waitingPerHost: Int) {
        self.connectionsPerHost = connectionsPerHost
        self.waitingPerHost = waitingPerHost
    }

    /// A connection or a place; waits for one in order, until the deadline.
    func lease(_ endpoint: Endpoint, _ deadline: NIODeadline, timer: any EventLoop) async throws(TransportError)
        -> Lease
    {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        return try await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now = state.withLock { $0.lease(endpoint, Waiter(id: id, continuation: continuation), self) }
                if let now { return continuation.resume(returning: now) }
                timer.scheduleTask(deadline: deadline) { self.giveUp(id, endpoint, .timedOut) }
            }
        } onCancel: {
            giveUp(id, endpoint, .cancelled)
        }.get()
    }

    /// Takes back a connection that can be used again.
    /// - Returns: false where it is not wanted; to be closed.
    func keep(_ connection: Connection) -> Bool {
        let (isKept, waiter) = state.withLock { state -> (Bool, Waiter?) in
            guard !state.isClosed, var host = state.hosts[connection.endpoint] else { return (false, nil) }
            let waiter = host.waiting.isEmpty ? nil : host.waiting.removeFirst()
            if waiter == nil { host.idle.append(connection) }
            state.hosts[connection.endpoint] = host
            return (true, waiter)
        }
        waiter?.continuation.resume(returning: .success(.kept(connection)))
        return isKept
    }

    /// Takes back the place of a connection that is no more, or never was.
    func vacate(_ endpoint: Endpoint, _ connection: Connection?) {
        let waiter = state.withLock { state -> Waiter? in
            guard var host = state.hosts[endpoint] else { return nil }
            if let connection { host.idle.removeAll { $0 === connection } }
            // The place goes on to the first who waits.
            let waiter = host.waiting.isEmpty ? nil : host.waiting.removeFirst()
            if waiter == nil { host.places -= 1 }
            state.hosts[endpoint] = host.places > 0 ? host : nil
            return waiter
        }
        waiter?.continuation.resume(returning: .success(.place))
    }

    /// Refuses everything from now on.
    /// - Returns: the connections that nobody uses, to be closed.
    func close() -> [Connection] {
        let (idle, waiting) = state.withLock { state in
            state.isClosed = true
            let waiting = state.hosts.flatMap { endpoint, host in host.waiting.map { (endpoint, $0) } }
            let idle = state.hosts.values.flatMap(\.idle)
            for endpoint in state.hosts.keys {
                state.hosts[endpoint]?.waiting = []
                state.hosts[endpoint]?.idle = []
            }
            return (idle, waiting)
        }
        for (endpoint, waiter) in waiting { waiter.continuation.resume(returning: .failure(Self.closed(endpoint))) }
        return idle
    }

    /// Places that are taken at an endpoint, and requests that wait for one.
    func load(_ endpoint: Endpoint) -> (places: Int, idle: Int, waiting: Int) {
        state.withLock { state in
            let host = state.hosts[endpoint] ?? Host()
            return (host.places, host.idle.count, host.waiting.count)
        }
    }

    private func giveUp(_ id: Int, _ endpoint: Endpoint, _ kind: TransportError.Kind) {
        let waiter = state.withLock { state -> Waiter? in
            guard let place = state.hosts[endpoint]?.waiting.firstIndex(where: { $0.id == id }) else { return nil }
            return state.hosts[endpoint]?.waiting.remove(at: place)
        }
        let error =
            kind == .cancelled
            ? TransportError.cancelled(endpoint, mayHaveBeenSeen: false)
            : TransportError(kind, mayHaveBeenSeen: false, "no connection to \(endpoint) became free in time")
        waiter?.continuation.resume(returning: .failure(error))
    }

    fileprivate static func closed(_ endpoint: Endpoint) -> TransportError {
        TransportError(.cannotConnect, mayHaveBeenSeen: false, "cannot connect to \(endpoint): the transport is closed")
    }
}

extension ConnectionPool.State {
    /// What there is now; nil when the waiter is in the queue.
    fileprivate mutating func lease(
        _ endpoint: NIOTransport.Endpoint, _ waiter: ConnectionPool.Waiter, _ pool: ConnectionPool
    ) -> Result<ConnectionPool.Lease, TransportError>? {
        if isClosed { return .failure(ConnectionPool.closed(endpoint)) }
        // Cancelled before: then nobody calls giveUp again.
        if Task.isCancelled { return .failure(.cancelled(endpoint, mayHaveBeenSeen: false)) }
        var host = hosts[endpoint] ?? ConnectionPool.Host()
        defer { hosts[endpoint] = host }
        if let connection = host.idle.popLast() { return .success(.kept(connection)) }
        if host.places < pool.connectionsPerHost {
            host.places += 1
            return .success(.place)
        }
        guard host.waiting.count < pool.waitingPerHost else {
            return .failure(
                TransportError(
                    .cannotConnect, mayHaveBeenSeen: false,
                    "all \(host.places) connections to \(endpoint) are in use, and \(host.waiting.count) requests wait")
            )
        }
        host.waiting.append(waiter)
        return nil
    }
}
