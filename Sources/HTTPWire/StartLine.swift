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
