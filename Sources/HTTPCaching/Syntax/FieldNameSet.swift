/// Names of fields, in lower case. Most names that are looked for differ from all of these in their length; the few
/// that do not are compared, which takes less than a hash.
package struct FieldNameSet: Sendable, ExpressibleByArrayLiteral {
    /// All names one behind the other, in the order of their lengths.
    private let bytes: [UInt8]
    /// Where in ``bytes`` the names of each length begin, in bytes, and the end.
    private let starts: [Int]

    package static let none: FieldNameSet = []

    package init(arrayLiteral names: String...) { self.init(names) }

    package init(_ names: [String]) {
        var bytes: [UInt8] = []
        var starts = [0]
        for length in 0...(names.map(\.utf8.count).max() ?? 0) {
            for name in names where name.utf8.count == length { bytes += name.utf8 }
            starts.append(bytes.count)
        }
        self.bytes = bytes
        self.starts = starts
    }

    /// - Parameter name: in lower case.
    package func contains(_ name: String) -> Bool {
        var name = name
        return name.withUTF8 { contains(UnsafeRawBufferPointer($0)) { $0 == $1 } }
    }

    /// - Parameter name: the bytes of a name, in letters of any case.
    package func contains(_ name: UnsafeRawBufferPointer) -> Bool {
        contains(name) { $0 == $1 || $0 == $1 | 0x20 }
    }

    @inline(__always)
    private func contains(
        _ name: UnsafeRawBufferPointer, where isEqual: (_ known: UInt8, _ other: UInt8) -> Bool
    ) -> Bool {
        let length = name.count
        guard length > 0, length < starts.count - 1 else { return false }
        var start = starts[length]
        let end = starts[length + 1]
        while start < end {
            var matched = 0
            while matched < length, isEqual(bytes[start + matched], name[matched]) { matched += 1 }
            if matched == length { return true }
            start += length
        }
        return false
    }
}
