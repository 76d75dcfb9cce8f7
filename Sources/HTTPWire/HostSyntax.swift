/// `uri-host [ ":" port ]` (RFC 9110 section 7.2, RFC 3986 section 3.2).
enum HostSyntax {
    /// Whether the range is a host that is not empty, and maybe a port. User information has no place in it.
    static func isValid(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, needsPort: Bool = false) -> Bool {
        guard let first = range.first, let hostEnd = hostEnd(bytes, range, isLiteral: bytes[first] == leftBracket),
            hostEnd > first
        else { return false }
        if hostEnd == range.upperBound { return !needsPort }
        guard bytes[hostEnd] == Byte.colon else { return false }
        let port = hostEnd + 1..<range.upperBound
        if port.isEmpty { return !needsPort }
        guard let number = FramingFields.number(bytes, port) else { return false }
        return number <= 65_535
    }

    private static let leftBracket = UInt8(ascii: "[")

    /// Behind the host: at the colon, or the end.
    private static func hostEnd(
        _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, isLiteral: Bool
    ) -> Int? {
        var index = range.lowerBound
        if isLiteral {
            index += 1
            while index < range.upperBound, bytes[index].hexadecimalValue != nil || isLiteralMark(bytes[index]) {
                index += 1
            }
            guard index < range.upperBound, bytes[index] == UInt8(ascii: "]"), index > range.lowerBound + 2 else {
                return nil
            }
            return index + 1
        }
        while index < range.upperBound, bytes[index] != Byte.colon {
            if bytes[index] == UInt8(ascii: "%") {
                guard index + 2 < range.upperBound, bytes[index + 1].hexadecimalValue != nil,
                    bytes[index + 2].hexadecimalValue != nil
                else { return nil }
                index += 3
            } else {
                guard bytes[index].isNameCharacter else { return nil }
                index += 1
            }
        }
        return index
    }

    /// IPv6 with its IPv4 tail. No zone: RFC 9110 has none.
    private static func isLiteralMark(_ byte: UInt8) -> Bool { byte == Byte.colon || byte == UInt8(ascii: ".") }
}

/// A host and the port behind it, if any.
package struct HostAndPort: Hashable, Sendable {
    /// A name, or an address without brackets.
    package let host: String
    package let port: Int?

    /// Reads `host`, `host:port`, `[address]:port`; nil for anything else.
    package init?(_ authority: String) {
        let bytes = Array(authority.utf8)
        guard bytes.withBytes({ HostSyntax.isValid($0, 0..<$0.count) }) else { return nil }
        // The last colon, if it is not one of an address in brackets.
        var host = bytes[...]
        var port: Int?
        if let colon = bytes.lastIndex(of: Byte.colon), !bytes[colon...].contains(UInt8(ascii: "]")) {
            host = bytes[..<colon]
            port = Int(String(decoding: bytes[(colon + 1)...], as: UTF8.self))
        }
        if host.first == UInt8(ascii: "[") { host = host.dropFirst().dropLast() }
        self.host = String(decoding: host, as: UTF8.self)
        self.port = port
    }
}
