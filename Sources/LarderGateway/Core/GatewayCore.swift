import HTTPCaching
import HTTPTypes
import HTTPWire
import LarderHTTP
import Logging
import NIOCore
import Locks

/// What all connections share, and what is done about a request, whatever version of HTTP brought it.
final class GatewayCore: Sendable {
    let configuration: GatewayConfiguration
    let accessLog: AccessLogWriter?
    let time: any GatewayTime
    let logger: Logger
    /// The cache in use: another takes its place where its store had to be opened again.
    private let current: CurrentCache
    /// Client connections, of all event loops.
    let connectionCount = Atomic<Int>(0)
    private let lastRefusal = Atomic<UInt64>(0)
    /// Connections that could not be accepted.
    let acceptFailures = Atomic<Int>(0)
    /// What works for connections, on all event loops.
    let tasks = RunningTasks()
    /// What waits for clients and origins, on all event loops.
    let memory: MemoryBudget
    let clients: ClientTable
    /// Client connections at once: as configured, or fewer where the system allows fewer.
    let connectionLimit: Int
    /// How this gateway is named in `Via`: a request that has it has been here before.
    private let pseudonym: String?
    /// Whether hits may go the short way: one origin for all hosts, and a cache whose keys are URLs.
    let allowsPlainHits: Bool
    /// What answers in place of the cache.
    let service: (any GatewayService)?
    let headLimits: HeadLimits
    /// What follows the age in such a hit, up to the seconds of freshness that are left.
    let hitFields: [UInt8]

    init(
        _ cache: HTTPCache, _ configuration: GatewayConfiguration, service: (any GatewayService)? = nil,
        accessLog: AccessLogWriter?, descriptors: Int = .max
    ) {
        let current = CurrentCache(cache)
        self.current = current
        self.configuration = configuration
        self.service = service
        self.accessLog = accessLog
        time = configuration.time
        logger = configuration.logger
        let limits = configuration.limits
        memory = MemoryBudget(limit: limits.memoryBytes) { current.cache.withLock { $0 }.heldBytes }
        clients = ClientTable(limits)
        connectionLimit = min(limits.connections, DescriptorLimit.connections(within: descriptors))
        headLimits = HeadLimits(
            headBytes: limits.headBytes, startLineBytes: limits.requestLineBytes, fields: limits.fieldCount)
        pseudonym = cache.configuration.viaName
        allowsPlainHits =
            service == nil && configuration.routes.otherwise != nil && cache.hasPlainHits
            && cache.configuration.addsCacheStatus
        var fields = "\r\n"
        if let pseudonym { fields += "Via: 1.1 \(pseudonym)\r\n" }
        let status = CacheStatus(cacheName: cache.configuration.caching.cacheName, outcome: .hit)
        fields += "Cache-Status: \(status.fieldValue); ttl="
        hitFields = Array(fields.utf8)
    }

    /// The cache in use. A ``Worker`` has it without a lock.
    var cache: HTTPCache {
        get { current.cache.withLock { $0 } }
        set { current.cache.withLock { $0 = newValue } }
    }

    /// A place that the core and its memory budget share.
    private final class CurrentCache: Sendable {
        let cache: Mutex<HTTPCache>

        init(_ cache: HTTPCache) { self.cache = Mutex(cache) }
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
        let now = time.now().uptimeNanoseconds
        let last = lastRefusal.load(ordering: .relaxed)
        guard last == 0 || now - min(now, last) >= 60_000_000_000,
            lastRefusal.compareExchange(expected: last, desired: now, ordering: .relaxed).exchanged
        else { return }
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

