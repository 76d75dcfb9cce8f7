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
        // Nearly always all name the same fields, whose normalisation costs more than all the rest.
        var asked: [[String]: SelectingFields] = [:]
        func wanted(_ variant: SelectingFields) -> SelectingFields {
            let names = variant.fields.map(\.name)
            if let known = asked[names] { return known }
            let made = SelectingFields(
                fields: names.map { .init(name: $0, value: SelectingValue.normalized(name: $0, in: request)) })
            asked[names] = made
            return made
        }
        let exact = variants.filter { wanted($0) == $0 }
        guard exact.isEmpty, options.selectsByContentLanguage, SelectingValue.preferredLanguage(request) != nil else {
            return exact
        }
        return variants.filter { variant in
            let wanted = wanted(variant)
            return variant.fields.contains { $0.name == "accept-language" }
                && zip(variant.fields, wanted.fields).allSatisfy { $0.name == "accept-language" || $0 == $1 }
        }
    }
}
