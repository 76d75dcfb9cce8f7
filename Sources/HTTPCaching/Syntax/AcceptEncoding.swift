import HTTPTypes

/// Folding `Accept-Encoding` to the codings that make a difference: RFC 9110 section 12.5.3.
extension CacheRules {
    /// The codings of a list that a request accepts, in the order of the list and joined by ", "; `identity` if it
    /// accepts none of them or does not have the field.
    ///
    /// - Parameters:
    ///   - fields: the fields of the request.
    ///   - codings: the content codings that count, in lower case.
    /// - Returns: nil if the field cannot be folded without changing the meaning of the request: it refuses `identity`,
    ///   or a member is broken.
    public static func foldedAcceptEncoding(_ fields: HTTPFields, to codings: [String]) -> String? {
        foldedAcceptEncoding(fields.combined(.acceptEncoding), to: codings)
    }

    /// The same, from the values of all lines joined by commas.
    package static func foldedAcceptEncoding(_ value: [UInt8]?, to codings: [String]) -> String? {
        guard let value else { return "identity" }
        var weights: [[UInt8]: Int] = [:]
        for member in FieldBytes.members(value) {
            guard let (name, weight) = SelectingValue.split(FieldBytes.lowercased(member)) else { return nil }
            weights[Array(name)] = weight
        }
        let others = weights[[UInt8(ascii: "*")]]
        if (weights[Array("identity".utf8)] ?? others) == 0 { return nil }
        let taken = codings.filter { (weights[Array($0.utf8)] ?? others ?? 0) > 0 }
        return taken.isEmpty ? "identity" : taken.joined(separator: ", ")
    }
}
