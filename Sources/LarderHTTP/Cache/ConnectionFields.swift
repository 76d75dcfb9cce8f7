import HTTPCaching
import HTTPTypes

/// Fields that belong to one connection, not to the message (RFC 9110 section 7.6.1), or to the proxy that was used.
extension HTTPFields {
    /// Whether there is a field that the next method takes out.
    private func hasConnectionFields(_ others: Set<String>) -> Bool {
        contains {
            CacheRules.connectionFields.contains($0.name.canonicalName) || others.contains($0.name.canonicalName)
        }
    }

    /// The fields to pass on: without `Connection`, what it names, and those that every hop takes out.
    /// - Parameter others: further names, in lower case.
    func withoutConnectionFields(besides others: Set<String> = []) -> HTTPFields {  // check-words: allow
        guard hasConnectionFields(others) else { return self }
        var names = CacheRules.connectionFields.union(others)
        for value in self[values: .connection] {
            for member in value.split(separator: ",") {
                names.insert(member.trimmingWhitespace.lowercased())
            }
        }
        var result = HTTPFields()
        result.reserveCapacity(count)
        for field in self where !names.contains(field.name.canonicalName) { result.append(field) }
        return result
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
