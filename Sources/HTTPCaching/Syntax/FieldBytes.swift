import HTTPTypes

extension HTTPField {
    /// The bytes of the value as received. Comparing strings instead would make all values that are not UTF-8 look
    /// alike.
    var bytes: [UInt8] {
        // SAFETY: the buffer is copied and does not leave the closure.
        withUnsafeBytesOfValue { Array($0) }
    }
}

extension HTTPFields {
    /// The values of all field lines with a name, in order.
    func lines(_ name: HTTPField.Name) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        for field in self where field.name == name { lines.append(field.bytes) }
        return lines
    }

    /// All field lines with a name as one value (RFC 9110 section 5.3), nil when there is none.
    func combined(_ name: HTTPField.Name) -> [UInt8]? {
        var result: [UInt8]?
        for field in self where field.name == name {
            if result == nil {
                result = field.bytes
            } else {
                result!.append(contentsOf: [UInt8(ascii: ","), UInt8(ascii: " ")])
                result!.append(contentsOf: field.bytes)
            }
        }
        return result
    }

    /// The value of a field that must not be repeated: nil when it is missing or there are several lines.
    func single(_ name: HTTPField.Name) -> [UInt8]? {
        var result: [UInt8]?
        for field in self where field.name == name {
            guard result == nil else { return nil }
            result = field.bytes
        }
        return result
    }

    /// Removes every line with a name.
    mutating func remove(_ name: HTTPField.Name) { self[fields: name] = [] }

    /// Removes fields. Of up to eight that takes less one by one than `removeAll(where:)` does, and of many more.
    package mutating func removeEach(where isDue: (HTTPField) -> Bool) {
        var rest = 8
        for index in indices.reversed() where isDue(self[index]) {
            guard rest > 0 else { return removeAll(where: isDue) }
            remove(at: index)
            rest -= 1
        }
    }

    /// Replaces all lines with a name by one of ASCII text.
    mutating func set(_ name: HTTPField.Name, _ value: String) {
        self[fields: name] = [HTTPField(name: name, value: value)]
    }
}

/// Byte-level pieces of the grammar of RFC 9110 section 5.6. All functions are total.
package enum FieldBytes {
    static let comma = UInt8(ascii: ",")
    static let semicolon = UInt8(ascii: ";")
    static let quote = UInt8(ascii: "\"")
    static let backslash = UInt8(ascii: "\\")
    static let equals = UInt8(ascii: "=")

    /// Optional white space: space and tab (section 5.6.3).
    static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }

    /// A `tchar` (section 5.6.2).
    static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E...0x60, 0x7C, 0x7E: true
        default: false
        }
    }

    static func isToken(_ bytes: some Collection<UInt8>) -> Bool { !bytes.isEmpty && bytes.allSatisfy { isToken($0) } }

    static func lowercased(_ byte: UInt8) -> UInt8 { byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte }

    static func lowercased(_ bytes: some Sequence<UInt8>) -> [UInt8] { bytes.map { lowercased($0) } }

    /// Whether a name is another one, which is in lower case.
    package static func areSame(_ name: UnsafeRawBufferPointer, _ other: [UInt8]) -> Bool {
        guard name.count == other.count else { return false }
        for index in other.indices where lowercased(name[index]) != other[index] { return false }
        return true
    }

    static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var slice = bytes
        while let first = slice.first, isSpace(first) { slice = slice.dropFirst() }
        while let last = slice.last, isSpace(last) { slice = slice.dropLast() }
        return slice
    }

    /// Whether a list has a member.
    /// - Parameter member: in lower case; letters of the list may be of any case.
    package static func has(_ member: [UInt8], in list: UnsafeRawBufferPointer) -> Bool {
        members(Array(list)).contains { $0.withUnsafeBytes { areSame($0, member) } }
    }

    /// The members of a list (section 5.6.1), trimmed, empty ones left out. Commas inside quoted strings do not
    /// separate; a quote that is never closed reaches to the end.
    package static func members(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        var members: [ArraySlice<UInt8>] = []
        var start = 0
        var index = 0
        var quoted = false
        while index <= bytes.count {
            if index == bytes.count || (bytes[index] == comma && !quoted) {
                let member = trimmed(bytes[start..<index])
                if !member.isEmpty { members.append(member) }
                start = index + 1
            } else if bytes[index] == quote {
                quoted.toggle()
            } else if bytes[index] == backslash && quoted {
                index += 1
                if index >= bytes.count { index = bytes.count - 1 }
            }
            index += 1
        }
        return members
    }

    /// The content of a quoted string (section 5.6.4) that fills the slice, nil when it does not.
    static func unquoted(_ bytes: ArraySlice<UInt8>) -> [UInt8]? {
        guard bytes.count >= 2, bytes.first == quote, bytes.last == quote else { return nil }
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = bytes.startIndex + 1
        let end = bytes.endIndex - 1
        while index < end {
            var byte = bytes[index]
            if byte == quote { return nil }
            if byte == backslash {
                index += 1
                guard index < end else { return nil }
                byte = bytes[index]
            }
            result.append(byte)
            index += 1
        }
        return result
    }

    /// A run of digits as a number, nil when there is something else or nothing. Too large a number gives `ceiling`.
    static func number(_ bytes: some Sequence<UInt8>, ceiling: Int64) -> Int64? {
        var value: Int64 = 0
        var isEmpty = true
        for byte in bytes {
            guard isDigit(byte) else { return nil }
            isEmpty = false
            if value < ceiling { value = value * 10 + Int64(byte - 0x30) }
            if value > ceiling { value = ceiling }
        }
        return isEmpty ? nil : value
    }
}

/// `delta-seconds`: a non-negative number of seconds (RFC 9111 section 1.2.2).
enum DeltaSeconds {
    /// The greatest value kept. The section asks for 2^31 or the greatest positive integer that can conveniently be
    /// represented when a value or a calculation with it overflows; 2^42 seconds are 139,000 years and leave room for
    /// milliseconds.
    static let maximum: Int64 = 1 << 42

    /// Parses digits only: a sign, a fraction, white space or nothing is nil; leading zeros count nothing; huge
    /// values give ``maximum``.
    static func parse(_ bytes: some Sequence<UInt8>) -> Int64? { FieldBytes.number(bytes, ceiling: maximum) }
}
