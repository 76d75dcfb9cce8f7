import HTTPTypes
import RawStructuredFieldValues

/// Targeted cache control (RFC 9213): a dictionary of cache directives for a class of caches.
enum TargetedField {
    /// The directives of the first field on the target list that is valid and not empty (section 2.2), nil when there
    /// is none.
    static func directives(in fields: HTTPFields, targets: [HTTPField.Name]) -> ResponseDirectives? {
        for target in targets {
            guard let value = fields.combined(target), let directives = parse(value) else { continue }
            return directives
        }
        return nil
    }

    /// Parses one field (section 2.1): nil when it is not a dictionary, or an empty one. Parameters are ignored, and of
    /// repeated keys the last counts, as structured fields define. A value of the wrong type does not count as the
    /// directive's value.
    static func parse(_ bytes: [UInt8]) -> ResponseDirectives? {
        var parser = StructuredFieldValueParser(bytes)
        guard let members = try? parser.parseDictionaryFieldValue(), members.count > 0 else { return nil }
        var directives = ResponseDirectives()
        for (name, member) in members {
            guard let argument = argument(of: member) else { continue }
            directives.apply(name: name, argument)
        }
        return directives
    }

    /// The argument in the form that `Cache-Control` would have had. `?0` says that the directive does not apply.
    private static func argument(of member: ItemOrInnerList) -> DirectiveList.Argument? {
        switch member {
        case .item(let item):
            switch item.rfc9651BareItem {
            case .bool(true): return DirectiveList.Argument.none
            case .bool(false): return nil
            case .integer(let value) where value >= 0: return .value(Array(String(value).utf8))
            // Field names of no-cache and private; digits in a string are not an Integer and must not become one.
            case .string(let text), .token(let text):
                return text.utf8.contains { !FieldBytes.isDigit($0) } ? .value(Array(text.utf8)) : .malformed
            default: return .malformed
            }
        case .innerList(let list):
            var names: [UInt8] = []
            for item in list.bareInnerList {
                switch item.rfc9651BareItem {
                case .string(let text), .token(let text): names += Array(text.utf8) + [FieldBytes.comma]
                default: return .malformed
                }
            }
            return .value(names)
        }
    }
}
