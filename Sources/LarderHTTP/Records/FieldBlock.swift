import HTTPTypes

/// Header fields as they are in an HTTP/1.1 message (RFC 9112 section 5): `name: value` and CR LF for each.
enum FieldBlock {
    /// The fields in their order. Values keep their bytes; no field can bring a line break of its own.
    static func encode(_ fields: HTTPFields) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(fields.count * 40)
        for field in fields {
            var name = field.name.rawName
            name.withUTF8 { bytes.append(contentsOf: $0) }
            bytes.append(UInt8(ascii: ":"))
            bytes.append(UInt8(ascii: " "))
            field.withUnsafeBytesOfValue { value in
                if value.contains(where: isBreak) {
                    for byte in value { bytes.append(isBreak(byte) ? UInt8(ascii: " ") : byte) }
                } else {
                    bytes.append(contentsOf: value)
                }
            }
            bytes.append(0x0D)
            bytes.append(0x0A)
        }
        return bytes
    }

    private static func isBreak(_ byte: UInt8) -> Bool { byte == 0x0D || byte == 0x0A || byte == 0 }

    /// Reads an encoding; nil when a line is not a field.
    static func decode(_ bytes: ArraySlice<UInt8>) -> HTTPFields? {
        var fields = HTTPFields()
        var rest = bytes
        while !rest.isEmpty {
            guard let end = rest.firstIndex(of: 0x0D), end + 1 < rest.endIndex, rest[end + 1] == 0x0A,
                let colon = rest[..<end].firstIndex(of: UInt8(ascii: ":")),
                let name = HTTPField.Name(String(decoding: rest[..<colon], as: UTF8.self))
            else { return nil }
            var start = colon + 1
            if start < end, rest[start] == UInt8(ascii: " ") { start += 1 }
            fields.append(HTTPField(name: name, lenientValue: rest[start..<end]))
            rest = rest[(end + 2)...]
        }
        return fields
    }
}