    /// Decides on a request.
    /// - Parameters:
    ///   - request: with scheme, authority and path; without `Host`. Changed where a proxy has to change it.
    ///   - isAbsolute: whether the target was a whole URL, as clients send it to proxies.
    ///   - isLoopback: whether the client is on this machine.
    ///   - length: of the content, where it is declared.
    func decide(
        _ request: inout HTTPRequest, hasContent: Bool, isAbsolute: Bool, isLoopback: Bool, length: Int64? = nil
    ) -> Decision {
        if let service {
            let asked = ServiceRequest(
                head: request, hasContent: hasContent, contentLength: length, isLoopback: isLoopback)
            return decide(asked, service)
        }
        if request.method == .connect { return tunnel(request) }
        if request.method.rawValue == "PURGE", configuration.purging.isEnabled {
            return purge(request, isLoopback: isLoopback)
        }
        if let answer = refusal(&request, isAbsolute: isAbsolute) { return .own(answer) }
        do throws(FetchError) {
            switch try cache.answer(request, hasContent: hasContent) {
            case .response(let response): return response.isRefusal ? .own(.notStored) : .stored(response)
            case .load(let pending):
                guard memory.admitsRequest() else {
                    return .own(.retryLater(503, "This gateway is short of memory; try again later."))
                }
                return .load(pending)
            }
        } catch {
            return .own(Self.answer(to: error))
        }
    }

    private func decide(_ request: ServiceRequest, _ service: any GatewayService) -> Decision {
        switch service.decide(request) {
        case .answer(let answer): return .stored(answer.response(at: time.wallSeconds()))
        case .work(let work):
            guard memory.admitsRequest() else {
                return .own(.retryLater(503, "This server is short of memory; try again later."))
            }
            return .work(work)
        }
    }

    private func refusal(_ request: inout HTTPRequest, isAbsolute: Bool) -> OwnAnswer? {
        guard let authority = request.authority, !authority.isEmpty else {
            return OwnAnswer(400, "The request names no host.")
        }
        if configuration.routes.origin(for: authority) == nil {
            guard configuration.routes.allowsForwarding else {
                return OwnAnswer(421, "This gateway has no origin for the host of the request.")
            }
            guard isAbsolute else {
                return OwnAnswer(400, "This is a proxy: the target of a request must be a whole URL.")
            }
        }
        if hasBeenHere(request.headerFields) {
            return OwnAnswer(508, "The request has passed this gateway before: its origin leads back to it.")
        }
        return countDown(&request)
    }

    /// RFC 9110 section 7.6.3: "A proxy can use Via to detect loops".
    private func hasBeenHere(_ fields: HTTPFields) -> Bool {
        guard let pseudonym, fields.contains(.via) else { return false }
        return fields[values: .via].contains { value in
            value.split(separator: ",").contains { member in
                let words = member.split(whereSeparator: { $0 == " " || $0 == "\t" })
                return words.count >= 2 && words[1] == pseudonym
            }
        }
    }

    /// RFC 9110 section 7.6.2: TRACE and OPTIONS go no further than `Max-Forwards` says.
    private func countDown(_ request: inout HTTPRequest) -> OwnAnswer? {
        guard request.method == .trace || request.method == .options,
            let value = request.headerFields[.maxForwards], !value.isEmpty,
            value.utf8.allSatisfy({ 48...57 ~= $0 })
        else { return nil }
        // "The updated field value is the lesser of a) the received value decremented by one (1) or b) the recipient's
        // maximum supported value for Max-Forwards."
        let hops = Int(value) ?? 256
        if hops > 0 {
            request.headerFields[.maxForwards] = String(min(hops - 1, 255))
            return nil
        }
        if request.method == .trace { return traced(request) }
        var answer = OwnAnswer(200, "This gateway forwards every method.")
        answer.fields[.allow] = Self.methods
        return answer
    }

    /// RFC 9110 section 9.3.8: the request as received, "excluding some fields" that hold secrets.
    private func traced(_ request: HTTPRequest) -> OwnAnswer {
        var text = "TRACE \(request.path ?? "/") HTTP/1.1\r\nHost: \(request.authority ?? "")\r\n"
        let secrets: [HTTPField.Name] = [.authorization, .proxyAuthorization, .cookie]
        for field in request.headerFields where !secrets.contains(field.name) {
            text += "\(field.name.rawName): \(field.value)\r\n"
        }
        var answer = OwnAnswer(200, "", contentType: "message/http")
        answer.body = Array((text + "\r\n").utf8)
        return answer
    }

