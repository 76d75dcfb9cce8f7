extension RequestHeadView {
    /// Takes the target apart (RFC 9112 section 3.2).
    mutating func parseTarget(_ bytes: UnsafeRawBufferPointer) throws(WireError) {
        scheme = nil
        authority = nil
        path = target
        let isConnect = isMethod("CONNECT", in: bytes)
        if isConnect {
            targetForm = .authority
            // "host:port", and the port is not optional (RFC 9110 section 9.3.6).
            guard HostSyntax.isValid(bytes, target, needsPort: true) else { throw .invalidTarget }
            authority = target
            path = target.upperBound..<target.upperBound
        } else if bytes[target.lowerBound] == Byte.slash {
            targetForm = .origin
        } else if bytes.equals("*", at: target) {
            guard isMethod("OPTIONS", in: bytes) else { throw .invalidTarget }
            targetForm = .asterisk
        } else {
            targetForm = .absolute
            try parseAbsolute(bytes)
        }
    }

    /// `http://authority/path?query`: of the schemes of HTTP only, as no other can be asked for here.
    private mutating func parseAbsolute(_ bytes: UnsafeRawBufferPointer) throws(WireError) {
        guard let colon = target.first(where: { bytes[$0] == Byte.colon }) else { throw .invalidTarget }
        let scheme = target.lowerBound..<colon
        guard bytes.spells("http", at: scheme) || bytes.spells("https", at: scheme), colon + 3 < target.upperBound,
            bytes[colon + 1] == Byte.slash, bytes[colon + 2] == Byte.slash
        else { throw .invalidTarget }
        let rest = colon + 3..<target.upperBound
        let end = rest.first { bytes[$0] == Byte.slash || bytes[$0] == UInt8(ascii: "?") } ?? rest.upperBound
        guard HostSyntax.isValid(bytes, rest.lowerBound..<end) else { throw .invalidTarget }
        self.scheme = scheme
        authority = rest.lowerBound..<end
        path = end..<target.upperBound
    }
}
