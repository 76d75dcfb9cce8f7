import HTTPWire
import NIOHPACK

/// The head of a request over HTTP/2 as the bytes of lines, which ``PlainRequest`` reads. Kept from one request to the
/// next for its room.
struct PlainRequestBytes {
    private var bytes: [UInt8] = []
    private var lines: [FieldLine] = []

    init() { bytes.reserveCapacity(1_024) }

    /// Runs `body` on the request of a head, if it is a plain one, and nothing about it is unusual. Does not otherwise.
    mutating func withRequest(
        _ fields: HPACKHeaders, limits: HeadLimits, _ body: (PlainRequest) -> Void
    ) {
        bytes.removeAll(keepingCapacity: true)
        lines.removeAll(keepingCapacity: true)
        guard fields.count <= limits.fields, let parts = read(fields, limits) else { return }
        bytes.withUnsafeBytes { bytes in
            let request = PlainRequest(
                bytes, lines, authority: parts.authority, path: parts.path, isHead: parts.isHead, isPlaintext: false)
            if let request { body(request) }
        }
    }

    private mutating func read(
        _ fields: HPACKHeaders, _ limits: HeadLimits
    ) -> (authority: Range<Int>, path: Range<Int>, isHead: Bool)? {
        var isHead: Bool?
        var hasScheme = false
        var authority: Range<Int>?
        var path: Range<Int>?
        for (name, value, _) in fields {
            switch name {
            case ":method":
                guard isHead == nil, lines.isEmpty, value == "GET" || value == "HEAD" else { return nil }
                isHead = value == "HEAD"
            case ":scheme":
                guard !hasScheme, lines.isEmpty, value == "https" else { return nil }
                hasScheme = true
            case ":authority":
                guard authority == nil, lines.isEmpty else { return nil }
                authority = append(value)
            case ":path":
                guard path == nil, lines.isEmpty else { return nil }
                path = append(value)
            default:
                guard appendLine(name, value) else { return nil }
            }
        }
        guard let isHead, hasScheme, let authority, let path, isHost(authority), path.count <= limits.startLineBytes,
            bytes.count + 32 * fields.count + 64 <= limits.headBytes, isTarget(path)
        else { return nil }
        return (authority, path, isHead)
    }

    /// Whether it is a name or an address with nothing unusual in it.
    private func isHost(_ authority: Range<Int>) -> Bool {
        !authority.isEmpty
            && bytes[authority].allSatisfy { 0x61...0x7A ~= $0 || 0x30...0x3A ~= $0 || $0 == 0x2D || $0 == 0x2E }
    }

    private func isTarget(_ path: Range<Int>) -> Bool {
        guard !path.isEmpty, bytes[path.lowerBound] == UInt8(ascii: "/") else { return false }
        return bytes[path].allSatisfy { 0x21...0x7E ~= $0 && $0 != UInt8(ascii: "#") }
    }

    /// Returns false for a field that only the long way understands.
    private mutating func appendLine(_ name: String, _ value: String) -> Bool {
        let name = append(name)
        let value = append(value)
        let line = FieldLine(name: name, value: value)
        let isUsual = bytes.withUnsafeBytes { bytes in
            guard Self.isName(UnsafeRawBufferPointer(rebasing: bytes[name])),
                Self.isValue(UnsafeRawBufferPointer(rebasing: bytes[value]))
            else { return false }
            switch name.count {
            case 2: return !bytes.spells("te", at: name)
            case 4: return !bytes.spells("host", at: name)
            case 6: return !bytes.spells("expect", at: name) && !(bytes.spells("cookie", at: name) && hasCookie(bytes))
            case 7: return !bytes.spells("upgrade", at: name)
            case 10: return !bytes.spells("connection", at: name) && !bytes.spells("keep-alive", at: name)
            case 14: return !bytes.spells("content-length", at: name)
            case 16: return !bytes.spells("proxy-connection", at: name)
            case 17: return !bytes.spells("transfer-encoding", at: name)
            default: return true
            }
        }
        lines.append(line)
        return isUsual
    }

    /// Several have to be joined (RFC 9113 section 8.2.3).
    private func hasCookie(_ bytes: UnsafeRawBufferPointer) -> Bool {
        lines.contains { bytes.spells("cookie", at: $0.name) }
    }

    /// Letters in lower case, digits and what most names have: others take the long way, which judges them.
    private static func isName(_ name: UnsafeRawBufferPointer) -> Bool {
        !name.isEmpty && name.allSatisfy { 0x61...0x7A ~= $0 || 0x30...0x39 ~= $0 || $0 == 0x2D || $0 == 0x5F }
    }

    private static func isValue(_ value: UnsafeRawBufferPointer) -> Bool {
        guard let first = value.first, let last = value.last else { return true }
        return first != 0x20 && last != 0x20 && value.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }

    private mutating func append(_ text: String) -> Range<Int> {
        let start = bytes.count
        var text = text
        text.withUTF8 { bytes.append(contentsOf: $0) }
        return start..<bytes.count
    }
}
