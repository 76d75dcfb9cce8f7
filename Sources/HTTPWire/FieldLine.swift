import HTTPTypes

/// Where a field line's name and value are in the bytes of a head.
package struct FieldLine: Hashable, Sendable {
    /// The fields that say where a message ends, whom it is for and whether the connection stays.
    package enum Kind: UInt8, Hashable, Sendable {
        case other, connection, contentLength, expect, host, transferEncoding
    }

    package let name: Range<Int>
    /// Without white space at its ends.
    package fileprivate(set) var value: Range<Int>
    package let kind: Kind
    /// Whether the value has CR LF in it, in a response only.
    package fileprivate(set) var isFolded = false

    /// A field of HTTP/2, which are all of one kind.
    package init(name: Range<Int>, value: Range<Int>) {
        self.init(name: name, value: value, kind: .other)
    }

    fileprivate init(name: Range<Int>, value: Range<Int>, kind: Kind) {
        self.name = name
        self.value = value
        self.kind = kind
    }
}

extension FieldLine {
    /// The field, with the name as it was written.
    package func field(in bytes: UnsafeRawBufferPointer) -> HTTPField? {
        guard let name = FieldNames.name(UnsafeRawBufferPointer(rebasing: bytes[name])) else { return nil }
        let raw = UnsafeRawBufferPointer(rebasing: bytes[value])
        return HTTPField(name: name, value: isFolded ? Self.unfolded(raw)[...] : nil, or: raw)
    }

    /// "Replace each received obs-fold with one or more SP octets prior to interpreting the field value" (RFC 9112
    /// section 5.2).
    private static func unfolded(_ raw: UnsafeRawBufferPointer) -> [UInt8] {
        var value: [UInt8] = []
        value.reserveCapacity(raw.count)
        var index = 0
        while index < raw.count {
            guard raw[index] == Byte.carriageReturn else {
                value.append(raw[index])
                index += 1
                continue
            }
            while let last = value.last, last.isWhitespace { value.removeLast() }
            index += 1
            while index < raw.count, raw[index].isWhitespace || raw[index] < 0x20 { index += 1 }
            if !value.isEmpty, index < raw.count { value.append(Byte.space) }
        }
        return value
    }

    /// Whose syntax field lines are read with.
    enum Rules {
        /// Everything that RFC 9112 section 5 lets a server refuse is refused.
        case request
        /// "A proxy MUST remove any such whitespace from a response message" (section 5.1, before the colon), and
        /// obs-fold in a response is replaced by SP (section 5.2).
        case response
    }

    /// Reads the field lines from `start` to the empty line that ends the head.
    static func parse(
        _ bytes: UnsafeRawBufferPointer, from start: Int, rules: Rules, maximum: Int, into lines: inout [FieldLine]
    ) throws(WireError) {
        let end = bytes.count
        var index = start
        while true {
            guard index < end else { throw .incomplete }
            let first = bytes[index]
            if first == Byte.carriageReturn {
                guard index &+ 1 < end else { throw .incomplete }
                guard bytes[index &+ 1] == Byte.lineFeed else { throw .bareCarriageReturn }
                guard index &+ 2 == end else { throw .trailingBytes }
                return
            }
            if first.isWhitespace {
                guard let last = lines.indices.last else { throw .leadingWhitespace }
                guard rules == .response else { throw .lineFolding }
                let value = try value(bytes, from: &index)
                // An empty value has a place, too: the end of its line.
                lines[last].value = lines[last].value.lowerBound..<max(value.upperBound, lines[last].value.upperBound)
                lines[last].isFolded = true
                continue
            }
            guard lines.count < maximum else { throw .tooManyFields }
            let name = try name(bytes, from: &index, rules: rules)
            let value = try value(bytes, from: &index)
            lines.append(FieldLine(name: name, value: value, kind: kind(bytes, name)))
        }
    }

    /// Moves `index` behind the colon.
    @inline(__always) private static func name(
        _ bytes: UnsafeRawBufferPointer, from index: inout Int, rules: Rules
    ) throws(WireError) -> Range<Int> {
        let start = index
        while index < bytes.count, bytes[index].isTokenCharacter { index &+= 1 }
        let name = start..<index
        guard index < bytes.count else { throw .incomplete }
        guard !name.isEmpty else { throw .invalidFieldName }
        if bytes[index] != Byte.colon {
            guard bytes[index].isWhitespace else { throw .invalidFieldName }
            guard rules == .response else { throw .whitespaceBeforeColon }
            while index < bytes.count, bytes[index].isWhitespace { index &+= 1 }
            guard index < bytes.count else { throw .incomplete }
            guard bytes[index] == Byte.colon else { throw .invalidFieldName }
        }
        index &+= 1
        return name
    }

    /// Moves `index` behind the line's end.
    @inline(__always) private static func value(
        _ bytes: UnsafeRawBufferPointer, from index: inout Int
    ) throws(WireError) -> Range<Int> {
        var end = bytes.firstControl(from: index)
        while end < bytes.count, bytes[end] == Byte.tab { end = bytes.firstControl(from: end &+ 1) }
        guard end < bytes.count else { throw .incomplete }
        let value = bytes.trimmed(index..<end)
        index = try lineEnd(bytes, at: end)
        return value
    }

    /// The index behind CR LF at `index`, which is within the buffer.
    @inline(__always) static func lineEnd(
        _ bytes: UnsafeRawBufferPointer, at index: Int
    ) throws(WireError) -> Int {
        guard bytes[index] == Byte.carriageReturn else {
            throw bytes[index] == Byte.lineFeed ? .bareLineFeed : .controlCharacter
        }
        guard index &+ 1 < bytes.count else { throw .incomplete }
        guard bytes[index &+ 1] == Byte.lineFeed else { throw .bareCarriageReturn }
        return index &+ 2
    }

    @inline(__always) private static func kind(_ bytes: UnsafeRawBufferPointer, _ name: Range<Int>) -> Kind {
        switch name.count {
        case 4 where bytes.spells("host", at: name): .host
        case 6 where bytes.spells("expect", at: name): .expect
        case 10 where bytes.spells("connection", at: name): .connection
        case 14 where bytes.spells("content-length", at: name): .contentLength
        case 17 where bytes.spells("transfer-encoding", at: name): .transferEncoding
        default: .other
        }
    }
}

extension HTTPField {
    fileprivate init(name: Name, value: ArraySlice<UInt8>?, or raw: UnsafeRawBufferPointer) {
        if let value {
            self.init(name: name, value: value)
        } else if raw.allSatisfy({ $0 < 0x80 }) {
            // `HTTPField` takes three times as long to find that out.
            self.init(name: name, value: raw.string(0..<raw.count))
        } else {
            self.init(name: name, value: raw)
        }
    }
}
