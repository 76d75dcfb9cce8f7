/// The parts of a URI reference (RFC 3986 section 4.1), split without decoding anything.
struct URIReference: Equatable {
    var scheme: String?
    var authority: String?
    var path: String
    var query: String?

    /// Splits a reference; the fragment is dropped. Nil when it holds bytes that no URI holds.
    init?(_ bytes: [UInt8]) {
        guard bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x3C && $0 != 0x3E && $0 != 0x5C })
        else { return nil }
        var rest = bytes[...]
        if let hash = rest.firstIndex(of: UInt8(ascii: "#")) { rest = rest[..<hash] }
        if let colon = rest.firstIndex(of: UInt8(ascii: ":")), Self.isScheme(rest[..<colon]) {
            scheme = Self.text(FieldBytes.lowercased(rest[..<colon]))
            rest = rest[(colon + 1)...]
        }
        if let mark = rest.firstIndex(of: UInt8(ascii: "?")) {
            query = Self.text(rest[(mark + 1)...])
            rest = rest[..<mark]
        }
        if rest.starts(with: [0x2F, 0x2F]) {
            rest = rest.dropFirst(2)
            let end = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
            authority = Self.text(rest[..<end])
            rest = rest[end...]
        }
        path = Self.text(rest)
    }

    private init(scheme: String?, authority: String?, path: String, query: String?) {
        self.scheme = scheme
        self.authority = authority
        self.path = path
        self.query = query
    }

    private static func text(_ bytes: some Collection<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }

    private static func isScheme(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard let first = bytes.first, FieldBytes.lowercased(first) >= 0x61, FieldBytes.lowercased(first) <= 0x7A else {
            return false
        }
        return bytes.allSatisfy { byte in
            let lower = FieldBytes.lowercased(byte)
            return (lower >= 0x61 && lower <= 0x7A) || FieldBytes.isDigit(byte) || byte == 0x2B || byte == 0x2D
                || byte == 0x2E
        }
    }

    /// This reference against a base (RFC 3986 section 5.2.2).
    func resolved(against base: URIReference) -> URIReference {
        if scheme != nil {
            return URIReference(scheme: scheme, authority: authority, path: Self.removingDots(path), query: query)
        }
        if authority != nil {
            return URIReference(scheme: base.scheme, authority: authority, path: Self.removingDots(path), query: query)
        }
        if path.isEmpty {
            return URIReference(
                scheme: base.scheme, authority: base.authority, path: base.path, query: query ?? base.query)
        }
        var merged = path
        if !path.utf8.starts(with: [0x2F]) {
            let directory = base.path.utf8.lastIndex(of: 0x2F).map { String(base.path[...$0]) } ?? "/"
            merged = directory + path
        }
        return URIReference(
            scheme: base.scheme, authority: base.authority, path: Self.removingDots(merged), query: query)
    }

    /// RFC 3986 section 5.2.4.
    private static func removingDots(_ path: String) -> String {
        guard path.utf8.contains(0x2E) else { return path }
        var output: [Substring.UTF8View] = []
        let segments = path.utf8.split(separator: 0x2F, omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            if segment.elementsEqual([0x2E]) || segment.elementsEqual([0x2E, 0x2E]) {
                if segment.count == 2, output.count > 1 { output.removeLast() }
                if isLast { output.append("".dropFirst().utf8) }
            } else {
                output.append(segment)
            }
        }
        return output.map { String(Substring($0)) }.joined(separator: "/")
    }
}
