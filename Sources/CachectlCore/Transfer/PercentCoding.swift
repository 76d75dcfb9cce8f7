/// Percent-encoding of path components (RFC 3986, sections 2.1 and 3.3).
package enum PercentCoding {
    /// Encodes a file name as one component of a URL's path: all bytes except `pchar`.
    package static func encode(_ name: [UInt8]) -> [UInt8] { encode(name, keeping: isPathCharacter) }

    /// Encodes all bytes except those that the caller keeps.
    package static func encode(_ bytes: [UInt8], keeping isKept: (UInt8) -> Bool) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        for byte in bytes {
            if isKept(byte) {
                result.append(byte)
            } else {
                result += [percent, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return result
    }

    /// Decodes `%41` and so on. A `%` without two hexadecimal digits after it stands for itself.
    package static func decode(_ component: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(component.count)
        var index = 0
        while index < component.count {
            if component[index] == percent, index + 2 < component.count, let high = value(component[index + 1]),
                let low = value(component[index + 2])
            {
                result.append(high << 4 | low)
                index += 3
            } else {
                result.append(component[index])
                index += 1
            }
        }
        return result
    }

    package static let percent = UInt8(ascii: "%")
    private static let digits = Array("0123456789ABCDEF".utf8)
    private static let pathCharacters = characters("-._~!$&'()*+,;=:@")

    /// RFC 3986 `pchar` without the percent sign: unreserved, sub-delims, `:` and `@`.
    private static func isPathCharacter(_ byte: UInt8) -> Bool { pathCharacters[Int(byte)] }

    /// For each byte, whether it is an ASCII letter or digit, or one of some others.
    static func characters(_ others: String) -> [Bool] {
        (0...255).map { byte in
            switch UInt8(byte) {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: others.utf8.contains(UInt8(byte))
            }
        }
    }

    private static func value(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
