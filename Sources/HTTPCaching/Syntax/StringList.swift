import RawStructuredFieldValues

/// A structured list of strings, as in `Cache-Groups` (RFC 9875 sections 2 and 3).
enum StringList {
    /// The strings in order, parameters ignored; nil when the value is not a list or a member is not a string.
    static func parse(_ bytes: [UInt8]) -> [String]? {
        var parser = StructuredFieldValueParser(bytes)
        guard let members = try? parser.parseListFieldValue() else { return nil }
        var strings: [String] = []
        for member in members {
            guard case .item(let item) = member, case .string(let text) = item.rfc9651BareItem else { return nil }
            strings.append(text)
        }
        return strings
    }
}
