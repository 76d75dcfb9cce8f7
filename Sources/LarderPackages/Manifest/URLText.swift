/// URLs and the names of members that follow from them.
enum URLText {
    /// Percent-encodes all characters of a URL that are not allowed in one, and leaves existing escapes as they are.
    static func encoded(_ url: String) -> String { encode(url) { isAllowed($0) || $0 == UInt8(ascii: "%") } }

    /// The path of a file as a part of a URL (RFC 3986 section 3.3).
    static func encoded(path: String) -> String {
        encode(path) { isAllowed($0) && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
    }

    private static func encode(_ text: String, _ isKept: (UInt8) -> Bool) -> String {
        if text.utf8.allSatisfy(isKept) { return text }
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            if isKept(byte) {
                bytes.append(byte)
            } else {
                bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Unreserved and reserved characters, without brackets and the percent sign.
    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: "-._~!$&'()*+,;=:@/?#".utf8.contains(byte)
        }
    }

    /// The bytes that percent-encoded text stands for; nil if they are not UTF-8.
    static func decoded(_ text: String) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%"), rest.count >= 2,
                let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            else {
                bytes.append(byte)
                continue
            }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    /// A URL below another one, with one slash between.
    static func joined(_ base: String, _ path: String) -> String {
        (base.hasSuffix("/") ? String(base.dropLast()) : base) + "/" + path.drop { $0 == "/" }
    }

    /// A URL that may be relative, or of AFCache's own scheme, below a base.
    static func absolute(_ url: String, below base: String?) -> String {
        guard let base else { return url }
        let ownScheme = "afcpkg://"
        if url.hasPrefix(ownScheme) {
            return joined(base, String(url.dropFirst(ownScheme.count).drop { $0 != "/" }))
        }
        return url.contains("://") ? url : joined(base, url)
    }

    /// Host, without a port, and path of a URL; nil for one without a host.
    static func hostAndPath(_ url: String) -> (host: String, path: String)? {
        guard let mark = url.firstRange(of: "://") else { return nil }
        let rest = url[mark.upperBound...].prefix { $0 != "?" && $0 != "#" }
        let authority = rest.prefix { $0 != "/" }
        var host = authority
        if let colon = authority.lastIndex(of: ":"), !authority[colon...].contains("]") { host = authority[..<colon] }
        return host.isEmpty ? nil : (String(host), String(rest[authority.endIndex...]))
    }

    /// The possible places of the content of a URL in an archive, most likely first: `HOST/PATH` as written, then
    /// decoded, then with fewer of the first segments of the path, because the tools of AFCache left out the path of
    /// the base URL.
    static func memberNames(of url: String, raw: String, below base: String?) -> [String] {
        let absolute = absolute(url, below: base)
        guard let (host, path) = hostAndPath(absolute) else { return [] }
        var names: [String] = []
        func add(_ path: String) {
            names.append(host + path)
            if let decoded = decoded(path), decoded != path { names.append(host + decoded) }
        }
        add(path)
        var rest = path[...]
        // Stop here: no real path has that many segments.
        while names.count < 64, let slash = rest.dropFirst().firstIndex(of: "/") {
            rest = rest[slash...]
            add(String(rest))
        }
        return names
    }
}
