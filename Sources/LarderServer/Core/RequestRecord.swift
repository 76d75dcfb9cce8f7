import HTTPTypes
import LarderHTTP
import NIOCore

/// What is remembered of a request until it is over, for counters and log.
struct RequestRecord {
    var start: NIODeadline
    var client: String
    var method: String
    var methodIndex: Int
    /// The target as the client sent it, or the URL.
    var target: String
    /// The version of HTTP, for instance `HTTP/1.1`.
    var version: String
    var host = ""
    var referer = ""
    var userAgent = ""
    var status = 0
    var source: FetchResponse.Source?
    var bytesSent: Int64 = 0
    /// The client left, or the origin broke off, before the response was complete.
    var isIncomplete = false
}
