import HTTPWire
import Larder
import LarderHTTP
import NIOCore
import Locks

/// What the connections of one event loop share: counters, room to write heads in, the log's lines.
///
// SAFETY: everything that changes is touched on `eventLoop` only: by its connections, and by what `Server`, `Shedding`
// and `MetricsReader` submit to it. The methods that those call assert it.
final class Worker: @unchecked Sendable {
    let eventLoop: any EventLoop
    let core: ServerCore
    /// Runs the tasks of connections.
    let executor: LoopExecutor
    /// What answers, as ``ServerCore/service``.
    var service: any HTTPService { didSet { store = service.health.store } }
    /// That of the service.
    private(set) var store: Store
    var counters = ServerCounters()
    /// Answers on their way to the connection that is being served; empty when its handler returns.
    var output: ByteBuffer
    /// The one before, most often with the kernel by now, so that its room serves again and a hit allocates none.
    private var sent: ByteBuffer
    /// The head that is being read.
    var view = RequestHeadView()
    /// Room for a head.
    var scratch: [UInt8] = []
    /// Room for the fields of an answer over HTTP/2.
    var fieldBytes = ByteBuffer()
    /// Room for a request over HTTP/2.
    var plainRequest = PlainRequestBytes()
    var log: AccessLogLines?
    private var date: (seconds: Int64, field: [UInt8]) = (.min, [])
    private var connections: [ObjectIdentifier: any SupervisedConnection] = [:]
    /// Bodies that writes under way share: how many of them, and what counts as memory.
    private var lent: [Digest: (writes: Int, bytes: Int)] = [:]
    private var ticker: RepeatedTask?
    private(set) var shedding: Shedding?
    private(set) var isDraining = false
    private var emptied: EventLoopPromise<Void>?

    init(_ eventLoop: any EventLoop, _ core: ServerCore) {
        self.eventLoop = eventLoop
        self.core = core
        executor = LoopExecutor(eventLoop)
        service = core.service
        store = service.health.store
        output = ByteBufferAllocator().buffer(capacity: Self.outputRoom)
        sent = output
        scratch.reserveCapacity(4_096)
        log = core.accessLog.map { AccessLogLines($0) }
    }

    private static let outputRoom = 16_384

    /// What is held, which is then empty.
    func takeOutput() -> ByteBuffer {
        let taken = output
        output = sent
        // One of unusual size is not kept.
        sent = taken.capacity > 256 << 10 ? ByteBufferAllocator().buffer(capacity: Self.outputRoom) : taken
        output.clear()
        return taken
    }

    /// `Date` as it goes over a connection, made once a second.
    func dateField() -> [UInt8] {
        let seconds = core.time.wallSeconds()
        if date.seconds != seconds { date = (seconds, Array("Date: \(LogTime.http(seconds))\r\n".utf8)) }
        return date.field
    }

    // MARK: Connections

    func add(_ connection: any SupervisedConnection) {
        eventLoop.assertInEventLoop()
        connections[ObjectIdentifier(connection)] = connection
        counters.connectionsAccepted += 1
        counters.connectionsOpen += 1
    }

    func remove(_ connection: any SupervisedConnection) {
        eventLoop.assertInEventLoop()
        guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
        counters.connectionsOpen -= 1
        if connections.isEmpty { emptied?.succeed() }
    }

    /// Looks at all connections for limits in time, and hands over the log's lines.
    func tick() {
        eventLoop.assertInEventLoop()
        let now = core.time.now()
        for connection in connections.values { connection.tick(now) }
        log?.handOver()
    }

    /// Connections that hold memory.
    var holders: [Shedding.Holder] {
        let now = NIODeadline.now()
        return connections.compactMap { id, connection in
            let (progress, sources) = (connection.progress, connection.sources)
            let bytes = connection.footprint(progress: progress)
            guard bytes >= Shedding.leastBytes else { return nil }
            return Shedding.Holder(
                id: id, client: client(of: connection), bytes: bytes,
                progress: Shedding.areStalled(sources, at: now) ? 0 : progress,
                since: sources.map(\.since).min() ?? .distantPast)
        }
    }

