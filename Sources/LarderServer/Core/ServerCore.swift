import HTTPTypes
import HTTPWire
import LarderHTTP
import Logging
import NIOCore
import Locks

/// What all connections share.
final class ServerCore: Sendable {
    let configuration: ServerConfiguration
    let accessLog: AccessLogWriter?
    let time: any ServerTime
    let logger: Logger
    /// What answers: another takes its place where its store had to be opened again.
    private let current: CurrentService
    /// Client connections, of all event loops.
    let connectionCount = Atomic<Int>(0)
    private let lastRefusal = Atomic<UInt64>(0)
    private let lastShedding = Atomic<UInt64>(0)
    /// Connections that could not be accepted.
    let acceptFailures = Atomic<Int>(0)
    /// What works for connections, on all event loops.
    let tasks = RunningTasks()
    /// What waits for clients and origins, on all event loops.
    let memory: MemoryBudget
    let clients: ClientTable
    /// Client connections at once: as configured, or fewer where the system allows fewer.
    let connectionLimit: Int
    let headLimits: HeadLimits

    init(
        _ service: any HTTPService, _ configuration: ServerConfiguration, accessLog: AccessLogWriter?,
        descriptors: Int = .max
    ) {
        let current = CurrentService(service)
        self.current = current
        self.configuration = configuration
        self.accessLog = accessLog
        time = configuration.time
        logger = configuration.logger
        let limits = configuration.limits
        memory = MemoryBudget(limit: limits.memoryBytes) { current.service.withLock { $0 }.heldBytes }
        clients = ClientTable(limits)
        connectionLimit = min(limits.connections, DescriptorLimit.connections(within: descriptors))
        headLimits = HeadLimits(
            headBytes: limits.headBytes, startLineBytes: limits.requestLineBytes, fields: limits.fieldCount)
    }

    /// What answers. A ``Worker`` has it without a lock.
    var service: any HTTPService {
        get { current.service.withLock { $0 } }
        set { current.service.withLock { $0 = newValue } }
    }

    /// A place that the core and its memory budget share.
    private final class CurrentService: Sendable {
        let service: Mutex<any HTTPService>

        init(_ service: any HTTPService) { self.service = Mutex(service) }
    }

    /// Tells that the system allows fewer connections than configured.
    func tellOfFewerConnections(descriptors: Int) {
        guard connectionLimit < configuration.limits.connections else { return }
        logger.warning(
            """
            serving at most \(connectionLimit) client connections instead of \(configuration.limits.connections), \
            because \(descriptors) files may be open: raise that limit (ulimit -n), or lower the one of connections \
            (--max-connections)
            """, metadata: ["category": "connections"])
    }

    /// Tells that connections are refused, once a minute at most.
    func tellOfRefusal() {
        guard isDue(lastRefusal) else { return }
        // What the configuration allows and the system does not is a mistake; the rest is load.
        let isShort = connectionLimit < configuration.limits.connections
        logger.log(
            level: isShort ? .error : .warning,
            isShort
                ? """
                refusing connections: the limit of open files has no room for more; raise it, or lower the one of \
                connections
                """
                : "refusing connections: the limit of open connections is reached",
            metadata: ["category": "connections", "limit": "\(connectionLimit)"])
    }

    /// Tells that connections are closed because memory is short, once a minute at most.
    func tellOfShedding() {
        guard isDue(lastShedding) else { return }
        logger.warning(
            """
            closing connections: memory for what clients and origins do not take is short; a client that reads nothing \
            may be the cause, or a limit (--memory) that is too low
            """, metadata: ["category": "connections", "limit": "\(memory.limit)"])
    }

    /// Whether a minute has passed; begins another.
    private func isDue(_ time: borrowing Atomic<UInt64>) -> Bool {
        let now = self.time.now().uptimeNanoseconds
        let last = time.load(ordering: .relaxed)
        return (last == 0 || now - min(now, last) >= 60_000_000_000)
            && time.compareExchange(expected: last, desired: now, ordering: .relaxed).exchanged
    }

    /// What is done about a request, whatever version of HTTP brought it.
    func decide(_ request: ServiceRequest, by service: any HTTPService) -> ServiceDecision {
        let decision = service.decide(request)
        // Also of one that was admitted before it waited: what many waited for may be more than there is room for.
        if case .later(let work) = decision, work.isLimited, !memory.admitsRequest() {
            return .own(.retryLater(503, "This server is short of memory; try again later."))
        }
        return decision
    }

    /// A place among the requests of a client that the service works on.
    /// - Parameter isRefused: whether a request without a place is refused, and counted.
    /// - Returns: nil if the client has all that it may; one that is not counted where no limit applies.
    func place(for address: SocketAddress?, isLoopback: Bool, isRefused: Bool = true) -> ClientTable.Place? {
        guard configuration.limits.limitsLoopback || !isLoopback, let client = ClientAddress(address) else {
            return ClientTable.Place()
        }
        return clients.place(for: client, isRefused: isRefused)
    }
}

extension HTTPField.Name {
    static let allow = HTTPField.Name("Allow")!
    static let referer = HTTPField.Name("Referer")!
    static let retryAfter = HTTPField.Name("Retry-After")!
    static let keepAlive = HTTPField.Name("Keep-Alive")!
}
