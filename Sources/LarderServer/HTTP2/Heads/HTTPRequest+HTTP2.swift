import HTTPTypes
import NIOHPACK

extension HTTPRequest {
    /// Fewer than `HTTPFields` can have, as some are added. HTTP/1.1 has the same limit (`HeadLimits`).
    private static let maximumFields = 65_000

    /// The request of a head. Nil for a head that makes the request malformed (RFC 9113 sections 8.2 and 8.3).
    init?(_ fields: HPACKHeaders) {
        // `HTTPFields` has no more, and stops the program.
        guard fields.count <= Self.maximumFields else { return nil }
        var method: Method?
        var scheme: String?
        var authority: String?
        var path: String?
        var rest = HTTPFields()
        rest.reserveCapacity(fields.count)
        var isFirst = true
        for (name, value, _) in fields {
            guard name.utf8.first == UInt8(ascii: ":") else {
                isFirst = false
                guard let field = HTTP2Field.field(name, value) else { return nil }
                rest.append(field)
                continue
            }
            guard isFirst, value.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else { return nil }
            switch name {
            case ":method" where method == nil:
                method = Method(value)
                guard method != nil else { return nil }
            case ":scheme" where scheme == nil: scheme = value
            case ":authority" where authority == nil: authority = value
            case ":path" where path == nil && !value.isEmpty: path = value
            default: return nil
            }
        }
        guard let method else { return nil }
        // Section 8.5: CONNECT has an authority and nothing else.
        let isComplete =
            method == .connect
            ? scheme == nil && path == nil && authority != nil : scheme != nil && path != nil
        guard isComplete else { return nil }
        self.init(method: method, scheme: scheme, authority: authority, path: path, headerFields: rest)
    }
}

/// What a field may be like (RFC 9113 sections 8.2.1 and 8.2.2).
enum HTTP2Field {
    /// Nil for what makes the message malformed.
    static func field(_ name: String, _ value: String) -> HTTPField? {
        guard isValid(name, value), let fieldName = HTTPField.Name(name) else { return nil }
        return HTTPField(name: fieldName, value: value)
    }

    private static func isValid(_ name: String, _ value: String) -> Bool {
        guard !name.utf8.contains(where: { 0x41...0x5A ~= $0 }), isValue(value) else { return false }
        switch name {
        case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade": return false
        case "te": return value == "trailers"
        default: return true
        }
    }

    /// "A field value MUST NOT contain the zero value (ASCII NUL, 0x00), line feed (ASCII LF, 0x0a), or carriage return
    /// (ASCII CR, 0x0d) at any position", nor start or end with white space.
    private static func isValue(_ value: String) -> Bool {
        func isWhitespace(_ byte: UInt8?) -> Bool { byte == 0x20 || byte == 0x09 }
        return !isWhitespace(value.utf8.first) && !isWhitespace(value.utf8.last)
            && !value.utf8.contains { $0 == 0 || $0 == 0x0A || $0 == 0x0D }
    }
}
