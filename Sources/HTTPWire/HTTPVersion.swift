/// The versions whose messages have this syntax.
package enum HTTPVersion: UInt8, Hashable, Sendable {
    case http10 = 0
    case http11 = 1

    /// Whether the connection stays open after a message (RFC 9112 section 9.3).
    /// - Parameters:
    ///   - close: whether `Connection` names `close`.
    ///   - keepAlive: whether `Connection` names `keep-alive`.
    package func persists(close: Bool, keepAlive: Bool) -> Bool {
        if close { return false }
        return self == .http11 || keepAlive
    }
}