    /// The well-known methods, of all that are forwarded.
    private static let methods = "GET, HEAD, POST, PUT, DELETE, OPTIONS, TRACE, PATCH"

    private func tunnel(_ request: HTTPRequest) -> Decision {
        let policy = configuration.tunnels
        guard policy.isAllowed else {
            var answer = OwnAnswer(405, "This gateway does not open tunnels.", closes: true)
            answer.fields[.allow] = Self.methods
            return .own(answer)
        }
        guard let target = Authority.split(request.authority ?? ""), let port = target.port, port > 0 else {
            return .own(OwnAnswer(400, "CONNECT needs a host and a port.", closes: true))
        }
        guard policy.ports.contains(port) else {
            return .own(OwnAnswer(403, "This gateway does not open tunnels to that port.", closes: true))
        }
        var host = target.host
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        return .tunnel(host: host, port: port)
    }

    /// A place among the requests that a client has at origins.
    /// - Returns: nil if the client has all that it may; one that is not counted where no limit applies.
    func place(for address: SocketAddress?, isLoopback: Bool) -> ClientTable.Place? {
        guard configuration.limits.limitsLoopback || !isLoopback, let client = ClientAddress(address) else {
            return ClientTable.Place()
        }
        return clients.place(for: client)
    }

    /// The answer to a client when the origin gave none. RFC 9110 sections 15.6.3 and 15.6.5.
    static func answer(to error: FetchError) -> OwnAnswer {
        switch error.code {
        case .overloaded: .retryLater(503, "Too many requests wait for the origin.")
        case .timedOut: OwnAnswer(504, "The origin did not answer in time.")
        case .notCached: .notStored
        case .invalidURL: OwnAnswer(400, "The target of the request is not a valid URL.")
        case .unknownPolicy, .policyFailed: OwnAnswer(500, "A policy of the cache failed.")
        case .tooLarge: OwnAnswer(502, "The response of the origin is over a limit.")
        case .cancelled: OwnAnswer(503, "The request was cancelled.")
        default: originAnswer(error.transport)
        }
    }

    /// Without names and addresses, which are nothing that clients should know.
    private static func originAnswer(_ error: TransportError?) -> OwnAnswer {
        switch error?.code {
        case .cannotConnect:
            switch error?.connectFailure {
            case .nameNotFound: OwnAnswer(502, "The origin cannot be reached: its name has no address.")
            case .refused: OwnAnswer(502, "The origin cannot be reached: it refuses connections.")
            case .tls: OwnAnswer(502, "The origin cannot be reached: TLS failed.")
            default: OwnAnswer(502, "The origin cannot be reached.")
            }
        case .malformedResponse: OwnAnswer(502, "The origin's response is not valid HTTP.")
        case .responseTooLarge: OwnAnswer(502, "The response of the origin is over a limit.")
        case .closed, .incompleteResponse:
            OwnAnswer(502, "The origin closed the connection before its response was complete.")
        default: OwnAnswer(502, "The origin gave no valid response.")
        }
    }
}

extension HTTPField.Name {
    static let via = HTTPField.Name("Via")!
    static let maxForwards = HTTPField.Name("Max-Forwards")!
    static let allow = HTTPField.Name("Allow")!
    static let purgePrefix = HTTPField.Name("Purge-Prefix")!
    static let purgeGroup = HTTPField.Name("Purge-Group")!
    static let purgeTag = HTTPField.Name("Purge-Tag")!
    static let referer = HTTPField.Name("Referer")!
    static let retryAfter = HTTPField.Name("Retry-After")!
    static let keepAlive = HTTPField.Name("Keep-Alive")!
}
