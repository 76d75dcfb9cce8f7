/// Names of fields, in lower case. Most names that are looked for differ from all of these in their length; the few
/// that do not are compared, which takes less than a hash.
package struct FieldNameSet: Sendable, ExpressibleByArrayLiteral {
    /// By length, in bytes.
    private let names: [[String]]

    package static let none: FieldNameSet = []

    package init(arrayLiteral names: String...) {
        let longest = names.map(\.utf8.count).max() ?? -1
        self.names = (0..<longest + 1).map { length in names.filter { $0.utf8.count == length } }
    }

    package func contains(_ name: String) -> Bool {
        let length = name.utf8.count
        return length < names.count && names[length].contains(name)
    }
}
