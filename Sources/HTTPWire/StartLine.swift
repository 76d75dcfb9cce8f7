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

/// What request lines and status lines have in common.
enum StartLine {
    /// `HTTP-version` (RFC 9112 section 2.3); moves `index` behind it.
    static func version(
        _ bytes: UnsafeRawBufferPointer, _ index: inout Int
    ) throws(WireError) -> (major: UInt8, minor: UInt8) {
        guard index &+ 8 <= bytes.count, bytes.equals("HTTP/", at: index..<index &+ 5), bytes[index &+ 5].isDigit,
            bytes[index &+ 6] == UInt8(ascii: "."), bytes[index &+ 7].isDigit
        else { throw .invalidVersion }
        defer { index &+= 8 }
        return (bytes[index &+ 5] &- 0x30, bytes[index &+ 7] &- 0x30)
    }
}
