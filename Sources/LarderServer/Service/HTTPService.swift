import HTTPTypes
import Larder
import LarderHTTP

/// What answers requests on the connections of a server: an HTTP cache, or an object store.
///
/// The connections, their limits, TLS, the access log, the figures and the way to stop are the server's.
package protocol HTTPService: Sendable {
    /// Decides on a request. On an event loop: it must not wait.
    func decide(_ request: ServiceRequest) -> ServiceDecision

    /// Runs `body` on the answer to a request, if it is at hand; does not otherwise: then ``decide(_:)`` is asked. On
    /// an event loop, for nearly every request.
    /// - Parameter body: copies what it needs, and is quick.
    /// - Returns: the key of the answer, if nothing is stored under it.
    @discardableResult
    func withPlainHit(_ request: PlainRequest, _ body: (ServiceHit) -> Void) -> Key?

    /// A way to the origin for a request whose answer is not at hand; nil where ``decide(_:)`` is to be asked. On an
    /// event loop.
    /// - Parameter key: what ``withPlainHit(_:_:)`` returned.
    func relay(_ request: PlainRequest, _ key: Key) -> ServiceRelay?

    /// The store in use, and how it is.
    var health: StoreHealth { get }

    /// What it holds in memory for requests under way, in bytes, beyond what the connections hold.
    var heldBytes: Int { get }

    /// What it has counted, for `/metrics`.
    var metrics: [ServiceMetric] { get }
}

extension HTTPService {
    package var heldBytes: Int { 0 }
    package var metrics: [ServiceMetric] { [] }
    package func relay(_ request: PlainRequest, _ key: Key) -> ServiceRelay? { nil }
}

/// A request for a service.
package struct ServiceRequest: Sendable {
    /// With scheme and path; the authority is that of `Host`, if the client sent one.
    package var head: HTTPRequest
    /// Whether content follows.
    package var hasContent: Bool
    /// Of the content, in bytes, where the client says so.
    package var contentLength: Int64?
    /// Whether the client is on this machine.
    package var isLoopback: Bool
    /// Whether the target was a whole URL, as clients send it to proxies. HTTP/2 has no other form.
    package var isAbsolute: Bool
    package var isHTTP2: Bool
    /// What was begun without a task, to be continued.
    package var begun: BegunRequest?
}

/// What a service does about a request.
package enum ServiceDecision: Sendable {
    /// It is answered.
    case answer(ServiceAnswer)
    /// It is answered by a task.
    case later(ServiceWork)
    /// It is a tunnel to a host, which may take this long to connect.
    case tunnel(host: String, port: Int, timeout: Duration)

    /// It is answered by a task, which gets the content, and need not read it.
    package static func work(_ run: @escaping @Sendable (RequestBody?) async -> ServiceAnswer) -> ServiceDecision {
        .later(ServiceWork { body, _ in await run(body) })
    }

    package static func own(_ answer: OwnAnswer) -> ServiceDecision { .answer(ServiceAnswer(answer)) }
}

/// What a service does in a task.
package struct ServiceWork: Sendable {
    /// Passes on an interim (1xx) response.
    package typealias Interim = @Sendable (HTTPResponse) async -> Void

    /// Whether it counts among the requests that a client may have at once, and gets the content of the request.
    let isLimited: Bool
    let run: @Sendable (RequestBody?, Interim?) async -> ServiceAnswer

    package init(isLimited: Bool = true, _ run: @escaping @Sendable (RequestBody?, Interim?) async -> ServiceAnswer) {
        self.isLimited = isLimited
        self.run = run
    }
}

/// A figure that only grows.
package struct ServiceMetric: Sendable {
    /// By the rules of Prometheus, with `_total` at its end.
    package var name: String
    package var help: String
    package var value: Int

    package init(_ name: String, _ help: String, _ value: Int) {
        self.name = name
        self.help = help
        self.value = value
    }
}
