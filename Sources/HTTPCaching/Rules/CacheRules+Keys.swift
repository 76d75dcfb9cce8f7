import HTTPTypes

/// Primary cache keys: RFC 9111 section 2, RFC 9110 sections 4.2.3 and 7.1.
extension CacheRules {
    /// The primary key of a request.
    ///
    /// The URI is made of scheme (`http` if missing), authority (or the `Host` field) and path. Nil if no response can
    /// be stored for the request's target: an authority or asterisk form, more than one `Host`, user information, or a
    /// broken authority.
    ///
    /// - Parameter request: its method is a part of the key if it is one of ``CachingOptions/extraMethods``.
    /// - Returns: the key; nil for a target for which nothing is stored.
    public func cacheKey(for request: HTTPRequest) -> CacheKey? {
        let method = request.method.rawValue
        let authority: String
        if let given = request.authority {
            authority = given
        } else {
            let hosts = request.headerFields[values: .hostField]
            guard hosts.count == 1 else { return nil }
            authority = hosts[0]
        }
        guard let path = request.path, !path.utf8.contains(UInt8(ascii: "#")),
            let origin = Self.origin(scheme: request.scheme ?? "http", authority: authority)
        else { return nil }
        let target: String
        switch path.utf8.first {
        case UInt8(ascii: "/"): target = path
        case UInt8(ascii: "?"): target = "/" + path
        case nil: target = "/"
        default: return nil
        }
        return CacheKey(origin: origin, target: target, method: options.extraMethods.contains(method) ? method : nil)
    }

    /// The key of a URI reference found in a response, resolved against the target; nil when it is not an HTTP URI, or
    /// broken.
    func cacheKey(of reference: [UInt8], relativeTo base: CacheKey) -> CacheKey? {
        guard let reference = URIReference(reference), let baseReference = URIReference(Array(base.uri.utf8)) else {
            return nil
        }
        let uri = reference.resolved(against: baseReference)
        guard let scheme = uri.scheme, let authority = uri.authority,
            let origin = Self.origin(scheme: scheme, authority: authority)
        else {
            return nil
        }
        let path = uri.path.isEmpty ? "/" : uri.path
        guard path.utf8.first == UInt8(ascii: "/") else { return nil }
        return CacheKey(origin: origin, target: uri.query.map { "\(path)?\($0)" } ?? path)
    }

    /// Scheme, host and port in their normal form (RFC 9110 section 4.2.3): lower case, default port left out.
    static func origin(scheme: String, authority: String) -> String? {
        var prefix = scheme
        if scheme != "http" && scheme != "https" {
            prefix = String(decoding: FieldBytes.lowercased(scheme.utf8), as: UTF8.self)
            guard prefix == "http" || prefix == "https" else { return nil }
        }
        guard !authority.isEmpty else { return nil }
        if isNormal(authority, isTLS: prefix == "https") { return prefix + "://" + authority }
        for byte in authority.utf8 {
            switch byte {
            case 0x00...0x20, 0x7F..., UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"), UInt8(ascii: "@"),
                UInt8(ascii: "\\"), UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: ","):
                return nil
            default: continue
            }
        }
        var host = FieldBytes.lowercased(authority.utf8)
        var port: [UInt8] = []
        // The colon of a port is the last one, and behind the bracket of an IPv6 address.
        if let colon = host.lastIndex(of: UInt8(ascii: ":")), !host[colon...].contains(UInt8(ascii: "]")) {
            let digits = host[(colon + 1)...]
            guard let number = digits.isEmpty ? 0 : FieldBytes.number(digits, ceiling: 1_000_000), number <= 65_535
            else {
                return nil
            }
            if !digits.isEmpty && number != (prefix == "http" ? 80 : 443) { port = Array(":\(number)".utf8) }
            host = Array(host[..<colon])
        }
        let isBracketed = host.first == UInt8(ascii: "[") && host.last == UInt8(ascii: "]")
        guard !host.isEmpty, isBracketed || !host.contains(where: { ":[]".utf8.contains($0) }) else { return nil }
        return prefix + "://" + String(decoding: host + port, as: UTF8.self)
    }

    /// Whether an authority is in its normal form, as nearly all are: a name or an IPv4 address, and a port that is not
    /// the default.
    private static func isNormal(_ authority: String, isTLS: Bool) -> Bool {
        var authority = authority
        return authority.withUTF8 { bytes in
            let host = bytes.prefix { byte in
                switch byte {
                case 0x61...0x7A, 0x30...0x39, UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"): true
                default: false
                }
            }
            if host.isEmpty || host.count == bytes.count { return !host.isEmpty }
            let port = bytes[host.count...].dropFirst()
            guard bytes[host.count] == UInt8(ascii: ":"), port.count <= 5, port.first != UInt8(ascii: "0"),
                let number = FieldBytes.number(port, ceiling: 100_000)
            else { return false }
            return number <= 65_535 && number != (isTLS ? 443 : 80)
        }
    }
}
