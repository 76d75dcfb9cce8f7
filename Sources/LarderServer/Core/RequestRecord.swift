import LarderHTTP
import NIOCore

/// What is remembered of a request until it is over, for counters and log.
struct RequestRecord {
    var start: NIODeadline
    var methodIndex: Int
    var status = 0
    var source: FetchResponse.Source?
    var bytesSent: Int64 = 0
    /// The client left, or the origin broke off, before the response was complete.
    var isIncomplete = false
    /// What the log says of the request; nil where there is none.
    var logged: LoggedRequest?

    init(start: NIODeadline, methodIndex: Int, logged: LoggedRequest?) {
        self.start = start
        self.methodIndex = methodIndex
        self.logged = logged
    }
}

/// What the log says of a request.
final class LoggedRequest: Sendable {
    let client: String
    let method: String
    /// The target as the client sent it, or the URL.
    let target: String
    /// The version of HTTP, for instance `HTTP/1.1`.
    let version: String
    let host: String
    let referer: String
    let userAgent: String

    init(
        client: String, method: String, target: String, version: String, host: String = "", referer: String = "",
        userAgent: String = ""
    ) {
        self.client = client
        self.method = method
        self.target = target
        self.version = version
        self.host = host
        self.referer = referer
        self.userAgent = userAgent
    }
}
