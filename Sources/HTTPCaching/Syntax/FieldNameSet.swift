/// Names of fields, in lower case. Most names that are looked for differ from all of these in their length; the few
/// that do not are compared, which takes less than a hash.
package struct FieldNameSet: Sendable, ExpressibleByArrayLiteral {
    /// By length, in bytes.
    private let names: [[String]]

    package static let none: FieldNameSet = []

    package init(arrayLiteral names: String...) { self.init(names) }

    package init(_ names: [String]) {
        let longest = names.map(\.utf8.count).max() ?? -1
        self.names = (0..<longest + 1).map { length in names.filter { $0.utf8.count == length } }
    }

    package func contains(_ name: String) -> Bool {
        let length = name.utf8.count
        return length < names.count && names[length].contains(name)
    }

    /// - Parameter name: the bytes of a name, in letters of any case.
    package func contains(_ name: UnsafeRawBufferPointer) -> Bool {
        name.count < names.count
            && names[name.count].contains { zip($0.utf8, name).allSatisfy { $0 == $1 || $0 == $1 | 0x20 } }
    }
}
