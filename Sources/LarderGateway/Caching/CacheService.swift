import HTTPCaching
import HTTPTypes
import LarderHTTP
import LarderServer
import Logging

/// An HTTP cache and its origins as what answers requests: reverse proxy, forward proxy, or both.
final class CacheService: HTTPService {
    let cache: HTTPCache
    let configuration: GatewayConfiguration
    let logger: Logger
    /// How this gateway is named in `Via`: a request that has it has been here before.
    private let pseudonym: String?
    /// Whether hits may go the short way: one origin for all hosts, and a cache whose keys are URLs.
    let allowsPlainHits: Bool
    /// What follows the age in such a hit, up to the seconds of freshness that are left.
    let hitFields: [UInt8]

    init(_ cache: HTTPCache, _ configuration: GatewayConfiguration) {
        self.cache = cache
        self.configuration = configuration
        logger = configuration.server.logger
        pseudonym = cache.configuration.viaName
        allowsPlainHits =
            configuration.routes.otherwise != nil && cache.hasPlainHits && cache.configuration.addsCacheStatus
        var fields = "\r\n"
        if let pseudonym { fields += "Via: 1.1 \(pseudonym)\r\n" }
        let status = CacheStatus(cacheName: cache.configuration.caching.cacheName, outcome: .hit)
        fields += "Cache-Status: \(status.fieldValue); ttl="
        hitFields = Array(fields.utf8)
    }

    var health: StoreHealth { cache.health }
    var heldBytes: Int { cache.heldBytes }
    var metrics: [ServiceMetric] {
        [
            ServiceMetric(
                "larder_gateway_relayed_requests_total",
                "GET requests for URLs with nothing stored that took the short way to the origin.",
                cache.relayedCount)
        ]
    }

    func decide(_ asked: ServiceRequest) -> ServiceDecision {
        var (request, isAbsolute) = (asked.head, asked.isAbsolute)
        if asked.isHTTP2 {
            isAbsolute = configuration.mayForward(request)
            // What the client sees of a host that is served here is this scheme.
            if !isAbsolute { request.scheme = "https" }
            guard isAbsolute || configuration.serves(request) else {
                return .own(OwnAnswer(421, "This gateway has no origin for the host of the request."))
            }
        } else if request.authority == nil {
            // HTTP/1.0 clients may leave out the host: the request is for the server's "fixed URI authority" (RFC 9112
            // section 3.3), the origin of all hosts.
            request.authority = configuration.routes.otherwise?.authority
        }
        if request.method == .connect { return tunnel(request) }
        if request.method.rawValue == "PURGE", configuration.purging.isEnabled {
            return purge(request, isLoopback: asked.isLoopback)
        }
        if let answer = refusal(&request, isAbsolute: isAbsolute) { return .own(answer) }
        do throws(FetchError) {
            switch try cache.answer(request, hasContent: asked.hasContent) {
            case .response(let response): return .answer(ServiceAnswer(StoredCoding.answer(response, to: request)))
            case .load(let pending): return .later(load(pending, request, continuing: asked.begun?.load))
            }
        } catch {
            return .own(Self.answer(to: error))
        }
    }

    /// Asks the origin.
    private func load(_ pending: LoadRequest, _ request: HTTPRequest, continuing begun: BegunLoad?) -> ServiceWork {
        ServiceWork { [cache] body, interim in
            do throws(FetchError) {
                let response = try await cache.load(
                    pending, body: body, continuing: begun, onInformational: interim)
                return ServiceAnswer(StoredCoding.answer(response, to: request))
            } catch {
                return ServiceAnswer(Self.answer(to: error), isOriginFault: error.transport != nil)
            }
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
        if request.headerFields.contains(.via), hasBeenHere(request.headerFields[values: .via]) {
            return OwnAnswer(508, "The request has passed this gateway before: its origin leads back to it.")
        }
        return countDown(&request)
    }

    /// RFC 9110 section 7.6.3: "A proxy can use Via to detect loops".
    /// - Parameter via: the values of `Via`.
    func hasBeenHere(_ via: [String]) -> Bool {
        guard let pseudonym else { return false }
        return via.contains { value in
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

    private func tunnel(_ request: HTTPRequest) -> ServiceDecision {
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
        return .tunnel(host: host, port: port, timeout: policy.connectTimeout)
    }
}

extension HTTPField.Name {
    static let via = HTTPField.Name("Via")!
    fileprivate static let maxForwards = HTTPField.Name("Max-Forwards")!
}

extension GatewayConfiguration {
    /// Whether the host has an origin here. A PURGE has none to go to.
    fileprivate func serves(_ request: HTTPRequest) -> Bool {
        routes.origin(for: request.authority ?? "") != nil
            || (request.method.rawValue == "PURGE" && purging.isEnabled)
    }

    /// Whether the request is one for a forward proxy. HTTP/2 has the same form for those and for requests to a server,
    /// so that a host without an origin here would be all it takes to reach any server: the operator has to want that.
    fileprivate func mayForward(_ request: HTTPRequest) -> Bool {
        routes.allowsForwarding && server.tls?.allowsForwarding == true
            && (request.scheme == "http" || request.scheme == "https")
            && routes.origin(for: request.authority ?? "") == nil
    }
}
