import HTTPCaching
import HTTPTypes

/// Fields that belong to one connection, not to the message (RFC 9110 section 7.6.1), or to the proxy that was used.
extension HTTPFields {
    /// The fields to pass on: without `Connection`, what it names, and those that every hop takes out.
    /// - Parameter others: further names, in lower case.
    func withoutConnectionFields(besides others: FieldNameSet = .none) -> HTTPFields {  // check-words: allow
        let named = namedByConnection
        func staysHere(_ field: HTTPField) -> Bool {
            let name = field.name.canonicalName
            return CacheRules.connectionFields.contains(name) || others.contains(name)
                || !named.isEmpty && named.contains(name)
        }
        var result = self
        result.removeEach(where: staysHere)
        return result
    }

    /// The names of fields that `Connection` names, in lower case.
    private var namedByConnection: Set<String> {
        var names: Set<String> = []
        for field in self where field.name == .connection {
            let value = field.value
            if value == "keep-alive" || value == "close" { continue }
            // By bytes: a character may be a comma with a mark on it.
            for member in value.utf8.split(separator: UInt8(ascii: ",")) {
                names.insert(Substring(member).trimmingWhitespace.lowercased())
            }
        }
        return names
    }

    /// Adds this hop to `Via` (RFC 9110 section 7.6.3), as a line of its own.
    mutating func appendVia(_ name: String) { append(HTTPField(name: .via, value: "1.1 \(name)")) }
}

extension Substring {
    fileprivate var trimmingWhitespace: Substring {
        var result = self
        while let first = result.first, first == " " || first == "\t" { result.removeFirst() }
        while let last = result.last, last == " " || last == "\t" { result.removeLast() }
        return result
    }
}
