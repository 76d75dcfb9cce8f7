/// How the end of a message's content is found (RFC 9112 section 6).
package enum BodyFraming: Hashable, Sendable {
    /// The message ends with its head.
    case none
    /// `Content-Length`.
    case length(Int64)
    /// `Transfer-Encoding: chunked`.
    case chunked
    /// A response that the end of the connection ends.
    case untilClose
    /// A successful response to CONNECT: what follows is no message.
    case tunnel
}
