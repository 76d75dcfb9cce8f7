import LarderHTTP
import NIOCore

/// What a pool knows, behind its lock.
struct PoolState {
    typealias Endpoint = NIOTransport.Endpoint

    /// What an endpoint speaks.
    enum Version {
        case unknown
        /// A connection is being made that will tell.
        case asking
        case http1
    }

    /// A connection that speaks HTTP/2 and takes new streams.
    struct SessionUse {
        let session: HTTP2Session
        var active: Int
        var limit: Int
    }

    // By reference: each request takes one of its connections and gives it back.
    // SAFETY: no one has it but the state, behind its lock.
    final class Host: @unchecked Sendable {
        /// The last one used is at the end, and used first: the others may go idle and close.
        var idle: [Connection] = []
        var places = 0
        /// Up to `waitingPerHost`.
        var waiting = CircularBuffer<ConnectionPool.Waiter>()
        /// The first ones are used first: the others may go idle and close.
        var sessions: [SessionUse] = []
        var version = Version.unknown
        /// When a further connection may be tried, where one was refused.
        var mayTry = NIODeadline.uptimeNanoseconds(0)

        /// An idle connection, of an event loop if there is one.
        func takeIdle(on eventLoop: any EventLoop) -> Connection? {
            takeIdle(only: eventLoop) ?? idle.popLast()
        }

        /// An idle connection of an event loop.
        func takeIdle(only eventLoop: any EventLoop) -> Connection? {
            idle.lastIndex { $0.channel.eventLoop === eventLoop }.map { idle.remove(at: $0) }
        }

        /// A connection could not be made.
        func rest() { mayTry = .now() + Host.rest }

        /// How long no further connection is tried.
        static let rest = TimeAmount.seconds(1)
    }

    let connectionsPerHost: Int
    let waitingPerHost: Int
    /// Sessions at one endpoint; 0 where HTTP/2 is not asked for. It takes TLS to know which protocol a server speaks:
    /// one connection asks, and others wait for what it finds.
    let sessionsPerHost: Int
    var hosts: [Endpoint: Host] = [:]
    var isClosed = false
    var nextID = 0

    init(connectionsPerHost: Int, waitingPerHost: Int, sessionsPerHost: Int) {
        self.connectionsPerHost = connectionsPerHost
        self.waitingPerHost = waitingPerHost
        self.sessionsPerHost = sessionsPerHost
    }

    static func closed(_ endpoint: Endpoint) -> TransportError {
        TransportError(
            .cannotConnect, mayHaveBeenSeen: false, endpoint: "\(endpoint)",
            "cannot connect to \(endpoint): the transport is closed")
    }

    /// What there is now, nil when the waiter is in the queue; and a connection to be closed, whose place is wanted.
    mutating func acquire(
        _ endpoint: Endpoint, _ waiter: ConnectionPool.Waiter
    ) -> (ConnectionPool.Outcome?, unwanted: Connection?) {
        if isClosed { return (.failure(Self.closed(endpoint)), nil) }
        // Cancelled before: giveUp has run, and found no waiter.
        if Task.isCancelled { return (.failure(.cancelled(endpoint, mayHaveBeenSeen: false)), nil) }
        let host = hosts[endpoint] ?? Host()
        hosts[endpoint] = host
        if !waiter.isForNew, let connection = host.takeIdle(on: waiter.eventLoop) {
            return (.success(.kept(connection)), nil)
        }
        if let grant = next(host, endpoint) { return (.success(grant), nil) }
        guard host.waiting.count < waitingPerHost else {
            let streams = host.sessions.reduce(0) { $0 + $1.limit }
            let what = streams > 0 ? "all \(streams) streams" : "all \(host.places) connections"
            return (
                .failure(
                    TransportError(
                        .overloaded, mayHaveBeenSeen: false,
                        endpoint: "\(endpoint)",
                        "\(what) to \(endpoint) are in use, and \(host.waiting.count) requests wait")), nil
            )
        }
        host.waiting.append(waiter)
        return (nil, waiter.isForNew && !host.idle.isEmpty ? host.idle.removeFirst() : nil)
    }

    /// See ``ConnectionPool/takePlace(_:)``.
    mutating func takePlace(_ endpoint: Endpoint) -> Bool {
        guard !isClosed, !endpoint.isTLS else { return false }
        let host = hosts[endpoint] ?? Host()
        guard host.idle.isEmpty, host.waiting.isEmpty, host.places < connectionsPerHost else { return false }
        host.places += 1
        hosts[endpoint] = host
        return true
    }

    /// A stream or a place, if there is one.
    private func next(_ host: Host, _ endpoint: Endpoint) -> ConnectionPool.Grant? {
        if let index = host.sessions.firstIndex(where: { $0.active < $0.limit }) {
            host.sessions[index].active += 1
            return .stream(host.sessions[index].session)
        }
        guard host.places < connectionsPerHost else { return nil }
        if sessionsPerHost > 0, endpoint.isTLS, host.version != .http1 {
            guard host.version == .unknown, host.sessions.count < sessionsPerHost else { return nil }
            guard host.sessions.isEmpty || host.mayTry < .now() else { return nil }
            host.version = .asking
        }
        host.places += 1
        return .place
    }

    /// Changes what is known of an endpoint.
    /// - Returns: those who waited, with what they get.
    mutating func change(
        _ endpoint: Endpoint, _ body: (Host) -> Void
    ) -> [(ConnectionPool.Waiter, ConnectionPool.Grant)] {
        guard let host = hosts[endpoint] else { return [] }
        body(host)
        var granted: [(ConnectionPool.Waiter, ConnectionPool.Grant)] = []
        while !host.waiting.isEmpty, let grant = next(host, endpoint) {
            granted.append((host.waiting.removeFirst(), grant))
        }
        if host.places <= 0, host.waiting.isEmpty { hosts[endpoint] = nil }
        return granted
    }

    mutating func keep(_ connection: Connection) -> (isKept: Bool, ConnectionPool.Waiter?) {
        guard !isClosed, let host = hosts[connection.endpoint] else { return (false, nil) }
        // Those who wait for a new one get its place when it is closed.
        if !host.waiting.isEmpty, host.waiting.allSatisfy(\.isForNew) { return (false, nil) }
        let first = host.waiting.firstIndex { !$0.isForNew }
        let waiter = first.map { host.waiting.remove(at: $0) }
        if waiter == nil { host.idle.append(connection) }
        return (true, waiter)
    }

    mutating func close() -> (
        idle: [Connection], sessions: [HTTP2Session], waiting: [(Endpoint, ConnectionPool.Waiter)]
    ) {
        isClosed = true
        let waiting = hosts.flatMap { endpoint, host in host.waiting.map { (endpoint, $0) } }
        let idle = hosts.values.flatMap(\.idle)
        let sessions = hosts.values.flatMap { $0.sessions.map(\.session) }
        for host in hosts.values {
            host.waiting = []
            host.idle = []
            host.sessions = []
        }
        return (idle, sessions, waiting)
    }
}
