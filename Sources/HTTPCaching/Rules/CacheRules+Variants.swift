import HTTPTypes

/// Which variants of a URL are worth a lookup: RFC 9111 section 4.1.
extension CacheRules {
    /// The secondary keys whose responses can be chosen for a request: those that match it and, if none does, those
    /// that might match by language alone. The others need not be read, and their entity tags are not sent (section
    /// 4.3.1 allows that).
    ///
    /// - Parameters:
    ///   - variants: all secondary keys of the URL.
    ///   - request: the fields of the request.
    /// - Returns: a subset of `variants`, in their order.
    public func variantsToLookUp(_ variants: [SelectingFields], for request: HTTPFields) -> [SelectingFields] {
        var asked = AskedFields { SelectingValue.normalized(name: $0, in: request) }
        let exact = variants.filter { asked.select($0) }
        guard exact.isEmpty, options.selectsByContentLanguage, SelectingValue.preferredLanguage(request) != nil else {
            return exact
        }
        return variants.filter { variant in
            let wanted = asked.wanted(variant)
            return variant.fields.contains { $0.name == "accept-language" }
                && zip(variant.fields, wanted.fields).allSatisfy { $0.name == "accept-language" || $0 == $1 }
        }
    }

    /// Whether the value of a field, with a name in lower case, must not be kept: secondary keys have a digest of it.
    package static func isSecret(_ name: String) -> Bool { SelectingValue.secrets.contains(name) }

    /// The only secondary key that matches a request in all fields; nil if there is none, or there are several.
    ///
    /// - Parameters:
    ///   - variants: as above.
    ///   - values: the values of all lines with a name, joined by commas; nil if there is none.
    package func onlyVariant(_ variants: [SelectingFields], values: (String) -> [UInt8]?) -> SelectingFields? {
        withoutActuallyEscaping(values) { values in
            var asked = AskedFields { name in values(name).map { SelectingValue.normalized(name: name, $0) } }
            let exact = variants.filter { asked.select($0) }
            return exact.count == 1 ? exact[0] : nil
        }
    }
}

/// The secondary keys that a request would have. Nearly always all variants name the same fields, whose normalisation
/// costs more than all the rest.
private struct AskedFields {
    let normalized: (String) -> [UInt8]?
    private var known: [[String]: SelectingFields] = [:]

    init(normalized: @escaping (String) -> [UInt8]?) { self.normalized = normalized }

    /// The key with the names of a variant's.
    mutating func wanted(_ variant: SelectingFields) -> SelectingFields {
        let names = variant.fields.map(\.name)
        if let known = known[names] { return known }
        let made = SelectingFields(fields: names.map { .init(name: $0, value: normalized($0)) })
        known[names] = made
        return made
    }

    mutating func select(_ variant: SelectingFields) -> Bool { wanted(variant) == variant }
}
