import HTTPTypes
import LarderHTTP

/// An answer of the gateway's own. It says what was wrong and repeats nothing that the client sent.
struct OwnAnswer: Sendable {
    var status: Int
    var fields: HTTPFields
    var body: [UInt8]
    /// The connection cannot be used any more, as where the next request starts is not certain.
    var closes = false

    init(_ status: Int, _ text: String, contentType: String = "text/plain; charset=utf-8", closes: Bool = false) {
        self.status = status
        self.closes = closes
        body = Array((text + "\n").utf8)
        fields = [.contentType: contentType, .cacheControl: "no-store"]
    }

    /// So many requests wait for the origin that no more are taken. RFC 9110 sections 10.2.3 and 15.6.4.
    static var overloaded: OwnAnswer {
        var answer = OwnAnswer(503, "Too many requests wait for the origin.")
        answer.fields[.retryAfter] = "1"
        return answer
    }

    /// Status and fields as a response's head.
    /// - Parameter seconds: the time, since 1970. Who makes an answer dates it: RFC 9110 section 6.6.1.
    func head(at seconds: Int64) -> HTTPResponse {
        var head = HTTPResponse(status: HTTPResponse.Status(code: status).withReason, headerFields: fields)
        head.headerFields[.date] = LogTime.http(seconds)
        return head
    }
}
