import HTTPTypes
import Larder
import LarderHTTP

/// What answers requests on the connections of a gateway in place of a cache and its origins.
///
/// The connections, their limits, TLS, the access log, the figures and the way to stop are the gateway's.
package protocol GatewayService: Sendable {
    /// Decides on a request. On an event loop: it must not wait.
    func decide(_ request: ServiceRequest) -> ServiceDecision

    /// Runs `body` on the answer to a plain GET, without credentials, preconditions and ranges, if it is at hand and
    /// has status 200; does not otherwise: then ``decide(_:)`` is asked. On an event loop, for nearly every request.
    /// - Parameters:
    ///   - target: as the client sent it, in origin form.
    ///   - body: copies what it needs, and is quick.
    func withPlainHit(_ target: UnsafeRawBufferPointer, _ body: (ServiceHit) -> Void)

    /// What it has counted, for `/metrics`.
    var metrics: [ServiceMetric] { get }
}

/// An answer that is at hand. Valid inside the call it is handed to only.
package struct ServiceHit {
    /// Fields as they go over the connection, without `Date` and `Content-Length`: `name: value` and CR LF for each.
    package var fields: [UInt8]
    package var content: PlainHit.Content
    /// Of the content, in bytes.
    package var length: Int64

    package init(fields: [UInt8], content: PlainHit.Content, length: Int64) {
        self.fields = fields
        self.content = content
        self.length = length
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

/// A request for a service.
package struct ServiceRequest: Sendable {
    /// With path; the authority is that of `Host`, if the client sent one.
    package var head: HTTPRequest
    /// Whether content follows.
    package var hasContent: Bool
    /// Of the content, in bytes, where the client says so.
    package var contentLength: Int64?
    /// Whether the client is on this machine.
    package var isLoopback: Bool
}

/// What a service does about a request.
package enum ServiceDecision: Sendable {
    /// It is answered.
    case answer(ServiceAnswer)
    /// It is answered by a task. The closure gets the content, which it need not read.
    case work(@Sendable (RequestBody?) async -> ServiceAnswer)
}

/// The answer of a service.
package struct ServiceAnswer: Sendable {
    package var head: HTTPResponse
    package var body: ResponseBody
    /// Whether the content is from the store, which the figures count as a hit.
    package var isHit: Bool

    package init(_ status: Int, _ fields: HTTPFields = [:], body: ResponseBody = .empty, isHit: Bool = false) {
        head = HTTPResponse(status: HTTPResponse.Status(code: status).withReason, headerFields: fields)
        self.body = body
        self.isHit = isHit
    }

    /// An answer with a line of text.
    package init(_ status: Int, text: String, _ fields: HTTPFields = [:]) {
        self.init(status, fields, body: ResponseBody([.bytes(Array((text + "\n").utf8))]))
        head.headerFields[.contentType] = "text/plain; charset=utf-8"
    }
}

extension ServiceAnswer {
    /// As the responders take it.
    /// - Parameter seconds: the time, since 1970: who makes an answer dates it (RFC 9110 section 6.6.1).
    func response(at seconds: Int64) -> FetchResponse {
        var head = head
        if !head.headerFields.contains(.date) { head.headerFields[.date] = LogTime.http(seconds) }
        return FetchResponse(head: head, body: body, source: isHit ? .hit : .network)
    }
}