    /// Nil where limits for a client do not hold: a proxy in front may bring the requests of many.
    private func client(of connection: any SupervisedConnection) -> ClientAddress? {
        let address = connection.remoteAddress
        let isExempt = !core.configuration.limits.limitsLoopback && address?.isLoopback == true
        return isExempt ? nil : ClientAddress(address)
    }

    /// Closes connections because memory runs short; those that hold little by now are spared.
    /// - Returns: what they still have memory for.
    func shed(_ ids: [ObjectIdentifier]) -> [ClosedConnections.Source] {
        eventLoop.assertInEventLoop()
        var sources: [ClosedConnections.Source] = []
        for id in ids {
            guard let connection = connections[id],
                connection.footprint(progress: connection.progress) >= Shedding.leastBytes
            else { continue }
            counters.connectionsShed += 1
            sources += connection.sources
            connection.reset()
        }
        return sources
    }

    // MARK: Shared bodies

    /// Counts the memory of a body that is being sent, once however many share it.
    /// - Parameter count: of the part that is sent, in bytes: the largest counts.
    func lend(_ digest: Digest, _ count: Int) {
        eventLoop.assertInEventLoop()
        let body = lent[digest] ?? (writes: 0, bytes: 0)
        let bytes = max(body.bytes, count)
        core.memory.add(bytes - body.bytes)
        lent[digest] = (body.writes + 1, bytes)
    }

    func takeBack(_ digest: Digest) {
        guard let body = lent[digest] else { return }
        lent[digest] = body.writes > 1 ? (body.writes - 1, body.bytes) : nil
        if body.writes == 1 { core.memory.add(-body.bytes) }
    }

    /// Looks at all connections every so often, and at the memory that all event loops hold.
    func startTicking(every interval: TimeAmount, _ shedding: Shedding) {
        eventLoop.assertInEventLoop()
        self.shedding = shedding
        ticker = eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in
            self.tick()
            shedding.run()
        }
    }

    /// Lets every connection finish what it does; the future comes when the last is gone.
    func drain() -> EventLoopFuture<Void> {
        eventLoop.assertInEventLoop()
        isDraining = true
        if connections.isEmpty { return eventLoop.makeSucceededVoidFuture() }
        let promise = emptied ?? eventLoop.makePromise()
        emptied = promise
        for connection in connections.values { connection.drain() }
        return promise.futureResult
    }

    /// Closes every connection at once.
    func closeAll() {
        eventLoop.assertInEventLoop()
        isDraining = true
        for connection in connections.values { connection.abort() }
    }

    func stop() {
        eventLoop.assertInEventLoop()
        ticker?.cancel()
        ticker = nil
        shedding = nil
        log?.handOver()
    }

    // MARK: Requests

    /// Counts and logs a request that is over.
    func finished(_ record: RequestRecord) {
        let seconds = Double((core.time.now() - record.start).nanoseconds) / 1e9
        counters.record(method: record.methodIndex, status: record.status, source: record.source, seconds: seconds)
        if log != nil { log?.append(record, seconds: seconds, time: core.time.wallSeconds()) }
    }
}

/// A connection that the worker looks after.
protocol SupervisedConnection: AnyObject {
    /// Checks limits in time.
    func tick(_ now: NIODeadline)
    /// Ends when what is under way is done.
    func drain()
    /// Ends now.
    func abort()
    /// Ends now, and drops all that the client has not taken.
    func reset()
    /// Memory that waits for the client, in bytes: what ``MemoryBudget`` counts for the connection.
    var heldBytes: Int { get }
    /// Bytes that the client took or sent since the look before last.
    var progress: Int64 { get }
    /// About as much as closing the connection would free, in bytes.
    func footprint(progress: Int64) -> Int
    /// What brings content from origins to it now.
    var sources: [ClosedConnections.Source] { get }
    /// Who the client is.
    var remoteAddress: SocketAddress? { get }
}

extension SupervisedConnection {
    var heldBytes: Int { 0 }
    var progress: Int64 { 0 }
    var remoteAddress: SocketAddress? { nil }
    func footprint(progress: Int64) -> Int { heldBytes }
}
