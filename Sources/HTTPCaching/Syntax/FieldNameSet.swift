/// Names of fields, in lower case. Most names that are looked for differ from all of these in their length, which is
/// seen without a hash.
package struct FieldNameSet: Sendable, ExpressibleByArrayLiteral {
    private let names: Set<String>
    /// A bit for each length that a name has.
    private let lengths: UInt64

    package static let none: FieldNameSet = []

    /// - Parameter names: of up to 63 bytes.
    package init(arrayLiteral names: String...) {
        self.names = Set(names)
        lengths = names.reduce(0) { $0 | 1 << UInt64($1.utf8.count) }
    }

    package func contains(_ name: String) -> Bool {
        let length = name.utf8.count
        return length < 64 && lengths & 1 << UInt64(length) != 0 && names.contains(name)
    }
}
