import HTTPTypes
import LarderHTTP

/// The answer of a service.
package struct ServiceAnswer: Sendable {
    enum Content: Sendable {
        /// The server's own, about the request.
        case own(OwnAnswer)
        case response(FetchResponse)
    }

    let content: Content
    /// Whether it may come from an origin. Others need no memory of a load, and have no date yet.
    let mayArrive: Bool
    /// Whether a server that was asked for it is to blame.
    private(set) var isOriginFault = false

    /// - Parameter isHit: whether the content is from the store, which the figures count as a hit.
    package init(_ status: Int, _ fields: HTTPFields = [:], body: ResponseBody = .empty, isHit: Bool = false) {
        let head = HTTPResponse(status: HTTPResponse.Status(code: status).withReason, headerFields: fields)
        content = .response(FetchResponse(head: head, body: body, source: isHit ? .hit : .network))
        mayArrive = false
    }

    /// An answer with a line of text.
    package init(_ status: Int, text: String, _ fields: HTTPFields = [:]) {
        var fields = fields
        fields[.contentType] = "text/plain; charset=utf-8"
        self.init(status, fields, body: ResponseBody([.bytes(Array((text + "\n").utf8))]))
    }

    package init(_ answer: OwnAnswer, isOriginFault: Bool = false) {
        content = .own(answer)
        self.isOriginFault = isOriginFault
        mayArrive = false
    }

    /// A response of the cache.
    package init(_ response: FetchResponse) {
        content = response.isRefusal ? .own(.notStored) : .response(response)
        isOriginFault = response.originError != nil
        mayArrive = true
    }

    /// With a date: the sender of an answer adds `Date` (RFC 9110 section 6.6.1).
    /// - Parameter seconds: the time, since 1970.
    func dated(at seconds: @autoclosure () -> Int64) -> Content {
        guard !mayArrive, case .response(var response) = content, !response.head.headerFields.contains(.date) else {
            return content
        }
        response.head.headerFields[.date] = LogTime.http(seconds())
        return .response(response)
    }
}
