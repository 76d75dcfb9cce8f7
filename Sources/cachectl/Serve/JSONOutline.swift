/// The lines of the members of a JSON object (RFC 8259), and the position of the first syntax error. Foundation's
/// decoder reports neither.
struct JSONOutline {
    /// The line of each member, starting at 1; the first line if a name occurs twice.
    private(set) var lines: [String: Int] = [:]
    /// The first name that occurs a second time, and where. RFC 8259 leaves open which member counts.
    private(set) var repeated: (name: String, line: Int)?
    /// The position of the first syntax error, starting at 1; nil if there is none.
    private(set) var fault: (line: Int, column: Int)?

    private struct Fault: Error {}
    private static let deepest = 64

    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        do throws(Fault) {
            try value(depth: 0)
            skipSpace()
            if position < bytes.count { throw Fault() }
        } catch {
            let before = bytes[..<min(position, bytes.count)]
            fault = (line(of: position), before.reversed().prefix { $0 != 10 }.count + 1)
        }
    }

    private func line(of position: Int) -> Int { 1 + bytes.prefix(position).count { $0 == 10 } }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipSpace() {
        while let byte = next, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { position += 1 }
    }

    private mutating func take(_ character: Unicode.Scalar) throws(Fault) {
        guard next == UInt8(ascii: character) else { throw Fault() }
        position += 1
    }

    private mutating func value(depth: Int) throws(Fault) {
        skipSpace()
        switch next {
        case UInt8(ascii: "{") where depth < Self.deepest:
            try list(until: "}") { (outline) throws(Fault) in
                let line = outline.line(of: outline.position)
                let name = try outline.string()
                if depth == 0, outline.lines[name] == nil {
                    outline.lines[name] = line
                } else if depth == 0, outline.repeated == nil {
                    outline.repeated = (name, line)
                }
                outline.skipSpace()
                try outline.take(":")
                try outline.value(depth: depth + 1)
            }
        case UInt8(ascii: "[") where depth < Self.deepest:
            try list(until: "]") { (outline) throws(Fault) in try outline.value(depth: depth + 1) }
        case UInt8(ascii: "\""): _ = try string()
        default: try word()
        }
    }

    private mutating func list(
        until end: Unicode.Scalar, _ member: (inout JSONOutline) throws(Fault) -> Void
    ) throws(Fault) {
        position += 1
        skipSpace()
        if next == UInt8(ascii: end) { return position += 1 }
        while true {
            skipSpace()
            try member(&self)
            skipSpace()
            if next == UInt8(ascii: end) { return position += 1 }
            try take(",")
        }
    }

    /// Does not decode escapes, because no name of a setting has any.
    private mutating func string() throws(Fault) -> String {
        try take("\"")
        let start = position
        while let byte = next, byte != UInt8(ascii: "\"") {
            guard byte >= 0x20 else { throw Fault() }
            position += byte == UInt8(ascii: "\\") ? 2 : 1
        }
        let text = String(decoding: bytes[min(start, bytes.count)..<min(position, bytes.count)], as: UTF8.self)
        try take("\"")
        return text
    }

    /// A number, `true`, `false` or `null`.
    private mutating func word() throws(Fault) {
        let start = position
        while let byte = next, byte > 0x20, !",]}:\"[{".utf8.contains(byte) { position += 1 }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        let isNumber = text.utf8.first.map { $0 == UInt8(ascii: "-") || (48...57).contains($0) } ?? false
        if ["true", "false", "null"].contains(text) || isNumber && Double(text) != nil { return }
        position = start
        throw Fault()
    }
}
