/// Characters with a meaning in the syntax.
enum Byte {
    static let tab: UInt8 = 0x09
    static let lineFeed: UInt8 = 0x0A
    static let carriageReturn: UInt8 = 0x0D
    static let space: UInt8 = 0x20
    static let colon = UInt8(ascii: ":")
    static let comma = UInt8(ascii: ",")
    static let semicolon = UInt8(ascii: ";")
    static let slash = UInt8(ascii: "/")
    static let equals = UInt8(ascii: "=")
    static let quote = UInt8(ascii: "\"")
    static let backslash = UInt8(ascii: "\\")
}

extension UInt8 {
    /// RFC 9110 section 5.6.2: `tchar`. A table of 128 bits, in two words.
    @inline(__always) var isTokenCharacter: Bool { isIn(0x03ff_6cfa_0000_0000, 0x57ff_ffff_c7ff_fffe) }

    /// RFC 3986 section 3.2.2: `unreserved / sub-delims`.
    @inline(__always) var isNameCharacter: Bool { isIn(0x2bff_7fd2_0000_0000, 0x47ff_fffe_87ff_fffe) }

    /// Visible ASCII but `#`: all that RFC 3986 allows in a path with a query, and those like `|`, `"` and `{` that it
    /// does not and clients send.
    @inline(__always) var isTargetCharacter: Bool { self > 0x20 && self < 0x7F && self != UInt8(ascii: "#") }

    @inline(__always) var isDigit: Bool { self &- 0x30 < 10 }

    @inline(__always) var isWhitespace: Bool { self == Byte.space || self == Byte.tab }

    @inline(__always) var isLetter: Bool { (self | 0x20) &- 0x61 < 26 }

    /// The value of a hexadecimal digit.
    @inline(__always) var hexadecimalValue: UInt8? {
        if isDigit { return self &- 0x30 }
        let letter = (self | 0x20) &- 0x61
        return letter < 6 ? letter + 10 : nil
    }

    /// Neither allowed in a field value nor in a reason phrase (RFC 9110 section 5.5).
    @inline(__always) var isControl: Bool { self < 0x20 && self != Byte.tab || self == 0x7F }

    @inline(__always) private func isIn(_ low: UInt64, _ high: UInt64) -> Bool {
        self < 0x80 && ((self < 64 ? low : high) >> UInt64(self & 63)) & 1 == 1
    }
}

extension UnsafeRawBufferPointer {
    /// The first control character (tab included) from `start`, or the end. Eight bytes at a time.
    func firstControl(from start: Int) -> Int {
        var index = start
        while index &+ 8 <= count {
            // SAFETY: eight bytes from `index` are within the buffer. Little endian, so that the first byte is the
            // lowest.
            let word = UInt64(littleEndian: loadUnaligned(fromByteOffset: index, as: UInt64.self))
            // The highest bit of each byte below 0x20, or equal to 0x7F. A borrow spoils bytes after a hit only.
            let below = (word &- 0x2020_2020_2020_2020) & ~word
            let others = word ^ 0x7f7f_7f7f_7f7f_7f7f
            let hits = (below | (others &- 0x0101_0101_0101_0101) & ~others) & 0x8080_8080_8080_8080
            if hits != 0 { return index &+ hits.trailingZeroBitCount >> 3 }
            index &+= 8
        }
        while index < count, self[index] >= 0x20, self[index] != 0x7F { index &+= 1 }
        return index
    }

    /// The range without white space at its ends.
    @inline(__always) func trimmed(_ range: Range<Int>) -> Range<Int> {
        var start = range.lowerBound
        var end = range.upperBound
        while start < end, self[start].isWhitespace { start &+= 1 }
        while end > start, self[end &- 1].isWhitespace { end &-= 1 }
        return start..<end
    }

    /// Whether the range spells `text`, which has lower-case letters, digits and hyphens only, in letters of any case.
    @inline(__always) package func spells(_ text: StaticString, at range: Range<Int>) -> Bool {
        guard range.count == text.utf8CodeUnitCount else { return false }
        for index in 0..<range.count {
            var byte = self[range.lowerBound &+ index]
            if byte.isLetter { byte |= 0x20 }
            if byte != text.utf8Start[index] { return false }
        }
        return true
    }

    /// Whether these bytes spell `text`, as for ``spells(_:at:)``.
    @inline(__always) package func spells(_ text: StaticString) -> Bool { spells(text, at: 0..<count) }

    /// The bytes of a range as a string.
    @inline(__always) package func string(_ range: Range<Int>) -> String {
        String(decoding: UnsafeRawBufferPointer(rebasing: self[range]), as: UTF8.self)
    }
}

extension Array where Element == UInt8 {
    /// `withUnsafeBytes` that keeps the type of the error.
    @inline(__always) package func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafeBufferPointer { (buffer) throws(Failure) in try body(UnsafeRawBufferPointer(buffer)) }
    }
}
