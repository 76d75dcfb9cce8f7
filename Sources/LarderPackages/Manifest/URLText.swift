/// URLs and the names of members that follow from them.
enum URLText {
    /// Percent-encodes all characters of a URL that are not allowed in one, and leaves existing escapes as they are.
    /// The brackets of an IPv6 address stay, too.
    static func encoded(_ url: String) -> String {
        let literal = addressLiteral(url)
        let head = String(decoding: url.utf8[..<literal.lowerBound], as: UTF8.self)
        let tail = String(decoding: url.utf8[literal.upperBound...], as: UTF8.self)
        func encode(_ text: String) -> String { self.encode(text) { isAllowed($0) || $0 == UInt8(ascii: "%") } }
        return encode(head) + String(decoding: url.utf8[literal], as: UTF8.self) + encode(tail)
    }

    /// Where the address in brackets is; empty if the host is a name.
    private static func addressLiteral(_ url: String) -> Range<String.Index> {
        let bytes = url.utf8
        let none = bytes.startIndex..<bytes.startIndex
        guard let mark = bytes.firstRange(of: "://".utf8) else { return none }
        let rest = bytes[mark.upperBound...]
        guard rest.first == UInt8(ascii: "["),
            let end = rest.dropFirst().firstIndex(where: { !isHexadecimal($0) && !":.".utf8.contains($0) }),
            bytes[end] == UInt8(ascii: "]")
        else { return none }
        return mark.upperBound..<bytes.index(after: end)
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte | 0x20)
    }

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
            guard byte == UInt8(ascii: "%"), rest.count >= 2, rest.prefix(2).allSatisfy(isHexadecimal),
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
        let base = base.utf8.last == UInt8(ascii: "/") ? String(base.utf8.dropLast())! : base
        return base + "/" + String(path.utf8.drop { $0 == UInt8(ascii: "/") })!
    }

    /// AFCache's own scheme, and the host that its packager writes if it is given no base URL.
    private static let ownScheme = "afcpkg://"
    private static let ownHost = "localhost"
    /// What stands for that host in a cache of HTTP responses. It is also the default of `package create`.
    private static let ownBase = "http://localhost"

    /// A URL that may be relative, or of AFCache's own scheme, below a base. Nil as the base: URLs of that scheme are
    /// below `http://localhost`.
    /// - Returns: the URL; nil for one of AFCache's scheme without a slash between host and path.
    static func absolute(_ url: String, below base: String?) -> String? {
        if url.hasPrefix(ownScheme) {
            var rest = url.utf8.dropFirst(ownScheme.utf8.count)
            if rest.starts(with: ownHost.utf8) {
                // The packager adds the name of a file to its base, and puts no slash between.
                rest = rest.dropFirst(ownHost.utf8.count)
            } else if let slash = rest.firstIndex(of: UInt8(ascii: "/")) {
                rest = rest[slash...]
            } else {
                return nil
            }
            let below = base.flatMap { $0.hasPrefix(ownScheme) ? absolute($0, below: nil) : $0 }
            return joined(below ?? ownBase, String(rest)!)
        }
        guard let base, url.firstRange(of: "://") == nil else { return url }
        return absolute(joined(base, url), below: nil)
    }

    /// Host, without a port, and path of a URL; nil for one without a host.
    static func hostAndPath(_ url: String) -> (host: String, path: String)? {
        let bytes = url.utf8
        guard let mark = bytes.firstRange(of: "://".utf8) else { return nil }
        let rest = bytes[mark.upperBound...].prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        let authority = rest.prefix { $0 != UInt8(ascii: "/") }
        var host = authority
        if let colon = authority.lastIndex(of: UInt8(ascii: ":")), !authority[colon...].contains(UInt8(ascii: "]")) {
            host = authority[..<colon]
        }
        return host.isEmpty ? nil : (String(host)!, String(rest[authority.endIndex...])!)
    }

    /// The possible places of the content of a URL in an archive, most likely first: `HOST/PATH` as written, then
    /// decoded, then with fewer of the first segments of the path, because the tools of AFCache left out the path of
    /// the base URL.
    static func memberNames(of url: String, below base: String?) -> [String] {
        // As it is written: the files of AFCache's packager have the names of its URLs.
        let isOwn = url.hasPrefix(ownScheme)
        guard let whole = isOwn ? url : absolute(url, below: base), let (host, path) = hostAndPath(whole) else {
            return []
        }
        var names: [String] = []
        func add(_ path: String) {
            names.append(host + path)
            if let decoded = decoded(path), decoded != path { names.append(host + decoded) }
        }
        add(path)
        if isOwn, let whole = absolute(url, below: nil), let (host, path) = hostAndPath(whole), host == ownHost {
            for name in [host + path, String(path.utf8.dropFirst())!] where !names.contains(name) { names.append(name) }
        }
        var rest = path[...]
        // Stop here: no real path has that many segments.
        while names.count < 64, let slash = rest.dropFirst().firstIndex(of: "/") {
            rest = rest[slash...]
            add(String(rest))
        }
        return names
    }
}
