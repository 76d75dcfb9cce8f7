import HTTPTypes
import LarderHTTP

/// An answer of the server's own. It says what was wrong and repeats nothing that the client sent.
package struct OwnAnswer: Sendable {
    var status: Int
    package var fields: HTTPFields
    package var body: [UInt8]
    /// The connection cannot be used any more, as where the next request starts is not certain.
    var closes = false

    package init(
        _ status: Int, _ text: String, contentType: String = "text/plain; charset=utf-8", closes: Bool = false
    ) {
        self.status = status
        self.closes = closes
        body = Array((text + "\n").utf8)
        fields = [.contentType: contentType, .cacheControl: "no-store"]
    }

    /// The answer to a client that has as many requests at origins as it may.
    static var tooManyRequests: OwnAnswer { retryLater(429, "Too many requests at once; try again later.") }

    /// The answer to a request that only the store may answer.
    package static var notStored: OwnAnswer {
        OwnAnswer(504, "The response is not stored, and the origin may not be asked.")
    }

    /// An answer that asks the client to come again in a second.
    package static func retryLater(_ status: Int, _ text: String) -> OwnAnswer {
        var answer = OwnAnswer(status, text)
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
